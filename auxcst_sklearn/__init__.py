"""Cost-sensitive deep learning for scikit-learn: networks that estimate what a decision costs."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._auxnet import CostSensitiveAuxNet
    from ._bayes import BayesMinimumRiskClassifier
    from ._cnn import CostSensitiveAuxCNN
    from ._csae import CSAEPretrainedMLP
    from ._mlp import CostSensitiveAuxMLP
    from ._mlp_cv import CostSensitiveAuxMLPCV
    from ._path import alpha_path

__version__ = version("auxcst_sklearn")

# Estimators load on first use: torch and scikit-learn take seconds, and `costs` needs no torch.
_HOME = {
    "BayesMinimumRiskClassifier": "_bayes",
    "CSAEPretrainedMLP": "_csae",
    "CostSensitiveAuxCNN": "_cnn",
    "CostSensitiveAuxMLP": "_mlp",
    "CostSensitiveAuxMLPCV": "_mlp_cv",
    "CostSensitiveAuxNet": "_auxnet",
    "alpha_path": "_path",
}

__all__ = [
    "BayesMinimumRiskClassifier",
    "CSAEPretrainedMLP",
    "CostSensitiveAuxCNN",
    "CostSensitiveAuxMLP",
    "CostSensitiveAuxMLPCV",
    "CostSensitiveAuxNet",
    "__version__",
    "alpha_path",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
