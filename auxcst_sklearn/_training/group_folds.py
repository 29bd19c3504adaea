"""Stratified folds of groups, without torch, which the rule does not import."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils import check_random_state


class ShuffledGroups(StratifiedGroupKFold):
    """scikit-learn's folds of shuffled groups, which are stratified with all its releases.

    Before 1.8 it shuffles the numbers of samples of each class, but not the groups that they
    belong to, so that its folds are random. Here the groups are shuffled, as by 1.8.
    """

    def split(self, X: Any, y: Any, groups: Any) -> Any:
        known, group = np.unique(groups, return_inverse=True)
        order = check_random_state(self.random_state).permutation(len(known))
        return StratifiedGroupKFold(self.n_splits).split(X, y, np.argsort(order)[group])
