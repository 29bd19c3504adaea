"""CostSensitiveAuxMLPCV: the fully connected network with built-in choice of alpha."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import fspath
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, check_cv

from .._checks.docs import described_like
from .._checks.warn import warn
from .._training.distributed import processes
from .._training.training_set import TrainingSet
from .mlp import CostSensitiveAuxMLP
from .parameters import ALPHA, check_each, with_keywords_of
from .path import as_seed, fit_together

if TYPE_CHECKING:
    from typing_extensions import Self

ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@described_like(CostSensitiveAuxMLP)
class CostSensitiveAuxMLPCV(CostSensitiveAuxMLP):
    """CostSensitiveAuxMLP with the alpha that has the least cost on held-out rows.

    The networks of all alphas are trained together; see :func:`auxcst_sklearn.alpha_path`. The
    chosen alpha has the least mean cost on held-out rows; of two with equal cost, the smaller one.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), default=(0.0, 0.1, ..., 1.0)
        Weights of the auxiliary heads to choose from; each applies to all heads.
    cv : int, cross-validation generator or iterable, default=None
        None to choose by the rows that each network holds out anyway: the networks of all alphas
        are trained together, and those of the best alpha are kept. Otherwise alpha is chosen by
        cross-validation, before a fit on all rows: an int for the number of stratified folds, or
        any value accepted by :func:`sklearn.model_selection.check_cv`.
    checkpoint_dir : str or path-like, default=None
        As in `CostSensitiveAuxMLP`; if `cv` is set, the name must contain "{fit}", because several
        models are fitted.

    Attributes
    ----------
    alpha_ : float
        The alpha that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The alphas to choose from, sorted.
    mean_cost_path_ : ndarray of shape (n_alphas, n_networks) or (n_alphas, n_folds)
        Mean cost of the predictions for held-out rows, in currency, weighted by `sample_weight`.

    See Also
    --------
    CostSensitiveAuxMLP : The network with a given alpha.
    alpha_path : The networks of several alphas.

    Notes
    -----
    In the mean over the folds, each fold is weighted by its number of rows, or by the sum of their
    weights. The minimum of the path is an optimistic estimate of the cost of the chosen network.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from auxcst_sklearn import CostSensitiveAuxMLPCV
    >>> X, y = load_wine(return_X_y=True)
    >>> model = CostSensitiveAuxMLPCV(
    ...     alphas=[0, 0.2, 1], width=16, cost_matrix=[[0, 1, 10], [1, 0, 10], [1, 1, 0]],
    ...     max_epochs=5, random_state=0)
    >>> model.fit(scale(X), y).mean_cost_path_.shape
    (3, 5)
    >>> model.alpha_ in model.alphas_
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **CostSensitiveAuxMLP._parameter_constraints,
        "alphas": ["array-like"],
        "cv": ["cv_object"],
    }
    del _parameter_constraints["alpha"], _parameter_constraints["warm_start"]
    del _parameter_constraints["store_held_out_proba"]

    # Another fit may choose another alpha, so there is nothing to continue from.
    warm_start = False

    @with_keywords_of(CostSensitiveAuxMLP, without=("warm_start", "store_held_out_proba"))
    def __init__(
        self,
        alphas: ArrayLike = ALPHAS,
        depth: int = 3,
        width: int | Sequence[int] = 128,
        *,
        cv: int | BaseCrossValidator | Iterable[Any] | None = None,
    ) -> None:
        self.alphas = alphas
        self.depth = depth
        self.width = width
        self.cv = cv

    @property
    def alpha(self) -> float:  # type: ignore[override]  # a parameter of the base
        """The alpha that was chosen."""
        return self.alpha_

    @property
    def partial_fit(self) -> Any:
        """Not available, because alpha is chosen on all rows at once."""
        raise AttributeError(
            "CostSensitiveAuxMLPCV has no partial_fit, because it chooses alpha on all rows at "
            "once; continue with CostSensitiveAuxMLP(alpha=alpha_) instead."
        )

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        cost: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        cost_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Choose alpha, and train the network; parameters are those of `CostSensitiveAuxMLP.fit`.

        `groups` are passed to a `cv` that uses them, too; `sample_weight` also weights the costs
        of held-out rows. A validation set is used to choose alpha, unless `cv` is set.
        """
        self._keep_splits()
        with self._fitting(resume=False):
            self.alphas_ = self._check_alphas()
            data, validation = self._validate_sets(
                X, y, cost, sample_weight, groups, (X_val, y_val, cost_val, sample_weight_val)
            )
            if self.cv is None:
                return self._choose(data, validation)
            self._check_checkpoint_dir()
            # Of the caller's X and y, because `cv` may split them by more than their positions.
            cv = self._splits[1] if isinstance(self.cv, Iterator) else self.cv
            self._folds = split(cv, X, y, data.groups)
            self._cross_validate(data)
            self._train(data, validation)
            del self._folds
            return self

    def _choose(self, data: TrainingSet, validation: TrainingSet | None) -> Self:
        """Keep the networks of the alpha with the least cost on their held-out rows."""
        if not self.early_stopping and validation is None:
            raise ValueError(
                "cv=None chooses alpha by rows that the networks hold out, but with "
                "early_stopping=False they hold out none. Set early_stopping=True, or cv=5."
            )
        models = self._networks()
        trainings = fit_together(self, models, 1, data, validation)
        self.mean_cost_path_ = np.full((len(models), self.n_networks), np.nan)
        costs = [t.net.held_out_costs(t.held_out) for t in trainings if t.held_out is not None]
        costs = processes().from_first("the choice of alpha", costs)
        best = 0
        if costs:
            self.mean_cost_path_ = np.stack([mean for mean, _ in costs])
            self._path_weight = costs[0][1]
            best = int((self.mean_cost_path_ @ self._path_weight).argmin())
        else:
            warn(
                "Fewer than ten rows: none are held out to choose alpha, so the smallest of "
                "alphas is used. Pass X_val and y_val, or more rows."
            )
        self.alpha_ = float(self.alphas_[best])
        parameters = models[best].get_params(deep=False)
        fitted = {k: v for k, v in vars(models[best]).items() if k not in parameters}
        self.__dict__.update(fitted)
        self._warn_if_collapsed(data)
        return self

    def _networks(self) -> list[CostSensitiveAuxMLP]:
        """A network for each alpha, of one random state; no two share a callback."""
        # With checkpoints, None may become the seed of an earlier fit.
        keeps = self.random_state is None and self.checkpoint_dir is not None
        parameters = self.get_params(deep=False)
        del parameters["alphas"], parameters["cv"]
        parameters["random_state"] = None if keeps else as_seed(self.random_state)
        network = CostSensitiveAuxMLP(**parameters)
        return [clone(network).set_params(alpha=alpha) for alpha in self.alphas_.tolist()]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_splits" in state:  # an iterator has no pickle
            _, splits = state.pop("_splits")
            state["cv"] = splits if isinstance(self.cv, Iterator) else self.cv
        return state

    def _check_alphas(self) -> NDArray[np.float64]:
        try:
            alphas = np.asarray(self.alphas, dtype=np.float64)
        except (TypeError, ValueError):  # some are lists, or not numbers
            alphas = np.empty(0)
        if alphas.ndim != 1 or len(alphas) == 0:
            raise ValueError(
                f"alphas={self.alphas!r}; expected at least one number, in one dimension. Values "
                "that differ among the layers are for alpha_path."
            )
        alphas = np.unique(alphas)
        check_each(alphas.tolist(), name="alphas", interval=ALPHA)
        return alphas

    def _keep_splits(self) -> None:
        """Keep the splits of an iterator, which yields them once, for this fit and later ones."""
        iterator, _ = getattr(self, "_splits", (None, None))
        if isinstance(self.cv, Iterator) and iterator is not self.cv:
            self._splits = (self.cv, list(self.cv))

    def _check_checkpoint_dir(self) -> None:
        """Reject, before any training, one folder for the fits of all folds."""
        if self.checkpoint_dir is not None and "{fit}" not in fspath(self.checkpoint_dir):
            raise ValueError(
                f"checkpoint_dir={self.checkpoint_dir!r} is one folder, but cv={self.cv!r} fits "
                "several times; expected a name with '{fit}', which stands for each fit, as in "
                "'checkpoints/{fit}'."
            )

    def _determining_params(self) -> dict[str, Any]:
        """The splits themselves, because an iterator of them is different each time."""
        return {
            **super()._determining_params(),
            "cv": joblib.hash(self._folds),
            "alpha": self.alpha_,
        }

    def _cross_validate(self, data: TrainingSet) -> None:
        """Choose alpha by the folds."""
        weight = np.ones(len(data.label)) if data.weight is None else data.weight
        self._path_weight = np.array([weight[test].sum() for _, test in self._folds])
        if min(self._path_weight) == 0:
            raise ValueError(
                f"sample_weight is zero for all rows that fold {self._path_weight.argmin()} of cv "
                "leaves out, so that its cost is unknown. Use fewer folds, or folds that "
                "spread the rows that count."
            )
        costs = [self._costs_of_fold(data, train, data.part(test)) for train, test in self._folds]
        self.mean_cost_path_, self._path_weight = processes().from_first(
            "the choice of alpha", (np.transpose(costs), self._path_weight)
        )
        mean = np.average(self.mean_cost_path_, axis=1, weights=self._path_weight)
        self.alpha_ = float(self.alphas_[mean.argmin()])

    def _costs_of_fold(
        self, data: TrainingSet, train: NDArray[Any], test: TrainingSet
    ) -> list[float]:
        """Mean cost of the predictions for the held-out rows of a fold, for each alpha."""
        models = self._networks()
        fit_together(self, models, 1, data.part(train), None)
        costs = []
        for model in models:
            X = model._inputs.transform(test.X)
            if test.costs.matrices is not None and self._has_probabilities():
                p = model.net_.predict_proba(X)
                estimate = test.costs.expected_cost(p)
            else:
                (estimate,) = model.net_.predict_heads(X)
            choice = estimate.argmin(axis=1, keepdims=True)
            incurred = np.take_along_axis(test.target().cost, choice, axis=1)[:, 0]
            costs.append(float(np.average(incurred, weights=test.weight)))
        return costs


Folds = Sequence[tuple[NDArray[Any], NDArray[Any]]]


def split(cv: Any, X: Any, y: Any, groups: Any) -> Folds:
    """Training rows and held-out rows of each fold, of the caller's X and y."""
    splitter = check_cv(cv, y, classifier=True)
    given = {} if groups is None else {"groups": groups}  # optional
    folds = [(_rows(train), _rows(test)) for train, test in splitter.split(X, y, **given)]
    if not folds:
        raise ValueError(
            f"cv={cv!r} gave no split; expected at least one. An iterator that was used "
            "up elsewhere gives none: pass a list of its splits."
        )
    for i, fold in enumerate(folds):
        _check_fold(i, fold, len(y))
    return folds


def _rows(rows: Any) -> NDArray[Any]:
    """Positions or a mask as an array; one without values has no type."""
    selected = np.asarray(rows)
    return selected if selected.size else selected.astype(np.intp)


def _check_fold(i: int, fold: tuple[NDArray[Any], NDArray[Any]], n_rows: int) -> None:
    for name, rows in zip(("training", "test"), fold, strict=True):
        try:
            selected = np.arange(n_rows)[rows]
        except IndexError as error:
            raise ValueError(
                f"Fold {i} of cv has {name} rows that are not among the {n_rows} of X ({error}); "
                f"expected positions from 0 to {n_rows - 1}."
            ) from error
        if not len(selected):
            raise ValueError(f"Fold {i} of cv has no {name} rows; expected at least one.")
