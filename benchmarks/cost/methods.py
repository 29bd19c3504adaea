"""What `bench_cost` compares: our estimators, and all that a user could pick instead.

A :class:`Method` is one decision of a fit method; methods that only decide differently, such as a
cost-blind network with and without the Bayes decision, share their run. To add an estimator
of ours, add a line to :data:`OURS`.

"Same network" is one network by cross-entropy on the labels alone, trained by `ONE_NETWORK`, with
dropout and a schedule; "plain network" has neither, which a user need not know of. "CNN" are
convolutional networks, for colour images alone.

All methods meet the same standardised features. Their parameters are the libraries' defaults, but
for more iterations where these would not converge.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import isqrt
from typing import Any, NamedTuple

from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.neural_network import MLPClassifier

from auxcst_sklearn import CostSensitiveAuxCNN, CostSensitiveAuxMLP, CSAEPretrainedMLP
from auxcst_sklearn.metrics import cost_scorer
from benchmarks.common.recipes import ONE_NETWORK
from benchmarks.cost.fit_methods import (
    Classifier,
    CostSensitive,
    EstimatorFactory,
    FitMethod,
    LogProbability,
    Network,
    Pretrained,
    Reduction,
)
from benchmarks.cost.settings import Draw, Setting

# What an estimator of ours is called, and how it is made for a draw.
OURS: dict[str, EstimatorFactory] = {
    "default": lambda draw: CostSensitiveAuxMLP(random_state=draw.random_state),
    "default, alpha 0": lambda draw: CostSensitiveAuxMLP(alpha=0, random_state=draw.random_state),
    "default, alpha 0.2": lambda draw: CostSensitiveAuxMLP(
        alpha=0.2, random_state=draw.random_state
    ),
    "default, no temperature": lambda draw: CostSensitiveAuxMLP(
        temperature=1, random_state=draw.random_state
    ),
    "default, one network": lambda draw: CostSensitiveAuxMLP(
        n_networks=1, random_state=draw.random_state
    ),
}
LOSSES: dict[str, str] = {
    "Bayes risk": "bayes_risk",
    "cross-entropy": "cross_entropy",
    "one-sided": "one_sided",
    "smooth one-sided": "smooth_one_sided",
    "softmin": "softmin",
    "squared": "squared",
}
ALPHAS = (0, 0.2)
TUNED = {"loss": ["bayes_risk", "softmin"], "alpha": ALPHAS}
PLAIN = {"dropout": 0, "schedule": "constant", "learning_rate": 1e-3}


def tuned(draw: Draw) -> GridSearchCV:
    """Loss and alpha by the cost of a quarter of the training set."""
    return GridSearchCV(
        CostSensitiveAuxMLP(random_state=draw.random_state),
        TUNED,
        scoring=cost_scorer,
        cv=StratifiedShuffleSplit(1, test_size=0.25, random_state=draw.random_state),
        error_score="raise",
    )


def of_loss(loss: str, alpha: float, draw: Draw) -> CostSensitiveAuxMLP:
    return CostSensitiveAuxMLP(loss=loss, alpha=alpha, random_state=draw.random_state)


def blind(draw: Draw, **changed: Any) -> CostSensitiveAuxMLP:
    """One network, trained on the labels alone."""
    return CostSensitiveAuxMLP(
        **{**ONE_NETWORK, **changed},
        loss=LogProbability(),
        alpha=0,
        random_state=draw.random_state,
    )


def cnn(draw: Draw, **changed: Any) -> CostSensitiveAuxCNN:
    """The default network for square colour images, which it sees mirrored and shifted."""
    side = isqrt(draw.X_train.shape[1] // 3)
    return CostSensitiveAuxCNN(
        image_shape=(3, side, side),
        augmentation="flip_shift",
        random_state=draw.random_state,
        **changed,
    )


def logistic(draw: Draw) -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def perceptron(draw: Draw) -> MLPClassifier:
    return MLPClassifier(max_iter=500, random_state=draw.random_state)


def forest(draw: Draw) -> RandomForestClassifier:
    return RandomForestClassifier(random_state=draw.random_state)


def boosting(draw: Draw) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(random_state=draw.random_state)


def early_boosting(draw: Draw) -> HistGradientBoostingClassifier:
    """With thousands of pixels, fewer bins and features per split: else it takes minutes."""
    fast = {"max_bins": 32, "max_features": 0.1} if draw.pixels else {}
    return boosting(draw).set_params(early_stopping=True, **fast)


def boosted_regression(draw: Draw) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(random_state=draw.random_state)


def ridge(draw: Draw) -> RidgeCV:
    return RidgeCV()


LeftOut = Callable[[Setting], str | None]


def never_left_out(setting: Setting) -> None:
    return None


def always_left_out(setting: Setting) -> str:
    return "costsensitive is not installed"


def too_slow_for_images(setting: Setting) -> str | None:
    return "too slow for images" if setting.pixels else None


def has_colour(setting: Setting) -> bool:
    return setting.data.startswith("cifar")


def too_slow_for_colour(setting: Setting) -> str | None:
    return "too slow for colour images" if has_colour(setting) else None


def colour_alone(setting: Setting) -> str | None:
    return None if has_colour(setting) else "for colour images alone"


def too_slow_beyond(n_classes: int, setting: Setting) -> str | None:
    if setting.n_classes > n_classes:
        return f"too slow for more than {n_classes} classes"
    return too_slow_for_images(setting)


def told_the_matrix(setting: Setting) -> str | None:
    return None if setting.costs_differ else "costs are those of a matrix"


class Method(NamedTuple):
    """A decision of a fit method; `left_out` returns why a setting leaves it out, or None."""

    fit_method: FitMethod
    decision: str = ""
    left_out: LeftOut = never_left_out


def reduced(reduction: str, base: EstimatorFactory, left_out: LeftOut | None = None) -> Method:
    def estimator(draw: Draw) -> Any:
        return getattr(import_module("costsensitive"), reduction)(base(draw), njobs=1)

    if find_spec("costsensitive") is None:
        left_out = always_left_out
    return Method(Reduction(estimator), left_out=left_out or never_left_out)


CNN: dict[str, EstimatorFactory] = {
    "default": cnn,
    "default, alpha 0": partial(cnn, alpha=0),
    "default, alpha 0.2": partial(cnn, alpha=0.2),
    "default, no temperature": partial(cnn, temperature=1),
    "default, one network": partial(cnn, n_networks=1),
}
_same, _plain = Network(blind), Network(partial(blind, **PLAIN))
_one_cnn = {"n_networks": 1, "early_stopping": False, "alpha": 0}
_cnn = Network(partial(cnn, loss=LogProbability(), **_one_cnn))
METHODS: dict[str, Method] = {
    **{f"ours: {name}": Method(CostSensitive(estimator)) for name, estimator in OURS.items()},
    "ours: tuned": Method(CostSensitive(tuned), left_out=too_slow_for_colour),
    "ours: CSAE-pretrained": Method(
        Pretrained(lambda draw: CSAEPretrainedMLP(random_state=draw.random_state)),
    ),
    **{
        f"loss: {name}, alpha {alpha}": Method(
            CostSensitive(partial(of_loss, loss, alpha)), left_out=too_slow_for_images
        )
        for name, loss in LOSSES.items()
        for alpha in ALPHAS
    },
    "same network: blind": Method(_same, "blind"),
    "same network: Bayes": Method(_same, "Bayes"),
    "same network: Bayes, temperature": Method(_same, "temperature"),
    "same network: Bayes, costs told": Method(_same, "told", told_the_matrix),
    "plain network: blind": Method(_plain, "blind"),
    "plain network: Bayes": Method(_plain, "Bayes"),
    "plain network: Bayes, temperature": Method(_plain, "temperature"),
    **{
        f"CNN: {name}": Method(CostSensitive(estimator), left_out=colour_alone)
        for name, estimator in CNN.items()
    },
    **{f"CNN: {name}": Method(_cnn, name, colour_alone) for name in ("blind", "Bayes")},
    "CNN: Bayes, temperature": Method(_cnn, "temperature", colour_alone),
    "Bayes: logistic": Method(Classifier(logistic), "Bayes"),
    "Bayes: MLPClassifier": Method(Classifier(perceptron), "Bayes"),
    "Bayes: forest": Method(Classifier(forest), "Bayes"),
    "Bayes: boosting": Method(Classifier(boosting), "Bayes", too_slow_for_images),
    "Bayes: boosting, early stop": Method(Classifier(early_boosting), "Bayes"),
    "reduction: all pairs, logistic": reduced("WeightedAllPairs", logistic, too_slow_for_colour),
    "reduction: all pairs, boosting": reduced(
        "WeightedAllPairs", boosting, partial(too_slow_beyond, 5)
    ),
    "reduction: one-vs-rest, logistic": reduced("WeightedOneVsRest", logistic),
    "reduction: one-vs-rest, boosting": reduced(
        "WeightedOneVsRest", boosting, partial(too_slow_beyond, 10)
    ),
    "reduction: regression, ridge": reduced("RegressionOneVsRest", ridge),
    "reduction: regression, boosting": reduced(
        "RegressionOneVsRest", boosted_regression, partial(too_slow_beyond, 10)
    ),
}
