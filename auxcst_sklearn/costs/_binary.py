"""Cost matrices of a binary decision, from the costs of its four outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from .._checks.rows import check_row_order
from ._terms import as_costs


def binary_cost_matrices(
    *,
    fp_cost: ArrayLike,
    fn_cost: ArrayLike,
    tp_cost: ArrayLike = 0,
    tn_cost: ArrayLike = 0,
    classes: ArrayLike,
    pos_label: Any,
) -> NDArray[np.float64]:
    """Arrange the costs of the four outcomes of a binary decision as cost matrices.

    Rows are true classes, columns predictions, both in the order of the sorted labels, as
    `classes_` everywhere in scikit-learn.

    Parameters
    ----------
    fp_cost : float or array-like of shape (n_samples,)
        Cost of a false alarm: `pos_label` is predicted for the other class.
    fn_cost : float or array-like of shape (n_samples,)
        Cost of a miss: the other class is predicted for `pos_label`.
    tp_cost : float or array-like of shape (n_samples,), default=0
        Cost of a hit, such as the cost of the work that it causes.
    tn_cost : float or array-like of shape (n_samples,), default=0
        Cost of a correct prediction of the other class.
    classes : array-like of shape (2,)
        Both labels, in any order.
    pos_label : label
        The positive class: the label in `classes` that is to be detected.

    Returns
    -------
    ndarray of shape (n_samples, 2, 2), or (2, 2) if all costs are scalars
        A matrix for each sample, or one for all. Pass the former to ``fit(..., cost=)``,
        ``predict(..., cost=)`` and the metrics, the latter as ``cost_matrix=``.

    Raises
    ------
    ValueError
        If `classes` are not two labels, `pos_label` is not one of them, or the costs are not finite
        numbers or arrays of equal length.

    See Also
    --------
    cost_matrices : Any number of classes and decisions, from a labelled table.

    Examples
    --------
    >>> from auxcst_sklearn.costs import binary_cost_matrices
    >>> amount = [20.0, 500.0]                                   # of two payments
    >>> binary_cost_matrices(fp_cost=5, tp_cost=5, fn_cost=amount,
    ...                      classes=["fraud", "good"], pos_label="fraud")
    array([[[  5.,  20.],
            [  5.,   0.]],
    <BLANKLINE>
           [[  5., 500.],
            [  5.,   0.]]])
    """
    labels = np.unique(np.asarray(classes))
    if np.shape(classes) != (2,) or len(labels) != 2:
        raise ValueError(f"classes={classes!r}; expected the two labels of a binary problem.")
    if np.ndim(pos_label) or pos_label not in labels.tolist():
        raise ValueError(f"pos_label={pos_label!r} is not among the classes {labels.tolist()}.")
    named = {"fp_cost": fp_cost, "fn_cost": fn_cost, "tp_cost": tp_cost, "tn_cost": tn_cost}
    check_row_order(**named)
    costs = {name: as_costs(cost, name) for name, cost in named.items()}
    check_consistent_length(*(cost for cost in costs.values() if cost.ndim))
    p = labels.tolist().index(pos_label)
    matrices = np.empty((*np.broadcast_shapes(*(c.shape for c in costs.values())), 2, 2))
    matrices[..., p, p], matrices[..., 1 - p, 1 - p] = costs["tp_cost"], costs["tn_cost"]
    matrices[..., p, 1 - p], matrices[..., 1 - p, p] = costs["fn_cost"], costs["fp_cost"]
    return matrices
