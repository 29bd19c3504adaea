"""What `bench_tables` uses of packages that come with the extra `bench` alone."""

from __future__ import annotations

from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin


def load(module: str) -> Any:
    """Import a module when it is needed; the error names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is not installed or not complete ({error}); it comes with the extra "
            "'bench': pip install -e .[bench]"
        ) from error


class AutoGluon(ClassifierMixin, BaseEstimator):
    """A weighted ensemble of boostings and forests by AutoGluon, without its networks."""

    def __init__(self, presets: str = "medium_quality") -> None:
        self.presets = presets

    def fit(self, X: Any, y: NDArray) -> AutoGluon:
        self.classes_ = np.unique(y)
        self.folder_ = TemporaryDirectory()
        predictor = load("autogluon.tabular").TabularPredictor(
            "label",
            problem_type="binary" if len(self.classes_) == 2 else "multiclass",
            eval_metric="log_loss",
            path=self.folder_.name,
            verbosity=0,
        )
        self.predictor_ = predictor.fit(
            X.assign(label=y),
            presets=self.presets,
            excluded_model_types=["NN_TORCH", "FASTAI"],
            num_cpus=1,
            num_gpus=0,
        )
        return self

    def predict_proba(self, X: Any) -> NDArray:
        return self.predictor_.predict_proba(X, as_pandas=False, as_multiclass=True)


class CatBoost(ClassifierMixin, BaseEstimator):
    """CatBoost's defaults, with strings as its own categories."""

    def __init__(self, iterations: int | None = None, random_state: int | None = None) -> None:
        self.iterations = iterations
        self.random_state = random_state

    def fit(self, X: Any, y: NDArray) -> CatBoost:
        self.strings_ = list(X.select_dtypes(exclude="number"))
        self.model_ = load("catboost").CatBoostClassifier(
            iterations=self.iterations,
            cat_features=self.strings_,
            thread_count=1,
            random_seed=self.random_state,
            verbose=False,
            allow_writing_files=False,
        )
        self.model_.fit(self._filled(X), y)
        self.classes_ = self.model_.classes_
        return self

    def _filled(self, X: Any) -> Any:
        """CatBoost takes no gaps among strings."""
        return X.assign(**{name: X[name].fillna("").astype(str) for name in self.strings_})

    def predict_proba(self, X: Any) -> NDArray:
        return self.model_.predict_proba(self._filled(X))
