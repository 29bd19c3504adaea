"""Cost vectors and cost matrices, including the costs of the experiments.

A *cost vector* contains the cost of each possible prediction for one sample, in the caller's
currency. A *cost matrix* contains one such vector per true class: row = true class, column =
prediction. If the costs of a sample are known for each true class, for instance from the amount
of a payment, each sample has its own matrix: (n_samples, n_classes, n_classes).
"""

from ._labelled import LabelledCosts
from ._matrices import (
    cost_vectors,
    ordinal_cost_matrix,
    randomized_proportional_cost_matrix,
    tree_distance_cost_matrix,
)
from ._terms import binary_cost_matrices, cost_matrices

__all__ = [
    "LabelledCosts",
    "binary_cost_matrices",
    "cost_matrices",
    "cost_vectors",
    "ordinal_cost_matrix",
    "randomized_proportional_cost_matrix",
    "tree_distance_cost_matrix",
]
__dir__ = __all__.copy  # without imported names
