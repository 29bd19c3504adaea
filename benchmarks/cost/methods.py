"""What `bench_cost` compares: our estimators, and what a user could pick instead.

A :class:`Method` is one decision of a fit method; methods that only decide differently, such as a
cost-blind network with and without the Bayes decision, share their run. To add an estimator
of ours, add a line to :data:`OURS`.

"Same network" is one network by cross-entropy on the labels alone, trained by `ONE_NETWORK`, with
dropout and a schedule. All methods meet the same standardised features. Their parameters are the
libraries' defaults, but for more iterations where these would not converge.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from auxcst_sklearn import CostSensitiveAuxMLP
from benchmarks.common.recipes import ONE_NETWORK
from benchmarks.cost.fit_methods import (
    Classifier,
    CostSensitive,
    FitMethod,
    LogProbability,
    Network,
)
from benchmarks.cost.settings import Draw

# What an estimator of ours is called, and its parameters.
OURS: dict[str, dict[str, Any]] = {
    "ours: default": {},
    "ours: default, alpha 0": {"alpha": 0},
    "ours: default, no temperature": {"temperature": 1},
    "ours: default, one network": {"n_networks": 1},
    **{
        f"loss: {loss.replace('_', ' ').replace('one sided', 'one-sided')}, alpha {alpha}": {
            "loss": loss,
            "alpha": alpha,
        }
        for loss in ("one_sided", "smooth_one_sided", "softmin", "squared")
        for alpha in (0, 0.2)
    },
    **{
        f"loss: cross-entropy, alpha {alpha}": {"loss": "cross_entropy", "alpha": alpha}
        for alpha in (0, 0.2)
    },
}


def ours(parameters: dict[str, Any], draw: Draw) -> CostSensitiveAuxMLP:
    return CostSensitiveAuxMLP(**parameters, random_state=draw.random_state)


def blind(draw: Draw, **changed: Any) -> CostSensitiveAuxMLP:
    """One network, trained on the labels alone."""
    parameters = {**ONE_NETWORK, **changed, "loss": LogProbability(), "alpha": 0}
    return ours(parameters, draw)


def logistic(draw: Draw) -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def boosting(draw: Draw) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(early_stopping=True, random_state=draw.random_state)


class Method(NamedTuple):
    """A decision of a fit method."""

    fit_method: FitMethod
    decision: str = ""


_same = Network(blind)
METHODS: dict[str, Method] = {
    **{name: Method(CostSensitive(partial(ours, own))) for name, own in OURS.items()},
    "same network: blind": Method(_same, "blind"),
    "same network: Bayes": Method(_same, "Bayes"),
    "same network: Bayes, temperature": Method(_same, "temperature"),
    "Bayes: logistic": Method(Classifier(logistic), "Bayes"),
    "Bayes: boosting, early stop": Method(Classifier(boosting), "Bayes"),
}
