import numpy as np
import sklearn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from auxcst_sklearn.costs import binary_cost_matrices

# scikit-learn passes cost= on
sklearn.set_config(enable_metadata_routing=True)

X, y = make_classification(
    1000, weights=[0.95], flip_y=0, class_sep=0.7, random_state=0
)
# y = 1 is fraud; the last column is the logarithm of the amount.
amount = np.random.default_rng(0).lognormal(4, 1, len(y))
X = np.column_stack([X, np.log(amount)])


def costs(X):
    """An alert costs 5, and missed fraud its amount."""
    amount = np.exp(X[:, -1])
    return binary_cost_matrices(
        fp_cost=5, tp_cost=5, fn_cost=amount, classes=[0, 1], pos_label=1
    )


C = costs(X)
X_train, X_test, y_train, y_test, C_train, C_test = train_test_split(
    X, y, C, stratify=y, random_state=0
)
