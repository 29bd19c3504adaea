"""Costs as callers pass them, read once: finite numbers of a known kind, with their labels."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from .._checks.data import is_frame, plain_array
from .._checks.labels import LABEL_REMEDY, plain_labels, same_labels, shorten
from ._labelled import LabelledCosts

Kind = Literal["matrix", "matrices", "vectors"]

SHAPES: dict[Kind, str] = {
    "matrix": "(n_classes, n_decisions)",
    "matrices": "(n_samples, n_classes, n_decisions)",
    "vectors": "(n_samples, n_classes)",
}
# What an argument may be. The first kind is the one with two dimensions: vectors presume the true
# class, so when deciding, two dimensions are always one matrix for all samples.
OF_CLASSES: tuple[Kind, ...] = ("matrix",)
OF_SAMPLES: tuple[Kind, ...] = ("vectors", "matrices")
WHEN_DECIDING: tuple[Kind, ...] = ("matrix", "matrices")
OF_FUNCTION: tuple[Kind, ...] = ("matrices",)
AROUND = (
    "Where a pipeline or another composite changes X, put the rule around it, where it gets X as "
    "it came: BayesMinimumRiskClassifier(composite, cost_matrix=function)."
)
_REMEDIES = {
    OF_CLASSES: "Costs that differ between samples are passed as cost=.",
    OF_SAMPLES: "Costs of classes are passed as cost_matrix=. Amounts become costs by "
    "auxcst_sklearn.costs.cost_matrices.",
    WHEN_DECIDING: "Cost vectors, which presume the true class, belong in score.",
    OF_FUNCTION: "A function of X returns one cost matrix for each sample; pass a constant matrix "
    "itself as cost_matrix=.",
}


@dataclass(frozen=True, eq=False)
class CostArray:
    """Costs in float64, all finite, of a known kind, with the labels of their axes, or None.

    `values` are one matrix (K, D), a matrix for each sample (n, K, D), or cost vectors (n, D).
    """

    values: NDArray[np.float64]
    kind: Kind
    name: str  # of the argument, for errors
    classes: NDArray[Any] | None = None
    decisions: NDArray[Any] | None = None
    names_decisions: bool = False  # Labels of DataFrames may be misspelt classes.
    of_function: bool = False  # Computed from X, by a function that is `cost_matrix`.

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CostArray) and all(
            np.array_equal(vars(self)[name], vars(other)[name])
            for name in ("values", "classes", "decisions")
        )

    @property
    def is_known(self) -> bool:
        """Whether there is a matrix for each sample, by which it can be decided."""
        return self.kind == "matrices"

    def align(self, classes: NDArray[Any], decisions: NDArray[Any]) -> NDArray[np.float64]:
        """The values in the order of these labels, which must be the labels of the costs.

        Values that are in this order are not copied, because they may be large.
        """
        rows, values = self.classes, self.values
        decides = self.kind == "matrix" and self.name == "cost"
        axes: list[Any] = [("decisions", self.decisions, decisions)]
        if self.kind != "vectors":
            if rows is None and self.decisions is not None and same_labels(self.decisions, classes):
                rows = self.decisions  # Frames of polars have no index: rows are as columns.
            axes.insert(0, ("classes", rows, classes))
        for axis, (noun, own, expected) in enumerate(axes, values.ndim - len(axes)):
            # Past costs with an index of samples: their shape is wrong, not their labels.
            are_vectors = decides and noun == "classes" and len(values) != len(expected)
            if own is None or own is expected or are_vectors:
                continue
            place = {label: i for i, label in enumerate(own.tolist())}
            if len(own) != len(expected) or set(place) != set(expected.tolist()):
                raise ValueError(
                    f"The labels of the {noun} of {self.name} are {shorten(own)}, but expected "
                    f"are {shorten(expected)}. {LABEL_REMEDY}"
                )
            order = [place[label] for label in expected.tolist()]
            values = values if order == list(range(len(order))) else values.take(order, axis=axis)
        shape = (*values.shape[: values.ndim - len(axes)], *(len(labels) for *_, labels in axes))
        if values.shape != shape:
            raise ValueError(
                f"{self.name} has shape {values.shape}; expected {shape}, for the classes "
                f"{shorten(classes)} and the decisions {shorten(decisions)}. Name classes without "
                "samples in classes=, and decisions that are not the classes in decisions=, or by "
                "a DataFrame whose index contains the classes."
                + (f" {_REMEDIES[WHEN_DECIDING]}" if decides else "")
            )
        return values


def read_costs(
    costs: Any, name: str, kinds: tuple[Kind, ...], n_samples: int | None = None
) -> CostArray:
    """The costs of an argument: an array, a table, `LabelledCosts`, or a list of parts with labels.

    Tables are those of pandas, polars and Arrow. A part may also be a Series of pandas.
    """
    if isinstance(costs, CostArray):
        return costs
    classes, decisions = _labels_of(costs)
    of_labels = isinstance(costs, LabelledCosts)
    types = set(map(type, costs)) if isinstance(costs, list | tuple) else set()
    if any(
        kind is LabelledCosts or hasattr(kind, "columns") or hasattr(kind, "iloc") for kind in types
    ):
        of_labels = LabelledCosts in types
        costs, classes, decisions = _stack(costs, name)
    values = _finite(costs, name, kinds)
    kind: Kind = "matrices" if values.ndim == 3 else kinds[0]
    if kind != "matrix" and n_samples is not None and len(values) != n_samples:
        raise ValueError(
            f"{name} has {len(values)} rows, but there are {n_samples} samples; expected shape "
            f"{(n_samples, *values.shape[1:])}. Select the same rows of {name} as of X. "
            f"{_REMEDIES[kinds]}"
        )
    if of_labels and kind != "matrices" and (kind == "vectors") != (classes is None):
        nouns = ["cost vectors", "a cost matrix"]
        given, expected = nouns if classes is None else nouns[::-1]
        raise ValueError(f"{name} contains {given}; expected {expected}. {_REMEDIES[kinds]}")
    of_rows = None if kind == "vectors" else classes  # an index of samples names no classes
    of_function = kinds is OF_FUNCTION
    return CostArray(values, kind, name, of_rows, decisions, of_labels, of_function)


def read_source(
    cost: Any,
    cost_matrix: Any,
    n_samples: int,
    X: Any = None,
    owner: str = "",
    *,
    required: bool = False,
) -> CostArray | None:
    """The costs of samples or of classes, whichever there are; both are an error.

    A function as `cost_matrix` gets X; `owner` is the name of the estimator that received it.
    """
    if required and cost is None and cost_matrix is None:
        raise ValueError(
            "Got neither cost nor cost_matrix; expected exactly one: cost= with one row per "
            "sample, or cost_matrix= with one row per class. A search or a tuned threshold passes "
            "cost on only with sklearn.set_config(enable_metadata_routing=True)."
        )
    if cost is not None and cost_matrix is not None:
        routes = callable(cost_matrix) and get_config()["enable_metadata_routing"]
        raise ValueError(
            "Got both cost and cost_matrix; expected one source of costs. Set cost_matrix=None "
            "to use per-sample costs, or drop cost=."
            + (" With metadata routing, call set_fit_request(cost=False)." if routes else "")
        )
    if cost is not None:
        return read_costs(cost, "cost", OF_SAMPLES, n_samples)
    if callable(cost_matrix):
        return costs_of(cost_matrix, X, n_samples, owner)
    return None if cost_matrix is None else read_costs(cost_matrix, "cost_matrix", OF_CLASSES)


CostFunction = Callable[[Any], Any]


def costs_of(function: CostFunction, X: Any, n_samples: int, owner: str) -> CostArray:
    """The costs that a function of X returns, a matrix for each sample."""
    name = f"{getattr(function, '__name__', None) or reprlib.repr(function)}(X)"
    if X is None:
        raise ValueError(
            f"cost_matrix is the function {name}, but a metric gets no X. Pass cost={name}. In "
            "TunedThresholdClassifierCV, whose scorer gets no X either, pass costs using metadata "
            "routing and scoring=cost_scorer, or let BayesMinimumRiskClassifier decide."
        )
    try:
        costs = function(X)
    except Exception as error:
        columns = f", with the columns {shorten(plain_labels(X.columns))}" if is_frame(X) else ""
        shape = "" if getattr(X, "shape", None) is None else f" and shape {tuple(X.shape)}"
        raise ValueError(
            f"The function {name}, the cost_matrix of {owner}, raised {type(error).__name__}: "
            f"{str(error).removesuffix('.')}. {owner} received X of type {type(X).__name__}"
            f"{shape}{columns}. {AROUND}"
        ) from error
    return read_costs(costs, name, OF_FUNCTION, n_samples)


def _labels_of(costs: Any) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Labels of the classes and decisions of costs that have some."""
    if isinstance(costs, LabelledCosts):
        return costs.classes, costs.decisions
    if not (is_frame(costs) or hasattr(type(costs), "column_names")):  # of Arrow
        is_series = hasattr(type(costs), "iloc")
        return None, plain_labels(list(costs.index)) if is_series else None
    decisions = plain_labels(list(getattr(costs, "column_names", costs.columns)))
    if decisions.ndim != 1:
        raise ValueError(
            f"The columns of the costs have several levels, {decisions[:2].tolist()} ...; expected "
            "one label for each class. Use columns.get_level_values(...)."
        )
    return plain_labels(list(costs.index)) if hasattr(costs, "index") else None, decisions


def _stack(parts: Sequence[Any], name: str) -> tuple[NDArray[Any], Any, Any]:
    """Costs with labels in a list, as scikit-learn selects them, in the order of the first."""
    classes: Any
    decisions: Any
    classes, decisions = _labels_of(parts[0])
    arrays = []
    for part in parts:
        own_classes, own_decisions = _labels_of(part)
        if own_decisions is None:
            raise ValueError(f"{name} is a list in which only some costs have labels.")
        kind: Kind = "vectors" if own_classes is None else "matrix"
        one = CostArray(np.asarray(part), kind, name, own_classes, own_decisions)
        arrays.append(one.align(classes, decisions))
    if classes is None and hasattr(parts[0], "name"):  # of Series
        classes = plain_labels([part.name for part in parts])  # as in the DataFrame
    return np.stack(arrays), classes, decisions


def as_numbers(costs: Any) -> NDArray[Any]:
    """Costs as an array; raises a TypeError with the reason if they are not numbers."""
    values = plain_array(costs, "it")
    if values.dtype.kind not in "biufO":
        raise TypeError(f"its values are of type {values.dtype}")
    return values


def _finite(costs: Any, name: str, kinds: tuple[Kind, ...]) -> NDArray[np.float64]:
    """Costs as finite floats with the dimensions of one of the kinds."""
    shapes = " or ".join(SHAPES[kind] for kind in kinds)
    try:
        values = as_numbers(costs)
        # Matrices of samples may be large, but a matrix is compared with later ones.
        values = values.astype(np.float64, copy=values.ndim == 2)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} of type {type(costs).__name__} cannot be read as numbers ({error}); expected "
            f"an array or DataFrame of real costs, {shapes}, with labels of rows as its index, as "
            f"by read_csv(..., index_col=0). Got {reprlib.repr(costs)}."
        ) from error
    if values.ndim not in {3 if kind == "matrices" else 2 for kind in kinds}:
        raise ValueError(f"{name} has shape {values.shape}; expected {shapes}. {_REMEDIES[kinds]}")
    finite = np.isfinite(values)
    if not finite.all():
        place = tuple(np.argwhere(~finite)[0].tolist())
        row, column = place if values.ndim == 2 else (place[:2], place[2])
        raise ValueError(
            f"{name} contains {values[place]} in row {row}, column {column}, and "
            f"{np.count_nonzero(~finite)} values that are not finite in all; expected finite "
            "costs. For a forbidden prediction use a finite cost some ten times the others."
        )
    return values
