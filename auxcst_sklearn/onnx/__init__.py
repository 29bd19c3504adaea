"""The whole decision of a fitted model as an ONNX file, which runs without torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted
from skorch.helper import SliceDict

from .._checks.data import are_named, is_frame
from .._checks.labels import shorten
from .._checks.nesting import before_last
from .._estimators.base import BaseCostSensitiveNet
from .._estimators.bayes_decision import BayesDecisionMixin
from .._inputs.named import as_arrays
from ..losses import NAMES_WITH_PROBABILITIES

__all__ = ["to_onnx"]
__dir__ = __all__.copy  # without imported names


@dataclass(slots=True, repr=False)
class DecisionFile:
    """The ONNX file of a decision, as `to_onnx` returns it.

    Attributes and methods of ``onnx.ModelProto``, such as ``SerializeToString()``, can be read and
    called. To set one, use `model`, as in ``file.model.ir_version = 8``.

    Attributes
    ----------
    model : onnx.ModelProto
        The model, for functions of onnx.
    """

    model: Any

    def __getattr__(self, name: str) -> Any:
        if name == "model" or name.startswith("__"):  # as copies look for, which have no model yet
            raise AttributeError(name)
        return getattr(self.model, name)

    def __repr__(self) -> str:  # of a ModelProto it has thousands of lines
        graph, size = self.model.graph, self.model.ByteSize()
        inputs, outputs = ([value.name for value in part] for part in (graph.input, graph.output))
        return f"DecisionFile(inputs={inputs}, outputs={outputs}, {size:,} bytes)"


def to_onnx(
    model: Any,
    X: ArrayLike,
    path: str | Path | None = None,
    *,
    cost_input: bool | Literal["auto"] = "auto",
) -> DecisionFile:
    """Write the whole decision of a fitted model as one ONNX file, which runs without torch.

    The file computes what `predict_cost`, `decide` and `predict_proba` compute, without the
    validation of rows. It contains scales, missing values and categories, all networks and members,
    calibration, costs, currency and the choice of the cheapest decision. It accepts any number of
    rows. It is compared with the model before it is returned.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted classifier of this package, or a ``Pipeline`` that ends with one and whose other
        steps skl2onnx can convert. Members of a
        :class:`~auxcst_sklearn.CostSensitiveEnsembleClassifier`, and the classifier of a
        :class:`~auxcst_sklearn.BayesMinimumRiskClassifier`, may be networks,
        :class:`~sklearn.ensemble.HistGradientBoostingClassifier`, forests, pipelines, classifiers
        with sigmoid or isotonic :class:`~sklearn.calibration.CalibratedClassifierCV`, and all
        others that skl2onnx can convert. A ``VotingClassifier`` needs ``flatten_transform=False``,
        and an array as weights.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Some rows in the form passed to `predict`, which determine the names and types of the
        inputs, and on which the file is compared with the model: pass some hundred, with the
        missing values, rare categories and lengths of sequences that the service will see. An array
        is one input ``"X"``: float32 and uint8 keep their type, all others are float64; sparse rows
        are passed to the file as dense ones. Texts for a ``TfidfVectorizer``, (n,), are one input
        of strings. A DataFrame has an input of shape (n, 1) for each column, with its name: of
        strings for string columns, float64 for all others. The name of an output or of
        ``"cost_matrices"`` becomes ``"cost_"`` and the like. A missing number is NaN, a missing
        string ``""``.
    path : str or Path, default=None
        Where to write the file; None to only return the model.
    cost_input : bool or "auto", default="auto"
        Whether costs are known when deciding: the file then has an input ``"cost_matrices"`` of
        float64, (1 or n, n_classes, n_decisions), one matrix for all rows or a matrix for each, as
        `cost` of `decide`. "auto" if the model was fitted with a matrix for each sample, as with a
        function of X.

    Returns
    -------
    DecisionFile
        The model, as an ``onnx.ModelProto`` whose ``repr`` is a line, with outputs ``"cost"`` (n,
        n_decisions) in currency, ``"index"`` (n,), the position of the cheapest decision, -1 if a
        cost is not finite, and ``"probability"`` (n, n_classes) if the model has class
        probabilities. Its metadata hold the labels, ``"classes"`` and ``"decisions"``, as JSON,
        which are the same unless the costs name other decisions.

    Raises
    ------
    ImportError
        If the packages of the extra ``onnx`` are not installed.
    TypeError
        If the model is not a classifier of this package.
    ValueError
        If a network, a member, a step of a pipeline or the name of a column cannot be exported,
        which the message names; if costs are an input and the loss has no class probabilities; or
        if the file differs from the model, with the largest difference and its row.

    Notes
    -----
    Networks, also those with ``precision="bf16"``, and forests compute in float32 in the file;
    boosting and costs in float64. The file does not validate its rows: infinite values give
    meaningless costs.

    The converters of other packages are wrong for some models. The file is therefore run on up to
    500 rows of `X`, or 100 if they are sparse. What does not occur in them is not compared. Costs
    and probabilities agree to 1e-5 of the largest one of a row, and decisions unless costs are as
    close. With isotonic calibration, which has steps, 2% of the rows may differ.

    ``""`` is a missing string for the file and for the estimators of this package. For encoders of
    scikit-learn it is a category of its own, which a file cannot distinguish from a missing value.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from auxcst_sklearn import CostSensitiveAuxMLP
    >>> from auxcst_sklearn.onnx import to_onnx
    >>> X, y = load_wine(return_X_y=True)
    >>> model = CostSensitiveAuxMLP(1, 8, n_networks=2, max_epochs=2, random_state=0).fit(X, y)
    >>> file = to_onnx(model, X, "wine.onnx")  # doctest: +SKIP
    """
    estimator = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(estimator, BaseCostSensitiveNet | BayesDecisionMixin):
        raise TypeError(
            f"model is {type(estimator).__name__}; expected a classifier of auxcst_sklearn, or a "
            "Pipeline that ends with one. BayesMinimumRiskClassifier makes one of any other; "
            "of a search pass best_estimator_."
        )
    check_is_fitted(estimator)
    is_known = estimator._kind_of_costs == "matrices"
    takes_costs = is_known if cost_input == "auto" else cost_input
    loss = getattr(estimator, "loss", None)
    if not takes_costs and estimator._deciding_function is not None:
        raise ValueError(
            "cost_input=False, but cost_matrix is a function of X, which a file does not contain; "
            "expected 'auto' or True: the file then has the input 'cost_matrices', for the costs "
            "that the function returns."
        )
    if takes_costs and not estimator._has_probabilities():
        raise ValueError(
            f"cost_input={cost_input!r} needs class probabilities, but loss={loss!r} has none; "
            f"use {NAMES_WITH_PROBABILITIES}, or cost_input=False."
        )
    if torch.__version__ < "2.7":  # a version object, not a string
        raise ImportError(
            f"to_onnx needs torch 2.7 or newer, and {torch.__version__} is installed; its exporter "
            "would fix the number of rows."
        )
    with _extra():
        from ._agreement import check_agreement
        from ._estimates import assemble
    held = {key: _as_json(key, getattr(estimator, f"{key}_")) for key in ("classes", "decisions")}
    rows = _rows(X)
    before: Any = X if is_frame(X) else rows
    before = before_last(model, before) if isinstance(model, Pipeline) else before
    if isinstance(estimator, BaseCostSensitiveNet):
        estimator._inputs.validate(estimator, before, reset=False)
    else:
        estimator.predict_proba(before)
    model = deepcopy(model)  # which is changed to compute as a file does; the given one may serve
    with _extra():
        file, graph = assemble(model, rows, takes_costs)
    check_agreement(file, model, rows, graph)
    for key, labels in held.items():
        file.metadata_props.add(key=key, value=labels)
    if path is not None:
        Path(path).write_bytes(file.SerializeToString())
    return DecisionFile(file)


def _as_json(name: str, labels: NDArray[Any]) -> str:
    """The text of labels, if JSON has them."""
    if labels.dtype.kind in "biufU" or all(isinstance(k, str | int | float) for k in labels):
        return json.dumps(labels.tolist())
    shown = f"{name}_ are {shorten(labels)}; expected texts, numbers or booleans"
    raise ValueError(f"{shown}, which a file can hold. Convert them first, by astype(str).")


def _rows(X: Any) -> Any:
    """A DataFrame, arrays by name, or an array."""
    if are_named(X):
        return SliceDict(**as_arrays(X))
    if is_frame(X):
        return X
    if sparse.issparse(X):
        return X.tocsr()[:100].toarray()
    rows = np.asarray(X)
    if rows.dtype.kind in "US" and not isinstance(X, np.ndarray):
        return np.asarray(X, dtype=object)  # lists may mix strings and numbers
    return rows


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"to_onnx needs {error.name}: pip install 'auxcst_sklearn[onnx]'"
        ) from error
