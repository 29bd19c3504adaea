"""scikit-learn's bases of estimators.

scikit-learn has no types, and a base class without types lets any argument of a constructor pass.
Type checkers read the declarations in ``bases.pyi`` instead.
"""

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.metaestimators import available_if

__all__ = [
    "BaseComposition",
    "BaseEstimator",
    "ClassifierMixin",
    "MetaEstimatorMixin",
    "available_if",
]
