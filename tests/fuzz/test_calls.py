"""Calls in any order: whatever fails changes nothing, and copies are equal."""

from __future__ import annotations

import pickle
import warnings
from copy import deepcopy

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sklearn.base import clone

from tests.factories import small_stack
from tests.fuzz.conftest import examples

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = {2: (X[:, 0] > 0).astype(int), 3: (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)}
COST = {k: RNG.exponential(size=(40, k)) for k in Y}
PARAMETERS = {
    "alpha": [0, 0.3],
    "warm_start": [False, True],
    "loss": ["bayes_risk", "one_sided", "cross_entropy"],
    "n_networks": [1, 2],
    "early_stopping": [False, True],
    "max_epochs": [1, 2],
    "width": [4, 6, -1],
    "random_state": [0, 1],
    "cost_matrix": [None, 2 - 2 * np.eye(3)],
}


def estimates(model):
    return model.predict_cost(X[:5])


class Calls(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        warnings.simplefilter("ignore")
        self.model = small_stack(max_epochs=1, n_networks=2)

    @property
    def is_fitted(self):
        return hasattr(self.model, "net_")

    def attempt(self, call):
        """A call that succeeds, or raises and leaves estimates, history and attributes alone."""
        before = self.is_fitted and estimates(self.model)
        names, epochs = set(vars(self.model)), len(getattr(self.model, "history_", []))
        try:
            call()
        except (ValueError, TypeError):
            assert set(vars(self.model)) == names
            if before is not False:
                np.testing.assert_array_equal(estimates(self.model), before)
                assert len(self.model.history_) == epochs

    @rule(k=st.sampled_from([2, 3]), per_sample=st.booleans(), n=st.sampled_from([40, 12, 1, 0]))
    def fit(self, k, per_sample, n):
        given = {"cost": COST[k][:n]} if per_sample else {}
        self.attempt(lambda: self.model.fit(X[:n], Y[k][:n], **given))

    @rule(spoil=st.sampled_from([np.nan, np.inf, 1e300]))
    def fit_of_bad_rows(self, spoil):
        bad = X.copy()
        bad[3, 1] = spoil
        self.attempt(lambda: self.model.fit(bad, Y[3], cost=COST[3] * spoil))

    @rule(k=st.sampled_from([2, 3]), per_sample=st.booleans(), rows=st.sampled_from([40, 5, 1]))
    def partial_fit(self, k, per_sample, rows):
        given = {"cost": COST[k][:rows]} if per_sample else {}
        classes = None if self.is_fitted else np.arange(k)
        self.attempt(lambda: self.model.partial_fit(X[:rows], Y[k][:rows], classes, **given))

    @rule(name=st.sampled_from(list(PARAMETERS)), data=st.data())
    def set_params(self, name, data):
        self.model.set_params(**{name: data.draw(st.sampled_from(PARAMETERS[name]))})

    @rule()
    def pickle(self):
        self.model = self.copied(pickle.loads(pickle.dumps(self.model)))

    @rule()
    def deepcopy(self):
        self.model = self.copied(deepcopy(self.model))

    def copied(self, copy):
        assert self.is_fitted == hasattr(copy, "net_")
        if self.is_fitted:
            np.testing.assert_array_equal(estimates(copy), estimates(self.model))
        return copy

    @rule()
    def clone(self):
        assert not hasattr(clone(self.model), "net_")

    @precondition(lambda self: self.is_fitted)
    @rule(n=st.sampled_from([1, 3, 40]))
    def predict(self, n):
        whole = self.model.predict_cost(X)
        np.testing.assert_allclose(self.model.predict_cost(X[:n]), whole[:n], rtol=1e-5, atol=1e-7)
        assert set(self.model.predict(X)) <= set(self.model.classes_)

    @invariant()
    def estimates_are_finite(self):
        if self.is_fitted:
            assert np.isfinite(estimates(self.model)).all()
            assert len(self.model.history_) == len(self.model.net_.history)


TestCalls = Calls.TestCase
TestCalls.settings = examples(12)
