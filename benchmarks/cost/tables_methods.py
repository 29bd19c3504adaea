"""What `bench_tables` compares: our networks, and what a user could pick for a table instead.

Cost-blind classifiers take the Bayes decision: the class of least expected cost by their
probabilities, with the known matrix of each row where there is one. Cost-sensitive methods are
fitted with the costs. Those of empulse have two entries of the same fit: "own" is their `predict`,
which takes no costs, "Bayes" the decision by their probabilities and known costs, as empulse
recommends for its forest. They are for two classes. Its boosting is that of LightGBM.

Parameters are the libraries' defaults unless stated. What each method is given of a table says its
`inputs`; the conversion is part of the fit, and of its CPU seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RandomizedSearchCV, StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveEnsembleClassifier
from auxcst_sklearn.metrics import mean_cost
from benchmarks.cost.fit_methods import timed
from benchmarks.cost.tables_data import TableSplit
from benchmarks.cost.tables_extras import AutoGluon, CatBoost, load

REVISION = 2  # to be raised where a change of code here changes results
OURS_REVISION = 9  # to be raised where a change of our package changes results
OURS_INPUTS = "frame"  # "frame": ours takes strings and missing values as they are
N_CATEGORIES = 255  # the most that scikit-learn's boosting takes

ENSEMBLE = "ours: ensemble"
DEFAULT = "ours: default"
PLAIN = "ours: plain"
# One network by cross-entropy on the labels alone, as long as a user would train it.
PLAIN_NETWORK = {
    "n_networks": 1,
    "alpha": 0,
    "loss": "cross_entropy",
    "early_stopping": False,
    "max_epochs": 50,
    "ema_epochs": 0,
}
BOOSTINGS = ("boosting", "boosting, early stop")


# --- inputs -----------------------------------------------------------------------------------


def numbers() -> Any:
    """Numbers alone: medians for gaps, standardised; a column for each frequent string."""
    is_number = make_column_selector(dtype_include="number")
    one_hot = OneHotEncoder(
        min_frequency=20, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    return make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), is_number),
        (one_hot, make_column_selector(dtype_exclude="number")),
    )


class Categories:
    """Frames whose strings are categories: those of the training rows, the most frequent ones.

    All others are missing values, as in the table.
    """

    def fit_transform(self, X: Any) -> Any:
        strings = X.select_dtypes(exclude="number")
        self.kept = {
            column: sorted(strings[column].value_counts().index[:N_CATEGORIES])
            for column in strings
        }
        return self.transform(X)

    def transform(self, X: Any) -> Any:
        categorical = load("pandas").CategoricalDtype
        dtypes = {column: categorical(kept) for column, kept in self.kept.items()}
        kept = {column: X[column].where(X[column].isin(self.kept[column])) for column in dtypes}
        return X.assign(**kept).astype(dtypes)


class Filled(Categories):
    """The same, with medians of the training rows for gaps among numbers."""

    def fit_transform(self, X: Any) -> Any:
        self.medians = X.select_dtypes("number").median()
        return super().fit_transform(X)

    def transform(self, X: Any) -> Any:
        return super().transform(X.fillna(self.medians))


INPUTS: dict[str, Callable[[], Any]] = {
    "numbers": numbers,
    "categories": Categories,
    "filled": Filled,
    "frame": FunctionTransformer,  # as they are
}


# --- methods ----------------------------------------------------------------------------------


class TableMethod(NamedTuple):
    """How a model is made from a random state, what it is given, and how it decides.

    `costs` are those of the fit: "none"; "ours", a matrix or known ones; "empulse", the cost of
    each outcome for each row; "vectors", those of each row's true class alone, and none in the
    decision; "means", the class means of these vectors, in the decision. `packages` are those whose
    release may change the result.
    """

    make: Callable[[int], Any]
    inputs: str = "numbers"
    costs: str = "none"
    packages: tuple[str, ...] = ("scikit-learn",)
    decision: str = "Bayes"
    slow: bool = False
    ablation: bool = False

    @property
    def two_classes(self) -> bool:
        return self.costs == "empulse"

    @property
    def is_ours(self) -> bool:
        return self.costs in ("ours", "vectors")

    @property
    def row_costs(self) -> bool:
        """Whether the method needs costs that differ within a class."""
        return self.costs in ("vectors", "means")

    def identity(self, random_state: int) -> dict[str, Any]:
        """All that determines the result beside the split; the decisions share a run."""
        model = self.make(random_state)
        return {
            "model": type(model).__name__,
            "revision": [REVISION, OURS_REVISION] if self.is_ours else [REVISION],
            "inputs": self.inputs,
            "costs": self.costs,
            **{package: version(package) for package in self.packages},
            **{name: repr(value) for name, value in model.get_params().items()},
        }

    def run(self, split: TableSplit) -> dict[str, Any]:
        """Mean test cost of each decision, and CPU seconds of the fit."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", message="Found unknown categories")
            decisions, probability, seconds = self.decide(split)
        return {
            "test_costs": {name: bill(split, y_pred) for name, y_pred in decisions.items()},
            "log_loss": log_loss(split.y_test, probability),
            "constant_cost": bill(split, constant(split)),
            "n_train": len(split.y_train),
            "n_test": len(split.y_test),
            "cpu_seconds": round(seconds, 3),
        }

    def decide(self, split: TableSplit) -> tuple[dict[str, NDArray], NDArray, float]:
        """Predictions for the test rows by each decision, probabilities, CPU seconds of the fit."""
        inputs, model = INPUTS[self.inputs](), self.make(split.random_state)

        def fit() -> Any:
            X = inputs.fit_transform(split.X_train)
            return self.fit(model, X, split)

        fitted, seconds = timed(fit)
        X = inputs.transform(split.X_test)
        probability = fitted.predict_proba(X)
        if self.is_ours:
            hidden = split.cost_test is None or self.costs == "vectors"
            known = {} if hidden else {"cost": split.cost_test}
            return {"Bayes": fitted.predict(X, **known)}, probability, seconds
        if self.costs == "means":
            paid = split.vectors("train")
            means = [paid[split.y_train == k].mean(axis=0) for k in range(split.n_classes)]
            return {"Bayes": (probability @ means).argmin(axis=1)}, probability, seconds
        own = {"own": fitted.predict(X)} if self.costs == "empulse" else {}
        return {"Bayes": least_cost(probability, split), **own}, probability, seconds

    def fit(self, model: Any, X: Any, split: TableSplit) -> Any:
        if self.costs in ("none", "means"):
            return model.fit(X, split.y_train)
        if self.costs == "vectors":
            return model.fit(X, split.y_train, cost=split.vectors("train"))
        if self.costs == "empulse":
            return model.fit(X, split.y_train, **outcome_costs(split.matrices("train")))
        if split.cost_matrix is None:
            return model.fit(X, split.y_train, cost=split.cost_train)
        return model.set_params(cost_matrix=split.cost_matrix).fit(X, split.y_train)


def outcome_costs(matrices: NDArray) -> dict[str, NDArray]:
    """The costs of true and false positives and negatives; rows are the true classes."""
    cell = {"tn_cost": (0, 0), "fp_cost": (0, 1), "fn_cost": (1, 0), "tp_cost": (1, 1)}
    return {name: matrices[:, true, given].copy() for name, (true, given) in cell.items()}


def least_cost(probability: NDArray, split: TableSplit) -> NDArray:
    """The Bayes decision."""
    return np.einsum("nj,njk->nk", probability, split.matrices("test")).argmin(axis=1)


def log_loss(label: NDArray, probability: NDArray) -> float:
    """Mean log loss; probabilities are at least a millionth."""
    return float(-np.log(np.clip(probability[np.arange(len(label)), label], 1e-6, 1)).mean())


def constant(split: TableSplit) -> NDArray:
    """The one class that is cheapest on the training rows, for all test rows."""
    paid = split.matrices("train")[np.arange(len(split.y_train)), split.y_train]
    return np.full(len(split.y_test), paid.mean(axis=0).argmin())


def bill(split: TableSplit, y_pred: NDArray) -> float:
    classes = list(range(split.n_classes))
    return mean_cost(split.y_test, y_pred, cost=split.matrices("test"), classes=classes)


def boosting(seed: int, **changed: Any) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        categorical_features="from_dtype", random_state=seed, **changed
    )


def calibrated(seed: int, method: str) -> CalibratedClassifierCV:
    return CalibratedClassifierCV(boosting(seed, early_stopping=True), method=method, cv=5)


def searched(seed: int) -> RandomizedSearchCV:
    """About as much CPU time as our default takes."""
    space = {
        "learning_rate": [0.02, 0.03, 0.05, 0.1, 0.2],
        "max_leaf_nodes": [7, 15, 31, 63],
        "min_samples_leaf": [5, 10, 20, 50],
        "l2_regularization": [0, 0.1, 1, 10],
        "max_features": [0.3, 0.5, 1.0],
    }
    model = boosting(seed, early_stopping=True, max_iter=300)
    return RandomizedSearchCV(
        model, space, n_iter=6, scoring="neg_log_loss", cv=3, random_state=seed
    )


class OnNumbers(ClassifierMixin, BaseEstimator):
    """A classifier of numbers for tables of all kinds."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: NDArray) -> OnNumbers:
        self.model_ = make_pipeline(numbers(), clone(self.estimator)).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> NDArray:
        return self.model_.predict_proba(X)


class FoldBoostings(ClassifierMixin, BaseEstimator):
    """The mean of five boostings, each stopped early by the fold that it does not learn from."""

    def __init__(self, random_state: int) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: NDArray) -> FoldBoostings:
        folds = StratifiedKFold(5, shuffle=True, random_state=self.random_state)
        self.classes_ = np.unique(y)
        self.estimators_ = [
            boosting(self.random_state, early_stopping=True, max_iter=300).fit(
                X.iloc[seen], y[seen], X_val=X.iloc[unseen], y_val=y[unseen]
            )
            for seen, unseen in folds.split(y, y)
        ]
        return self

    def predict_proba(self, X: Any) -> NDArray:
        return np.mean([estimator.predict_proba(X) for estimator in self.estimators_], axis=0)


def light(seed: int | None) -> Any:
    return load("lightgbm").LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1)


def forest(seed: int) -> RandomForestClassifier:
    return RandomForestClassifier(300, min_samples_leaf=3, random_state=seed)


def perceptron(seed: int) -> MLPClassifier:
    return MLPClassifier((256, 256, 256), early_stopping=True, random_state=seed)


def of_empulse(name: str, seed: int) -> Any:
    """The cost-sensitive boosting has no random state of its own, the regression has none."""
    make = getattr(load("empulse.models"), name)
    if name == "CSBoostClassifier":
        return make(light(seed))
    return make(random_state=seed) if name == "CSForestClassifier" else make()


def of_pytabkit(name: str, seed: int, **changed: Any) -> Any:
    return getattr(load("pytabkit"), name)(device="cpu", random_state=seed, n_threads=1, **changed)


def ours(seed: int, **changed: Any) -> CostSensitiveAuxMLP:
    return CostSensitiveAuxMLP(random_state=seed, **changed)


def ensemble(seed: int) -> CostSensitiveEnsembleClassifier:
    return CostSensitiveEnsembleClassifier(random_state=seed)


def ensemble_with(third: str, seed: int) -> CostSensitiveEnsembleClassifier:
    """The default members, and a third one, which gets its random state from the ensemble."""
    given = ensemble(seed).set_params(network__verbose=0)  # makes the list of the default members
    return given.set_params(estimators=[*given.estimators, (third.lower(), THIRD[third]())])


THIRD: dict[str, Callable[[], Any]] = {
    "CatBoost": partial(CatBoost, iterations=300),
    "LightGBM": lambda: OnNumbers(light(None)),
    "trees": lambda: OnNumbers(ExtraTreesClassifier(300, min_samples_leaf=2)),
}

# The default, with one of its parts taken away or replaced.
ABLATIONS: dict[str, dict[str, Any]] = {
    "one network": {"n_networks": 1},
    "three networks": {"n_networks": 3},
    "fixed length": {"early_stopping": False, "max_epochs": 50},
    "last weights": {"ema_epochs": 0},
    "no temperature": {"temperature": 1},
    "no bins": {"n_bins": 0},
    "no factors": {"learn_scales": False},
    "no heads": {"alpha": 0},
    "heads that learn costs": {"aux_loss": "one_sided"},
    "ReLU": {"activation": "relu"},
}


OURS_PACKAGES = ("auxcst_sklearn", "torch", "skorch", "scikit-learn")
_ours = partial(TableMethod, inputs=OURS_INPUTS, costs="ours", packages=OURS_PACKAGES)
BY_LOG_LOSS = {"val_metric_name": "cross_entropy"}


def _pytabkit(make: Callable[[int], Any], inputs: str = "categories") -> TableMethod:
    return TableMethod(make, inputs, packages=("pytabkit", "torch", "scikit-learn"), slow=True)


_empulse = partial(TableMethod, costs="empulse", packages=("empulse", "lightgbm", "scikit-learn"))

METHODS: dict[str, TableMethod] = {
    ENSEMBLE: _ours(ensemble),
    DEFAULT: _ours(ours),
    **{
        f"{ENSEMBLE} and {name}": _ours(
            partial(ensemble_with, name),
            packages=(*OURS_PACKAGES, "catboost", "lightgbm"),
            slow=True,
        )
        for name in THIRD
    },
    PLAIN: _ours(partial(ours, **PLAIN_NETWORK)),
    **{
        f"ours: {name}": _ours(partial(ours, **changed), ablation=True)
        for name, changed in ABLATIONS.items()
    },
    BOOSTINGS[0]: TableMethod(boosting, "categories"),
    BOOSTINGS[1]: TableMethod(partial(boosting, early_stopping=True), "categories"),
    "boosting, isotonic": TableMethod(partial(calibrated, method="isotonic"), "categories"),
    "boosting, temperature": TableMethod(partial(calibrated, method="temperature"), "categories"),
    "five boostings": TableMethod(FoldBoostings, "categories"),
    "boosting, searched": TableMethod(searched, "categories", slow=True),
    "LightGBM": TableMethod(light, "categories", packages=("lightgbm",)),
    "CatBoost": TableMethod(
        lambda seed: CatBoost(random_state=seed), "frame", packages=("catboost",), slow=True
    ),
    "forest": TableMethod(forest),
    "logistic": TableMethod(lambda seed: LogisticRegression(max_iter=1000)),
    "MLPClassifier": TableMethod(perceptron),
    f"{ENSEMBLE}, vectors": _ours(ensemble, costs="vectors", slow=True),
    f"{DEFAULT}, vectors": _ours(ours, costs="vectors", slow=True),
    "boosting, vectors": TableMethod(
        partial(boosting, early_stopping=True), "categories", "means", slow=True
    ),
    **{
        f"{name}: {decision}": _empulse(partial(of_empulse, f"{name}Classifier"), decision=decision)
        for name in ("CSBoost", "CSForest", "CSLogit")
        for decision in ("own", "Bayes")
    },
    "AutoGluon": TableMethod(
        lambda _: AutoGluon(), "frame", packages=("autogluon.tabular",), slow=True
    ),
    "RealMLP-TD": _pytabkit(partial(of_pytabkit, "RealMLP_TD_Classifier")),
    "TabM-D": _pytabkit(partial(of_pytabkit, "TabM_D_Classifier")),
    # Stopped by the log loss, and without label smoothing, because all decide by probabilities.
    **{
        name: _pytabkit(
            partial(of_pytabkit, "RealMLP_TD_Classifier", use_ls=False, n_cv=n_cv, **BY_LOG_LOSS),
            "filled",
        )
        for name, n_cv in {"RealMLP": 1, "RealMLP, five folds": 5}.items()
    },
    "TabM": _pytabkit(partial(of_pytabkit, "TabM_D_Classifier", **BY_LOG_LOSS), "filled"),
}
