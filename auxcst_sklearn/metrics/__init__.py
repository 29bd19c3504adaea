"""Metrics and scorers of the cost of predictions, in the caller's currency."""

from ._comparison import compare_costs
from ._measures import CostDifference, cost_difference, mean_cost, savings_score
from ._scorers import cost_scorer, make_cost_scorer

__all__ = [
    "CostDifference",
    "compare_costs",
    "cost_difference",
    "cost_scorer",
    "make_cost_scorer",
    "mean_cost",
    "savings_score",
]
__dir__ = __all__.copy  # without imported names
