"""The members of a pool: each is fitted to folds, and predicts the rows that it did not see."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier

from .._checks.labels import label_index
from ..costs._account import Costs
from .bayes_decision import Labelled
from .boosting import TableBoosting
from .mlp import CostSensitiveAuxMLP

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]

# From scikit-learn 1.7 on, boosting can be stopped early by given rows.
STOPS_BY_GIVEN_ROWS = "X_val" in signature(HistGradientBoostingClassifier.fit).parameters

DEFAULT_MEMBERS = ("network", "boosting")
MOST_ROUNDS = 300  # of boosting, which stops early

# A row with a smaller share of the largest weight counts as absent.
SMALLEST_WEIGHT = 1e-30


def default_members() -> list[tuple[str, Any]]:
    """The default network, and boosting that stops early."""
    members: list[Any] = [CostSensitiveAuxMLP()]
    members.append(TableBoosting(early_stopping=True, max_iter=MOST_ROUNDS))
    if sklearn.get_config()["enable_metadata_routing"]:
        members = [member.set_fit_request(sample_weight=True) for member in members]
    return list(zip(DEFAULT_MEMBERS, members))


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
        total = sum(probabilities(estimator, X, self.classes) for estimator in self.estimators)
        mean: NDArray[np.float64] = np.asarray(total) / len(self.estimators)
        return mean

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable labels."""
        labels: NDArray[Any] = self.classes[self.predict_proba(X).argmax(axis=1)]
        return labels


class Member(NamedTuple):
    """A classifier of the pool, and the arguments of its `fit` beside rows and labels."""

    name: str
    estimator: Any
    fit_params: dict[str, Any]

    @property
    def holds_out_itself(self) -> bool:
        """Whether the classifier has probabilities of rows that it has held out."""
        given = self.estimator.get_params(deep=False)
        is_network = isinstance(self.estimator, CostSensitiveAuxMLP)
        return is_network and "store_held_out_proba" in given and given["early_stopping"]

    def tasks(self, folds: Sequence[Fold], groups: Any) -> list[Task]:
        """The fits: one for each fold, or one of a network to all rows."""
        if not self.holds_out_itself:
            return [Task(self, fold) for fold in folds]
        network, params = self.estimator, dict(self.fit_params)
        params["groups"] = groups
        number = fold_numbers(folds)
        if number is not None and _n_folds(network) <= len(folds):
            params["groups"] = number  # the same folds as those of the other members
        network = clone(network).set_params(store_held_out_proba=True)
        return [Task(Member(self.name, network, params), None)]


class Task(NamedTuple):
    """A fit of a member: to the rows outside of a fold, or for None to all rows."""

    member: Member
    fold: Fold | None

    def run(
        self, X: Any, y: NDArray[Any], classes: NDArray[Any]
    ) -> tuple[Any, NDArray[np.float64], float]:
        """The fitted classifier, probabilities of held-out rows (NaN for others), and seconds."""
        start = time.perf_counter()
        estimator, params = clone(self.member.estimator), self.member.fit_params
        found = np.full((len(y), len(classes)), np.nan)
        with naming(self.member.name):
            if self.fold is None:
                estimator.fit(X, y, **params)
                columns = label_index(estimator.classes_, classes, name="classes_")
                found[:, columns] = estimator.held_out_proba_
                del estimator.held_out_proba_
                estimator.set_params(store_held_out_proba=False)
            else:
                seen, unseen = self.fold
                params = {name: take_rows(value, seen, len(y)) for name, value in params.items()}
                params |= self._stopping_rows(X, y)
                estimator.fit(take(X, seen), y[seen], **params)
                found[unseen] = probabilities(estimator, take(X, unseen), classes)
        return estimator, found, time.perf_counter() - start

    def _stopping_rows(self, X: Any, y: NDArray[Any]) -> dict[str, Any]:
        """The held-out rows, for scikit-learn's boosting, which then needs no others to stop."""
        estimator, fold = self.member.estimator, self.fold
        boosts = isinstance(estimator, HistGradientBoostingClassifier) and estimator.early_stopping
        if not (STOPS_BY_GIVEN_ROWS and boosts) or fold is None:
            return {}
        rows = fold[1][np.isin(y[fold[1]], y[fold[0]])]
        weight = self.member.fit_params.get("sample_weight")
        known = {} if weight is None else {"sample_weight_val": np.asarray(weight)[rows]}
        return {"X_val": take(X, rows), "y_val": y[rows], **known} if len(rows) else {}


def probabilities(estimator: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities (n_samples, n_classes), 0 for classes unknown to the classifier."""
    known = estimator.predict_proba(X)
    if not np.isfinite(known).all():
        n_rows = np.count_nonzero(~np.isfinite(known).all(axis=1))
        raise ValueError(
            f"predict_proba of {estimator!r} returned values that are not finite for {n_rows} of "
            f"{len(known)} rows. Check its training, or the rows."
        )
    found = np.zeros((len(known), len(classes)))
    found[:, label_index(estimator.classes_, classes, name="classes_")] = known
    return found


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Name the member whose fit or prediction failed."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"In the member {name!r} of the pool: {error}") from error
    except Exception as error:
        raise RuntimeError(
            f"In the member {name!r} of the pool: {type(error).__name__}: {error}"
        ) from error


def cost_estimators(models: Sequence[Any]) -> list[CostSensitiveAuxMLP]:
    """The networks, also those of single folds, that have learnt costs of samples."""
    single = [one for m in models for one in (m.estimators if isinstance(m, FoldMean) else [m])]
    networks = [one for one in single if isinstance(one, CostSensitiveAuxMLP)]
    return [network for network in networks if network.net_.learns_sample_costs]


def take(X: Any, index: NDArray[Any]) -> Any:
    """Some of the rows of an array, a DataFrame or a sparse matrix."""
    if hasattr(X, "iloc"):
        return X.iloc[index]
    return X.tocsr()[index] if sparse.issparse(X) else X[index]


def take_rows(value: Any, index: NDArray[Any], n_rows: int) -> Any:
    """The same of an argument of `fit` with one value per row; others unchanged."""
    if isinstance(value, Costs):
        return value.part(index)
    if value is None or isinstance(value, str) or not hasattr(value, "__len__"):
        return value
    if len(value) != n_rows:
        return value
    return take(value if hasattr(value, "shape") else np.asarray(value), index)


def fold_numbers(folds: Sequence[Fold]) -> NDArray[np.intp] | None:
    """The fold of each row, if each row is held out once and the others are learnt from."""
    n = sum(len(unseen) for _, unseen in folds)
    number = np.full(n, -1)
    for i, (seen, unseen) in enumerate(folds):
        if len(seen) + len(unseen) != n or unseen.max(initial=0) >= n:
            return None
        number[unseen] = i
    return None if (number < 0).any() else number


def _n_folds(network: Any) -> int:
    """Number of folds from which a network holds out some."""
    return int(max(network.n_networks, round(1 / network.validation_fraction)))


Passed = dict[str, dict[str, Any]]


def with_weight(
    X: Any, data: Labelled, groups: Any, passed: Passed, given: list[Fold] | None
) -> tuple[Any, Labelled, Any, Passed, list[Fold] | None]:
    """The rows that have a weight, as if there were no others."""
    groups = None if groups is None else np.asarray(groups)
    weight, n = data.weight, len(data.labels)
    if weight is None or (keep := weight > SMALLEST_WEIGHT * weight.max()).all():
        return X, data, groups, passed, given
    index, place = np.flatnonzero(keep), keep.cumsum() - 1
    if len(np.unique(data.labels[index])) < 2:
        raise ValueError(
            "The rows whose sample_weight is not 0 are of one class only; expected two classes at "
            "least."
        )
    data = data._replace(
        labels=data.labels[index], costs=data.costs.part(index), weight=weight[index]
    )
    passed = {
        name: {key: take_rows(value, index, n) for key, value in params.items()}
        for name, params in passed.items()
    }
    if given is not None:
        given = [tuple(place[rows[keep[rows]]] for rows in fold) for fold in given]
    return take(X, index), data, take_rows(groups, index, n), passed, given


def prepare(
    member: Any, fit_params: dict[str, Any], data: Labelled, rng: np.random.RandomState
) -> tuple[Any, dict[str, Any]]:
    """A copy of a member with a random state; a network also with the costs, if it has none."""
    member, params = clone(member), member.get_params(deep=True)
    states = sorted(
        key
        for key, value in params.items()
        if value is None and (key == "random_state" or key.endswith("__random_state"))
    )
    largest = np.iinfo(np.int32).max
    changed: dict[str, Any] = {key: int(rng.randint(largest)) for key in states}
    if isinstance(member, CostSensitiveAuxMLP) and member.cost_matrix is None:
        fit_params = {**fit_params, "cost": data.costs}
    return member.set_params(**changed), fit_params
