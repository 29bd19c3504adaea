"""Costs: vectors and matrices, those of the experiments among them.

A *cost vector* holds, for one example, what each possible prediction costs, in the caller's
currency. A *cost matrix* holds one such vector per true class: row = true class, column =
prediction. Where the costs of an example are known for each true class, from the
amount of a payment, say, they form a matrix of its own: (n_samples, n_classes, n_classes).
"""

from ._binary import binary_cost_matrices
from ._matrices import (
    cost_vectors,
    ordinal_cost_matrix,
    randomized_proportional_cost_matrix,
    tree_distance_cost_matrix,
)

__all__ = [
    "binary_cost_matrices",
    "cost_vectors",
    "ordinal_cost_matrix",
    "randomized_proportional_cost_matrix",
    "tree_distance_cost_matrix",
]
