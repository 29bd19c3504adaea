"""Cost-sensitive deep learning for scikit-learn: networks that estimate the cost of decisions."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import costs as costs
    from . import datasets as datasets
    from . import decisions as decisions
    from . import losses as losses
    from . import metrics as metrics
    from . import modules as modules
    from . import onnx as onnx
    from . import plotting as plotting
    from ._estimators.auxnet import CostSensitiveAuxNet
    from ._estimators.bayes import BayesMinimumRiskClassifier
    from ._estimators.cnn import CostSensitiveAuxCNN
    from ._estimators.csae import CSAEPretrainedMLP
    from ._estimators.ensemble import CostSensitiveEnsembleClassifier
    from ._estimators.mlp import PAPER, CostSensitiveAuxMLP

try:
    __version__ = version("auxcst_sklearn")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0+unknown"

# Submodules and estimators load on first use: torch and scikit-learn take seconds, and `costs`
# needs no torch.
_SUBMODULES = ["costs", "datasets", "decisions", "losses", "metrics", "modules", "onnx", "plotting"]
_HOME = {
    "BayesMinimumRiskClassifier": "bayes",
    "CSAEPretrainedMLP": "csae",
    "CostSensitiveAuxCNN": "cnn",
    "CostSensitiveAuxMLP": "mlp",
    "CostSensitiveAuxNet": "auxnet",
    "CostSensitiveEnsembleClassifier": "ensemble",
    "PAPER": "mlp",
}

__all__ = [
    "PAPER",
    "BayesMinimumRiskClassifier",
    "CSAEPretrainedMLP",
    "CostSensitiveAuxCNN",
    "CostSensitiveAuxMLP",
    "CostSensitiveAuxNet",
    "CostSensitiveEnsembleClassifier",
    "__version__",
]


# Type checkers read the imports above; with this function they would accept any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _SUBMODULES:
            return import_module(f".{name}", __name__)
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"._estimators.{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
