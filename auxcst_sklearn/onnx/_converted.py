"""What others convert to parts of a file: steps and classifiers by skl2onnx, networks by torch."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, version_converter
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor

from .._checks.data import holds_categories, is_frame, select
from .._checks.lazy_rows import exceeds_float32
from .._checks.nesting import walk
from .._estimators.export import DecisionModule
from .._inputs.columns import UNKNOWN
from .._inputs.images import ImagePreprocessor
from .._inputs.named import NamedPreprocessor
from .._inputs.tables import TablePreprocessor
from ..modules.wrapping import WrappedNetwork
from ._graph import (
    DEEP_TOLERANCE,
    OPSET,
    ROWS,
    Graph,
    GraphRows,
    array_type,
    first_line,
    names_of_columns,
    names_of_inputs,
)

# Of an example: not 0 or 1, which torch treats as constants.
N_ROWS = 3
# Their trees read float32.
FORESTS = (RandomForestClassifier, ExtraTreesClassifier, DecisionTreeClassifier)
SINGLE = (*FORESTS, AdaBoostClassifier, GradientBoostingClassifier)

# --------------------------------------------------------------------- columns


def coded_rows(levels: dict[int, NDArray[Any]], graph: Graph, rows: GraphRows) -> GraphRows:
    """Rows as one array, with codes of the levels of some columns."""
    X = rows.sample
    apart = is_frame(X) or X.dtype.kind in "OUS"
    if len(X.shape) == 1 or not (apart or levels):  # texts, or numbers
        return rows
    names = names_of_inputs(X) if apart else [ROWS] * X.shape[1]
    numbers, parts = "" if apart else graph.value(rows), []
    for j, name in enumerate(names):
        of_strings = any(isinstance(level, str) for level in levels.get(j, ()))
        elem_type = TensorProto.STRING if of_strings else TensorProto.DOUBLE
        if apart:
            column = graph.read(name, elem_type, 1)
        elif of_strings:
            raise ValueError(
                f"The steps of a pipeline return strings in column {j}, beside numbers, and a file "
                "has no array of both; expected numbers. Encode them in the pipeline."
            )
        else:
            column = graph.add("Gather", numbers, np.array([j]), axis=1)
        if j in levels:
            encoder = _encoder(levels[j], elem_type, name)
            column = graph.add("LabelEncoder", column, domain="ai.onnx.ml", **encoder)
        parts.append(column)
    return GraphRows(np.zeros(X.shape), graph.add("Concat", *parts, axis=1))


def _encoder(levels: NDArray[Any], elem_type: int, name: str) -> dict[str, Any]:
    """Codes of the levels; NaN for a missing one, if one was missing in the training."""
    keys: list[Any] = [level for level in levels if level == level]
    codes = [float(code) for code in range(len(keys))]
    missing: Any = ""
    if elem_type != TensorProto.STRING:
        if other := [level for level in keys if not isinstance(level, Real | np.bool_)]:
            raise ValueError(
                f"Column {name!r} of X has categories such as {other[0]!r}; expected strings or "
                "numbers, which a file can hold. Convert them, such as with astype(str)."
            )
        keys = np.array(keys, np.float64).tolist()
        missing = np.nan
    if len(keys) < len(levels):
        keys, codes = [*keys, missing], [*codes, np.nan]
    tensor = helper.make_tensor
    return {
        "keys_tensor": tensor("keys", elem_type, [len(keys)], keys),
        "values_tensor": tensor("codes", TensorProto.DOUBLE, [len(codes)], codes),
        "default_tensor": tensor("unknown", TensorProto.DOUBLE, [1], [float(UNKNOWN)]),
    }


def _types(X: Any) -> list[tuple[str, Any]]:
    """Inputs of a pipeline, in the form of skl2onnx."""
    from skl2onnx.common import data_types as kinds

    if len(X.shape) == 1:  # texts
        return [(ROWS, kinds.StringTensorType([None]))]
    if not is_frame(X):
        single = array_type(X.dtype) == np.float32
        cls = kinds.FloatTensorType if single else kinds.DoubleTensorType
        return [(ROWS, cls([None, *X.shape[1:]]))]
    inputs = []
    for j, name in enumerate(names_of_columns(X)):
        column = select(X, j)
        cls = kinds.StringTensorType if holds_categories(column) else kinds.DoubleTensorType
        inputs.append((name, cls([None, 1])))
    return inputs


# ----------------------------------------------------------------------- steps


def rows_of_steps(model: Pipeline, graph: Graph, rows: GraphRows) -> GraphRows:
    """The rows after all steps of a pipeline but the last."""
    steps = [step for step in model.steps[:-1] if not hasattr(step[1], "fit_resample")]
    if not steps:
        return rows
    (value,) = _converted(Pipeline(steps), graph, rows, "The steps before the classifier", OPSET)
    return GraphRows(np.zeros((1, model[-1].n_features_in_)), graph.as_double(value))


def estimates(model: Any, graph: Graph, rows: GraphRows, **options: Any) -> str:
    """Probabilities, or scores with `raw_scores`, of a classifier, in float64."""
    name = type(model).__name__ + (", whose raw scores a calibrator reads," if options else "")
    trees = attributes(model, "tree_")
    if any(np.isinf(tree.threshold).any() for tree in trees):
        raise ValueError(  # skl2onnx would not end
            f"{name} has trees that split missing values, which skl2onnx cannot convert. Fill "
            "them in by an imputer in a Pipeline, or use HistGradientBoostingClassifier instead."
        )
    _round_down(trees)
    rows, gaps = coded_rows({}, graph, rows), None
    if (trees or isinstance(model, SINGLE)) and rows.sample.ndim > 1:
        single, shape = (
            graph.add("Cast", graph.value(rows), to=TensorProto.FLOAT),
            rows.sample.shape,
        )
        rows = GraphRows(np.zeros(shape), graph.as_double(single))
        if isinstance(model, SINGLE):
            # The converted trees take missing values for large numbers: the result is unknown.
            gaps = graph.add("ReduceSum", graph.add("Mul", rows.value, 0.0), np.array([1]))
            rows = GraphRows(np.zeros(rows.sample.shape, np.float32), single)
    opset, chosen = {"": OPSET, "ai.onnx.ml": 3}, {id(model): options} if options else None
    value = _converted(model, graph, rows, name, opset, chosen)[1]
    for node in graph.nodes:
        if node.op_type == "ZipMap" and node.output[0] == value:  # a dict for each row
            value = node.input[0]
    value = graph.as_double(value)
    return value if gaps is None else graph.add("Add", value, gaps)


def _round_down(trees: list[Any]) -> None:
    """Round the thresholds of trees down to float32, in which trees read rows.

    A file contains float32, and the nearest one would move rows that lie on it.
    """
    for tree in trees:
        nearest = tree.threshold.astype(np.float32)
        below = np.nextafter(nearest, np.float32(-np.inf))
        tree.threshold[:] = np.where(nearest > tree.threshold, below, nearest)


def _converted(
    model: Any, graph: Graph, rows: GraphRows, name: str, opset: Any, options: Any = None
) -> list[str]:
    """The outputs of a part that skl2onnx converts."""
    try:
        converted = _convert(model, _types(rows.sample), opset, options)
    except Exception as error:
        raise ValueError(
            f"{name} cannot be converted by skl2onnx: {first_line(error)} Use other estimators, or "
            "convert the classifier by its own converter; see 'Other classifiers' in "
            "docs/production."
        ) from error
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    graph.converted += [type(step).__name__ for step in steps]
    for values in attributes(model, "statistics_"):
        if values.dtype.kind == "f":
            graph.imputed.update(zip(values.astype(np.float32).tolist(), values.tolist()))
    converted = version_converter.convert_version(converted, OPSET)
    return graph.embed(converted, rows, _missing_category(model))


def _convert(model: Any, types: list[Any], opset: Any, options: Any) -> onnx.ModelProto:
    from skl2onnx import convert_sklearn

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # skl2onnx reads deprecated attributes
        file: onnx.ModelProto = convert_sklearn(
            model, initial_types=types, target_opset=opset, options=options
        )
    for node in file.graph.node:
        _read_words_as_python(node)
    return file


def _read_words_as_python(node: onnx.NodeProto) -> None:
    """Make words as the default token_pattern does, in a locale that containers have."""
    if node.op_type == "StringNormalizer":
        node.attribute.append(helper.make_attribute("locale", "C.UTF-8"))
    for attribute in node.attribute if node.op_type == "Tokenizer" else ():
        if attribute.s == b"[a-zA-Z0-9_]+":
            attribute.s = rb"[\p{L}\p{N}_]{2,}"


def _missing_category(model: Any) -> str:
    """What skl2onnx calls the missing category of the encoders in a pipeline; "" if there is none.

    It takes the string for the category, where Python has None or NaN.
    """
    encoders = attributes(model, "categories_")
    levels = [level for encoder in encoders for level in np.concatenate(encoder)]
    names = {str(level) for level in levels if level is None or level != level}
    if len(names) != 1 or not (names | {""}).isdisjoint(levels):
        return ""  # what a missing string is, is not known
    return names.pop()


def attributes(model: Any, name: str) -> list[Any]:
    """A fitted attribute of all models inside of a model that have it."""
    return [vars(part)[name] for part in walk(model) if name in getattr(part, "__dict__", ())]


# -------------------------------------------------------------------- networks


def network_estimates(model: Any, graph: Graph, rows: GraphRows) -> list[str]:
    """Costs in currency, and probabilities and cost matrices of rows if the loss has them."""
    key = (id(model), rows.value)
    if key not in graph.networks:  # an ensemble reads its networks for two purposes
        if isinstance(model._inputs, TablePreprocessor):
            rows = coded_rows(model._inputs.categories, graph, rows)
        graph.converted.append(type(model).__name__)
        if isinstance(model._inputs, NamedPreprocessor):
            graph.tolerance = DEEP_TOLERANCE
            file = _exported(model, *_named_example(model._inputs, rows.sample))
        else:
            file = _exported(model, *_example(model._inputs, np.asarray(rows.sample)))
        outputs = graph.embed(file, rows)
        graph.networks[key] = model, outputs
    return graph.networks[key][1]


def _example(inputs: Any, X: np.ndarray) -> tuple[Tensor, Any, list[str]]:
    """Rows of an array, their free dimensions, and the name of the input."""
    is_image = isinstance(inputs, ImagePreprocessor) and not exceeds_float32(X)
    dtype = np.dtype(inputs.dtype) if is_image else array_type(X.dtype)
    example = torch.from_numpy(np.zeros((N_ROWS, *X.shape[1:]), dtype))
    return example, {0: torch.export.Dim.DYNAMIC}, [ROWS]


def _named_example(inputs: NamedPreprocessor, X: Any) -> tuple[dict[str, Tensor], Any, list[str]]:
    """The same of arrays by name, for sequences of any length."""
    layout, free = inputs.layout, torch.export.Dim.DYNAMIC
    rows = np.resize(np.arange(len(X)), N_ROWS)
    types = zip(layout.names, layout.dtypes)
    example = {name: torch.as_tensor(X[name][rows].astype(dtype)) for name, dtype in types}
    shapes = zip(layout.names, layout.shapes)
    return (
        example,
        {k: {0: free} | {i: free for i, n in enumerate(s, 1) if n is None} for k, s in shapes},
        [f"{ROWS}_{i}" for i in range(len(layout.names))],  # which no node has
    )


def _exported(model: Any, example: Any, free: Any, names: list[str]) -> onnx.ModelProto:
    """The network with a symbolic number of rows."""
    module = DecisionModule(model)
    module.module.set_precision(False)
    bodies = [file.body for file in module.modules() if isinstance(file, WrappedNetwork)]
    name = type((bodies or [module.module])[0]).__name__
    try:
        with torch.no_grad(), _without_notes():
            program = torch.export.export(module, (example,), dynamic_shapes=(free,))
            exported: Any = torch.onnx.export(
                program,
                (example,),
                dynamo=True,
                opset_version=OPSET,
                external_data=False,
                input_names=names,
                verbose=False,
            )
    except Exception as error:
        raise ValueError(
            f"{name} with the loss {model.loss!r} cannot be exported to ONNX: "
            f"{type(error).__name__}, {first_line(error.__cause__ or error)}"
        ) from error
    file: onnx.ModelProto = exported.model_proto
    for node in file.graph.node:  # without metadata of the conversion
        del node.metadata_props[:]
        node.doc_string = ""
    return file


@contextmanager
def _without_notes() -> Iterator[None]:
    """Without torch's notes on packages that are not needed, and on its own deprecations."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r".*treespec.*LeafSpec", FutureWarning)
            yield
    finally:
        logger.disabled = before
