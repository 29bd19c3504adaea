"""Curves of a fitted search, and of the estimator that chooses alpha itself."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..metrics import mean_cost
from ._results import (
    caption,
    final_estimator,
    find_name,
    hue_column,
    matches,
    paired_standard_error,
    search_metric,
    search_scores,
    summarize,
)


def search_curves(
    search: Any,
    x: str,
    hue: str | None,
    where: Mapping[str, Any] | None,
    metric: str | None,
    negate: bool | None,
) -> dict[str, Any]:
    """Arguments of the display for a search: the best candidate at each x and hue."""
    score, error = search_scores(search, metric)
    label, negate = _label(search, search_metric(search, metric), score, negate)
    candidates = search.cv_results_["params"]
    own = search.estimator.get_params()
    table = {
        name: [params.get(name, own.get(name)) for params in candidates]
        for name in dict.fromkeys(chain.from_iterable(candidates))
    }
    x_full = find_name(x, table, "x")
    hue = _default_hue(table, x_full) if hue == "auto" else hue
    # None is a value if it was searched; otherwise it means that x was not searched.
    at_x = ["None" if p.get(x_full, 0) is None else p.get(x_full) for p in candidates]
    at_hue = hue_column(table, hue)
    rows = np.flatnonzero(matches(table, where) & np.isfinite(score))
    if not len(rows):
        raise ValueError(
            f"No candidate with a finite score matches where={where!r}. If fits failed, "
            "error_score='raise' in the search shows why."
        )

    def best(rows: NDArray[Any]) -> tuple[float, float]:
        i = rows[score[rows].argmax()]
        return -score[i] if negate else score[i], error[i]

    names = ("x_values", "hue_values", "mean", "spread")
    return {
        **dict(zip(names, summarize(at_x, at_hue, rows, best))),
        "x_name": x.rpartition("__")[-1],
        "hue_name": hue and hue.rpartition("__")[-1],
        "y_label": label,
        "caption": caption(candidates[rows[score[rows].argmax()]], table, search.n_splits_),
    }


def _default_hue(table: Mapping[str, Any], x: str) -> str | None:
    """The parameter depth, if it was searched and is not on the x axis."""
    found = [name for name in table if name.rpartition("__")[-1] == "depth" and name != x]
    return found[0] if len(found) == 1 else None


def _label(search: Any, metric: str, score: NDArray[Any], negate: bool | None) -> tuple[str, bool]:
    """The label of the y axis, and whether the scores are drawn with the opposite sign."""
    scorer = search.scorer_[metric] if isinstance(search.scorer_, Mapping) else search.scorer_
    if search.scoring is None:
        is_cost = _scores_are_costs(search.estimator, score)
    else:
        is_own = getattr(scorer, "_score_func", None) is mean_cost
        is_cost = is_own and getattr(scorer, "_sign", 0) == -1
    if negate or (negate is None and is_cost):
        return "cross-validated cost", True
    if metric == "score" and isinstance(search.scoring, str):
        metric = search.scoring
    elif metric == "score" and not is_cost and hasattr(scorer, "_score_func"):
        metric = scorer._score_func.__name__
    return f"cross-validated {metric}", False


def _scores_are_costs(estimator: Any, score: NDArray[Any]) -> bool:
    """Whether `score` of an estimator is minus the mean cost, rather than the accuracy."""
    last = final_estimator(estimator)
    if not hasattr(last, "predict_cost"):
        return False
    # Per-sample costs leave no trace in the search, but an accuracy is never negative.
    return last.cost_matrix is not None or bool((score < 0).any())


def path_curve(
    model: Any,
    x: str,
    hue: str | None,
    where: Mapping[str, Any] | None,
    metric: str | None,
    negate: bool | None,
) -> dict[str, Any]:
    """Arguments of the display for a fitted CostSensitiveAuxMLPCV: cost against alpha."""
    name = type(model).__name__
    given = {"hue": hue, "where": where, "metric": metric}
    others = [n for n, value in given.items() if value not in (None, "auto")]
    if x != "alpha" or others or negate is False:
        raise ValueError(
            f"{name} has one path, of the cost against alpha; expected x='alpha', and no hue, "
            f"where, metric or negate=False, got x={x!r}"
            + "".join(f", {n}={given[n]!r}" for n in others)
            + ". Use CostCurveDisplay.from_results for results of other forms."
        )
    path = model.mean_cost_path_
    if not np.isfinite(path).all():
        raise ValueError(
            f"mean_cost_path_ of {name} is not finite: too few rows were held out to choose alpha. "
            "Fit it on more rows, or draw costs of test rows with CostCurveDisplay.from_results."
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


def find_path(search: Any) -> Any:
    """The estimator with a path of costs over alpha, or None for a search; both fitted."""
    if hasattr(search, "cv_results_"):
        return None
    check_is_fitted(search)
    last = final_estimator(search)
    if hasattr(last, "mean_cost_path_"):
        return last
    raise TypeError(
        f"search={type(search).__name__} is neither a search with cv_results_ nor a "
        "CostSensitiveAuxMLPCV; expected one of them, fitted. Use CostCurveDisplay.from_results "
        "for results of other forms."
    )
