"""What fitted searches and estimators hold, as arguments of the displays."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..costs._evaluation import final_estimator
from ..metrics import mean_cost


def search_curves(
    search: Any,
    x: str,
    hue: str | None,
    where: Mapping[str, Any] | None,
    metric: str | None,
    negate: bool | None,
) -> dict[str, Any]:
    """Arguments of the display for a search: the best candidate at each x and hue."""
    score, error, metric = _scores(search, metric)
    label, negate = _label(search, metric, negate)
    candidates = search.cv_results_["params"]
    own = search.estimator.get_params()
    table = {
        name: [params.get(name, own.get(name)) for params in candidates]
        for name in dict.fromkeys(chain.from_iterable(candidates))
    }
    x_full = find_name(x, table, "x")
    if hue == "auto":  # the depth, if it was searched and is not on the x axis
        depths = [name for name in table if _short(name) == "depth" and name != x_full]
        hue = depths[0] if len(depths) == 1 else None
    # None is a value if it was searched; otherwise it means that x was not searched.
    at_x = ["None" if p.get(x_full, 0) is None else p.get(x_full) for p in candidates]
    at_hue = [None] * len(score) if hue is None else table[find_name(hue, table, "hue")]
    keep = np.isfinite(score)
    for name, wanted in (where or {}).items():
        keep &= [np.array_equal(v, wanted) for v in table[find_name(name, table, "where")]]
    rows = np.flatnonzero(keep)
    if not len(rows):
        raise ValueError(
            f"No candidate with a finite score matches where={where!r}. If fits failed, "
            "error_score='raise' in the search shows why."
        )
    x_values, column = levels([at_x[i] for i in rows])
    hue_values, line = levels([at_hue[i] for i in rows])
    mean, spread = np.full((2, len(hue_values), len(x_values)), np.nan)
    for k in np.argsort(-score[rows], kind="stable")[::-1]:  # the best of a cell comes last
        i, cell = rows[k], (line[k], column[k])
        mean[cell], spread[cell] = -score[i] if negate else score[i], error[i]
    return {
        "x_values": x_values,
        "hue_values": hue_values,
        "mean": mean,
        "spread": spread,
        "x_name": _short(x),
        "hue_name": hue and _short(hue),
        "y_label": label,
        "caption": _caption(candidates[rows[score[rows].argmax()]], table, search.n_splits_),
    }


def _scores(search: Any, metric: str | None) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Mean over the folds and its standard error, per candidate, and the name of the scorer."""
    results = search.cv_results_
    if metric is None:
        metric = search.refit if search.multimetric_ and search.refit else "score"
    if f"mean_test_{metric}" not in results:
        known = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
        raise ValueError(f"metric={metric!r} is no scorer of the search; expected one of {known}.")
    folds = [results[f"split{k}_test_{metric}"] for k in range(search.n_splits_)]
    return results[f"mean_test_{metric}"], paired_standard_error(np.array(folds).T), str(metric)


def _label(search: Any, metric: str, negate: bool | None) -> tuple[str, bool]:
    """The label of the y axis, and whether the scores are drawn with the opposite sign."""
    if negate is None and search.scoring is None:
        last = final_estimator(search.estimator)
        negate = hasattr(last, "predict_cost") and last.cost_matrix is not None
    elif negate is None:
        scorer = search.scorer_[metric] if isinstance(search.scorer_, Mapping) else search.scorer_
        negate = getattr(scorer, "_score_func", None) is mean_cost and scorer._sign == -1
    score = search.scoring if isinstance(search.scoring, str) else metric
    return f"cross-validated {'cost' if negate else score}", negate


def path_curve(model: Any, x: str, **given: Any) -> dict[str, Any]:
    """Arguments of the display for a fitted CostSensitiveAuxMLPCV: cost against alpha."""
    check_is_fitted(model)
    model = final_estimator(model)
    name = type(model).__name__
    if not hasattr(model, "mean_cost_path_"):
        raise TypeError(
            f"search={name} is neither a search with cv_results_ nor a CostSensitiveAuxMLPCV; "
            "expected one of them, fitted."
        )
    others = {n: value for n, value in given.items() if value not in (None, "auto", True)}
    if x != "alpha" or others:
        raise ValueError(
            f"{name} has one path, of the cost against alpha; expected x='alpha' and nothing else, "
            f"got x={x!r}" + "".join(f", {n}={value!r}" for n, value in others.items()) + "."
        )
    path = model.mean_cost_path_
    if not np.isfinite(path).all():
        raise ValueError(
            f"mean_cost_path_ of {name} is not finite: too few rows were held out to choose alpha. "
            "Fit it on more rows."
        )
    kind = "networks" if model.cv is None else "folds"
    return {
        "x_values": model.alphas_.tolist(),
        "hue_values": [None],
        "mean": np.average(path, axis=1, weights=getattr(model, "_path_weight", None))[np.newaxis],
        "spread": paired_standard_error(path)[np.newaxis],
        "x_name": "alpha",
        "y_label": "held-out cost",
        "caption": f"best: alpha {model.alpha_:.3g}\n"
        f"± standard error over {path.shape[1]} {kind}, paired",
    }


def paired_standard_error(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Standard error of each candidate's mean over the folds, (n_candidates, n_folds).

    All candidates are evaluated on the same folds. The effect of a fold on all of them is
    irrelevant for their differences, and is removed: the fold's mean is subtracted from the scores,
    which are then multiplied by a correction factor (Cousineau, 2005; Morey, 2008). A single
    candidate has its ordinary standard error.
    """
    error = np.full(len(scores), np.nan)
    known = np.isfinite(scores).all(axis=1)
    finite, n_folds = scores[known], scores.shape[1]
    if n_folds < 2 or not len(finite):
        return error
    if len(finite) > 1:
        finite = (finite - finite.mean(axis=0)) * np.sqrt(len(finite) / (len(finite) - 1))
    error[known] = finite.std(axis=1, ddof=1) / np.sqrt(n_folds)
    return error


def find_name(name: str, names: Collection[str], argument: str) -> str:
    """The full name that is `name`, or that ends with it after a double underscore."""
    matching = [full for full in names if full == name]
    matching = matching or [full for full in names if full.endswith(f"__{name}")]
    if len(matching) != 1:
        problem = f"stands for each of {matching}" if matching else "is not there"
        raise ValueError(
            f"{argument}={name!r} {problem}; expected one of {list(names)}, or its last component "
            "where only one ends so."
        )
    return matching[0]


def levels(values: list[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Distinct values and their positions: numbers sorted, others as they appear; None last."""
    present = [value for value in values if value is not None]
    numeric = all(isinstance(v, Real) and not isinstance(v, bool) for v in present)
    keys = [v if v is None or numeric else str(v) for v in values]
    levels = sorted(dict.fromkeys(keys), key=lambda k: (k is None, k if numeric else 0))
    return levels, np.array([levels.index(key) for key in keys])


def _caption(best: Mapping[str, Any], table: Mapping[str, list[Any]], n_folds: int) -> str:
    """The parameters of the best candidate that differ among candidates; meaning of the bands."""
    varied = [name for name in best if len({repr(value) for value in table[name]}) > 1]
    named = ", ".join(f"{_short(name)} {_text(best[name])}" for name in varied)
    return (f"best: {named}\n" if named else "") + f"± standard error over {n_folds} folds, paired"


def _text(value: Any) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return textwrap.shorten(text, 24, placeholder=" ...")


def _short(name: str) -> str:
    """The last component of the name of a parameter."""
    return name.rpartition("__")[-1]
