"""The members of an ensemble, and their predictions of rows that they have not seen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from inspect import signature
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from .._checks.calls import error_context, warn
from .._checks.classifiers import probabilities, requesting_weights
from .._checks.labels import as_labels, label_index, shorten
from .._training.folds import Unseen, has_all_classes
from .._training.geometric_mean import mean_weights, shift_to_networks
from .._training.plan import resolve_n_networks
from .._training.processes import report, reports
from .._training.temperature import log_clipped, log_loss_of
from .._training.torch_modes import draw_seed
from ..costs._problem import Fold, Problem
from .mlp import CostSensitiveAuxMLP
from .table_models import TableBoosting, TableLogistic, read_once

# From scikit-learn 1.7 on, boosting can be stopped early by given rows.
STOPS_BY_GIVEN_ROWS = "X_val" in signature(HistGradientBoostingClassifier.fit).parameters

DEFAULT_MEMBERS, DROP = ("network", "boosting", "logistic"), "drop"
MOST_ROUNDS = 300  # Boosting stops early.
# From this number of classes on, boosting, which grows a tree for each class in every round, takes
# far longer than the network, and logistic regression replaces it.
CLASSES_FOR_LOGISTIC = 30


def default_members() -> list[tuple[str, Any]]:
    """The default network, boosting that stops early, and logistic regression for many classes."""
    boosting = TableBoosting(early_stopping=True, max_iter=MOST_ROUNDS)
    members: list[Any] = [CostSensitiveAuxMLP(), boosting, TableLogistic()]
    return list(zip(DEFAULT_MEMBERS, map(requesting_weights, members)))


def default_for(members: list[tuple[str, Any]], n_classes: int) -> list[tuple[str, Any]]:
    """The members for a number of classes: without boosting or without logistic regression."""
    unsuited = TableLogistic if n_classes < CLASSES_FOR_LOGISTIC else TableBoosting
    kinds = {type(member) for _, member in members}
    if not {TableLogistic, TableBoosting} <= kinds:
        return members
    return [(name, member) for name, member in members if not isinstance(member, unsuited)]


def is_dropped(member: Any) -> bool:
    """Whether a member is left out."""
    return isinstance(member, str) and member == DROP


def check_members(members: Any) -> list[tuple[str, Any]]:
    """Names and classifiers, without those left out."""
    kept = [(name, member) for name, member in members if not is_dropped(member)]
    for name, member in kept:
        if not (hasattr(member, "fit") and hasattr(member, "predict_proba")):
            raise TypeError(
                f"The member {name!r} is {member!r}, which has no predict_proba; expected a "
                "classifier that estimates probabilities, such as one in a "
                "CalibratedClassifierCV."
            )
    if not kept:
        raise ValueError("estimators names no member; expected one at least.")
    return kept


class FoldMean(ClassifierMixin, BaseEstimator):
    """Classifiers of one kind, each fitted without one fold, which predict by their mean.

    Their classes may differ; `classes_` are all.
    """

    def __init__(self, estimators: Sequence[Any], classes: NDArray[Any]) -> None:
        self.estimators = estimators
        self.classes = classes

    @property
    def classes_(self) -> NDArray[Any]:
        return self.classes

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Mean probabilities, (n_samples, n_classes)."""
        X = read_once(self.estimators, X)
        total = sum(probabilities(estimator, X, self.classes) for estimator in self.estimators)
        return np.asarray(total) / len(self.estimators)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable labels."""
        return self.classes[self.predict_proba(X).argmax(axis=1)]


class Member(NamedTuple):
    """A classifier of the ensemble, and the arguments of its `fit` beside rows and labels."""

    name: str
    estimator: Any
    fit_params: dict[str, Any]

    @property
    def holds_out_itself(self) -> bool:
        """Whether one fit has networks that hold out all folds."""
        estimator = self.estimator
        return isinstance(estimator, CostSensitiveAuxMLP) and bool(estimator.early_stopping)

    def run(
        self, folds: Sequence[Fold], X: Any, y: NDArray[Any], classes: NDArray[Any]
    ) -> tuple[Any, Unseen, float]:
        """Fit to the rows outside of a fold, or networks to the rows outside of several.

        Returns the classifier, its probabilities of the rows that it has not seen, and seconds.
        """
        start = time.perf_counter()
        estimator, params = clone(self.estimator), self.fit_params
        p = np.full((len(y), len(classes)), np.nan)
        with error_context(f"In the member {self.name!r} of the ensemble"):
            if self.holds_out_itself:
                n_networks = resolve_n_networks(estimator.n_networks, len(y))
                estimator.set_params(n_networks=max(n_networks, len(folds) + 1))
                held_out = estimator._fit_on_folds(X, y, folds, **params)
                columns = label_index(estimator.classes_, classes, name="classes_")
                of_all = np.full((len(held_out), *p.shape), np.nan)
                of_all[..., columns] = held_out
                held_out_p = Unseen(*of_all)
            else:
                ((seen, unseen),) = folds
                params = _check_method_params(X, params, indices=seen)
                params |= self._stopping_rows(seen, unseen, X, y)
                estimator.fit(_safe_indexing(X, seen), y[seen], **params)
                _check_knows(estimator, y[seen])
                p[unseen] = probabilities(estimator, _safe_indexing(X, unseen), classes)
                held_out_p = Unseen.of_model(p)
        return estimator, held_out_p, time.perf_counter() - start

    def _stopping_rows(
        self, seen: NDArray[Any], unseen: NDArray[Any], X: Any, y: NDArray[Any]
    ) -> dict[str, Any]:
        """The held-out rows, by which scikit-learn's boosting stops early."""
        estimator = self.estimator
        boosts = isinstance(estimator, HistGradientBoostingClassifier) and estimator.early_stopping
        if not (STOPS_BY_GIVEN_ROWS and boosts):
            return {}
        index = unseen[np.isin(y[unseen], y[seen])]
        weight = self.fit_params.get("sample_weight")
        known = {} if weight is None else {"sample_weight_val": np.asarray(weight)[index]}
        return {"X_val": _safe_indexing(X, index), "y_val": y[index], **known} if len(index) else {}


def _check_knows(model: Any, y: NDArray[Any]) -> None:
    """Raise an error for a model, such as a frozen one, that does not know all classes."""
    known = as_labels(model.classes_, "classes_")
    if len(unknown := np.setdiff1d(y, known)):
        raise ValueError(
            f"It does not know the classes {shorten(unknown)}, whose probability would be 0; "
            "expected a classifier that was trained on all classes. Leave it out."
        )


def folds_with_all_classes(folds: Sequence[Fold], y: NDArray[Any]) -> list[Fold]:
    """The folds that hold out rows, and whose training rows have all classes, as fits need them."""
    complete = [fold for fold in folds if has_all_classes(y, fold) and len(fold[1])]
    if not complete:
        raise ValueError(
            "The training rows of each fold lack a class, the rows of the first one "
            f"{shorten(np.setdiff1d(y, y[folds[0][0]]))}, or it holds out no rows; expected a fold "
            "or more whose training rows have all classes. Pass cv= a number, or leave the rows of "
            "rare classes out."
        )
    if lacking := len(folds) - len(complete):
        warn(
            f"{lacking} of {len(folds)} folds, whose training rows lack a class, or that hold out "
            "no rows with a weight, are left out."
        )
    return complete


def cost_estimators(models: Sequence[Any]) -> list[CostSensitiveAuxMLP]:
    """The networks, also networks of single folds, that have learnt costs of samples."""
    single = [one for m in models for one in (m.estimators if isinstance(m, FoldMean) else [m])]
    networks = [one for one in single if isinstance(one, CostSensitiveAuxMLP)]
    return [network for network in networks if network.net_.learns_sample_costs]


# ---------------------------------------------------------------------------- the ensemble


def fit_members(
    members: Sequence[Member], data: Problem, folds: list[Fold], n_jobs: Any, verbose: Any
) -> tuple[list[Any], Unseen]:
    """The fitted members, and their probabilities (n_members, n, K) of rows not seen."""
    classes, label = data.classes, data.label
    # A network holds out all folds in one fit; each fold of another member is a fit.
    fits = [[folds] if member.holds_out_itself else [[one] for one in folds] for member in members]
    run, given = delayed(Member.run), (data.X, data.labels, classes)
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        run(member, part, *given) for member, own in zip(members, fits) for part in own
    )
    fitted, held_out = list[Any](), list[Unseen]()
    for member, own in zip(members, fits):
        models, parts, seconds = zip(*islice(results, len(own)))
        fitted.append(models[0] if member.holds_out_itself else FoldMean(list(models), classes))
        held_out.append(Unseen.mean(parts))
        if reports(verbose):
            known = ~np.isnan(held_out[-1].first).any(axis=1)
            loss = log_loss_of(log_clipped(held_out[-1].first[known]), label[known])
            report(f"{member.name}: held-out log loss {loss:.4f}, {sum(seconds):.1f} s", verbose)
    return fitted, Unseen(*map(np.stack, zip(*held_out)))


def learn_weights(
    fitted: Sequence[Any], held_out: Unseen, data: Problem, folds: Sequence[Fold]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The weights of the members, and the log loss of each alone."""
    label = data.label
    known = np.zeros(len(label), dtype=bool)
    for seen, unseen in folds:  # A class that no member was fitted with is not evidence.
        known[unseen] |= np.isin(label[unseen], label[seen])
    known &= np.isfinite(held_out.first).all(axis=(0, 2))
    twice = known & np.all([np.isfinite(p).all(axis=(0, 2)) for p in held_out], axis=0)
    weight = np.ones(len(label)) if data.weight is None else data.weight
    weights, of_known = np.full(len(fitted), 1 / len(fitted)), (label[known], weight[known])
    if known.any():
        weights = mean_weights(log_clipped(held_out.mixed[:, known]), *of_known)
    losses = [log_loss_of(of_one, *of_known) for of_one in log_clipped(held_out.first[:, known])]
    networks = [i for i, one in enumerate(fitted) if not isinstance(one, FoldMean)]
    if networks:
        best = min(networks, key=losses.__getitem__)
        first, second, both, _ = (log_clipped(p[:, twice]) for p in held_out)
        logs, n = (first, second, both), fitted[best].n_networks
        weights = shift_to_networks(weights, best, n, logs, label[twice], weight[twice])
    return weights, np.array(losses)


Passed = dict[str, dict[str, Any]]


def with_weight(
    data: Problem, passed: Passed, own_folds: list[Fold] | None
) -> tuple[Problem, Passed, list[Fold] | None]:
    """The rows that have a weight, as if there were no others."""
    keep = data.is_weighted
    if keep.all():
        return data, passed, own_folds
    index, place = np.flatnonzero(keep), keep.cumsum() - 1
    kept = data.take(index)
    if len(np.unique(kept.label)) < 2:
        raise ValueError(
            "The rows whose sample_weight is not 0 are of one class only; expected two classes at "
            "least."
        )
    passed = {
        name: _check_method_params(data.X, own, indices=index) for name, own in passed.items()
    }
    if own_folds is not None:
        own_folds = [(place[a[keep[a]]], place[b[keep[b]]]) for a, b in own_folds]
    return kept, passed, own_folds


def fresh_member(
    member: Any, fit_params: dict[str, Any], data: Problem, rng: np.random.RandomState
) -> tuple[Any, dict[str, Any]]:
    """A copy of a member with a random state; a network also with the costs, if it has none."""
    member, params = clone(member), member.get_params(deep=True)
    states = sorted(
        key
        for key, value in params.items()
        if value is None and (key == "random_state" or key.endswith("__random_state"))
    )
    changed: dict[str, Any] = {key: draw_seed(rng) for key in states}
    if isinstance(member, CostSensitiveAuxMLP) and member.cost_matrix is None:
        if data.kind == "matrix":
            changed["cost_matrix"] = data.with_labels()
        else:
            fit_params = {**fit_params, "cost": data.with_labels()}
    member.set_params(**changed)  # A FrozenEstimator returns None.
    return member, fit_params
