"""A function of X in a module, so that another process can load a model that has it."""

from auxcst_sklearn.costs import binary_cost_matrices


def of_amount(X):
    """An alert costs 5, a missed fraud the last column."""
    terms = {"fp_cost": 5, "tp_cost": 5, "fn_cost": X[:, -1]}
    return binary_cost_matrices(**terms, classes=["fraud", "ok"], pos_label="fraud")
