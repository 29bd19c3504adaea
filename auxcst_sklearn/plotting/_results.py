"""Input of the displays: fitted estimators, scores of searches, tables of saved runs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length


def final_estimator(estimator: Any) -> Any:
    """The best estimator of a search, the last one of a pipeline."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        else:
            return estimator


def search_metric(search: Any, metric: str | None) -> str:
    """Name of the scorer, None for the one used to refit."""
    if metric is not None:
        return metric
    return search.refit if search.multimetric_ and search.refit else "score"


def search_scores(search: Any, metric: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean over the folds and its standard error, paired by folds, per candidate."""
    results, metric = search.cv_results_, search_metric(search, metric)
    if f"mean_test_{metric}" not in results:
        known = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
        raise ValueError(f"metric={metric!r} is no scorer of the search; expected one of {known}.")
    folds = [results[f"split{k}_test_{metric}"] for k in range(search.n_splits_)]
    return results[f"mean_test_{metric}"], paired_standard_error(np.array(folds).T)


def paired_standard_error(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Standard error of each candidate's mean over the folds, (n_candidates, n_folds).

    All candidates are evaluated on the same folds. The effect of a fold on all of them is
    irrelevant for their differences, and is removed: the fold's mean is subtracted from the scores,
    which are then multiplied by a correction factor (Cousineau, 2005; Morey, 2008). A single
    candidate has its ordinary standard error.
    """
    error = np.full(len(scores), np.nan)
    known = np.isfinite(scores).all(axis=1)
    found, n_folds = scores[known], scores.shape[1]
    if n_folds < 2 or not len(found):
        return error
    if len(found) > 1:
        found = (found - found.mean(axis=0)) * np.sqrt(len(found) / (len(found) - 1))
    error[known] = found.std(axis=1, ddof=1) / np.sqrt(n_folds)
    return error


def columns(results: Any) -> dict[str, list[Any]]:
    """The columns of a DataFrame, a dict, or a list of records; None for missing values."""
    if isinstance(results, Sequence):
        names = dict.fromkeys(chain.from_iterable(results))
        table = {name: [record.get(name) for record in results] for name in names}
    else:
        table = {name: list(results[name]) for name in getattr(results, "columns", results)}
    if not table:
        raise ValueError("results holds no columns; expected one record per run.")
    check_consistent_length(*table.values())
    # The missing values of different DataFrame libraries have only their string in common.
    missing = {"None", "nan", "<NA>"}
    return {
        name: [None if str(value) in missing else value for value in column]
        for name, column in table.items()
    }


def find_name(name: str, names: Collection[str], argument: str) -> str:
    """The full name that is `name`, or that ends with it after a double underscore."""
    found = [full for full in names if full == name]
    found = found or [full for full in names if str(full).endswith(f"__{name}")]
    if len(found) != 1:
        problem = f"stands for each of {found}" if found else "is not there"
        raise ValueError(
            f"{argument}={name!r} {problem}; expected one of {list(names)}, or its last component "
            "where only one ends so."
        )
    return found[0]


def hue_column(table: dict[str, list[Any]], hue: str | None) -> list[Any]:
    if hue is None:
        return [None] * len(next(iter(table.values())))
    return table[find_name(hue, table, "hue")]


def finite_column(values: list[Any], name: str) -> NDArray[np.float64]:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y={name!r} holds values that are not numbers ({error}).") from error
    if not (finite := np.isfinite(column)).all():
        i = finite.argmin()
        raise ValueError(
            f"y={name!r} holds {column[i]} in record {i}, and {np.sum(~finite)} values that are "
            "not finite in all; expected the cost of every run. Leave failed runs out."
        )
    return column


def matches(table: dict[str, list[Any]], where: Mapping[str, Any] | None) -> NDArray[np.bool_]:
    """Which rows have the given values."""
    keep = np.ones(len(next(iter(table.values()))), dtype=bool)
    for name, wanted in (where or {}).items():
        column = table[find_name(name, table, "where")]
        keep &= [np.array_equal(value, wanted) for value in column]
    return keep


def summarize(
    at_x: list[Any],
    at_hue: list[Any],
    rows: NDArray[Any],
    summary: Callable[[NDArray[Any]], tuple[float, float]],
    hue_order: Sequence[Any] | None = None,
) -> tuple[list[Any], list[Any], NDArray[Any], NDArray[Any]]:
    """Levels of x and of hue, and the summary (mean, spread) of the rows at each pair."""
    x_values, column = levels([at_x[i] for i in rows])
    hue_values, line = levels([at_hue[i] for i in rows])
    if hue_order is not None:
        numeric = not any(isinstance(value, str) for value in hue_values)
        order = [value if numeric or value is None else str(value) for value in hue_order]
        line = np.array([order.index(value) for value in hue_values])[line]
        hue_values = order
    mean, spread = np.full((2, len(hue_values), len(x_values)), np.nan)
    for cell in set(zip(line, column)):
        mean[cell], spread[cell] = summary(rows[(line == cell[0]) & (column == cell[1])])
    return x_values, hue_values, mean, spread


def levels(values: list[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Distinct values and their positions: numbers sorted, others as they appear; None last."""
    present = [value for value in values if value is not None]
    numeric = all(isinstance(v, Real) and not isinstance(v, bool) for v in present)
    keys = [v if v is None or numeric else str(v) for v in values]
    levels = sorted(dict.fromkeys(keys), key=lambda k: (k is None, k if numeric else 0))
    return levels, np.array([levels.index(key) for key in keys])


def caption(best: Mapping[str, Any], table: Mapping[str, list[Any]], n_folds: int) -> str:
    """The parameters of the best candidate that differ among candidates; meaning of the bands."""
    named = {
        name.rpartition("__")[-1]: value
        for name, value in best.items()
        if len({repr(other) for other in table[name]}) > 1
    }
    error = f"± standard error over {n_folds} folds, paired"
    if not named:
        return error
    return "best: " + ", ".join(f"{n} {_short(v)}" for n, v in named.items()) + "\n" + error


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return textwrap.shorten(str(value), 24, placeholder=" ...")
