"""The decision of a fitted model as one file, by the probabilities of any classifier or network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from .._checks.labels import label_index
from .._checks.nesting import delegate
from .._estimators.base import BaseCostSensitiveNet
from .._estimators.bayes import BayesMinimumRiskClassifier
from .._estimators.ensemble import CostSensitiveEnsembleClassifier
from .._estimators.members import FoldMean
from .._estimators.table_models import TableBoosting, TableLogistic
from .._training.temperature import SMALLEST
from ._converted import coded_rows, estimates, network_estimates, rows_of_steps
from ._graph import MATRICES, Graph, GraphRows

# Exact types: a subclass may predict in another way.
BOOSTING = (HistGradientBoostingClassifier, TableBoosting)
NEVER = -2  # no code of a category

# Of a node, before its mode, which is LEAF for leaves; children are positions.
_FIELDS = ("featureids", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")


def assemble(model: Any, X: Any, takes_costs: bool) -> tuple[onnx.ModelProto, Graph]:
    """The steps before the last estimator, its estimates, and the decision, -1 if it is unknown."""
    graph, rows = Graph(), GraphRows(X)
    if isinstance(model, Pipeline):
        rows, model = rows_of_steps(model, graph, rows), model[-1]
    cost, *p = cost_and_probability(model, graph, rows)
    n_columns = len(model.classes_), len(model.decisions_)
    if takes_costs:
        row = graph.add("Unsqueeze", p[0], np.array([1]))
        matrices = graph.read(MATRICES, onnx.TensorProto.DOUBLE, *n_columns)
        expected = graph.add("MatMul", row, matrices)
        cost = graph.add("Squeeze", expected, np.array([1]))
    gap = graph.add("ReduceSum", graph.add("Sub", cost, cost), np.array([1]), keepdims=0)
    cheapest = graph.add("ArgMin", cost, axis=1, keepdims=0)
    index = graph.add("Where", graph.add("IsNaN", gap), np.array([-1]), cheapest)
    file = graph.finished([cost, index, *p], *n_columns)
    return file, graph


def cost_and_probability(model: Any, graph: Graph, rows: GraphRows) -> list[str]:
    """Costs in currency of a model of this package, and probabilities if it has them."""
    if isinstance(model, BaseCostSensitiveNet):
        return network_estimates(model, graph, rows)[:2]
    p = probability(model, graph, rows)
    if isinstance(model, CostSensitiveEnsembleClassifier) and model.cost_estimators_:
        return [_mean_of_networks(p, model.cost_estimators_, graph, rows), p]
    return [graph.add("MatMul", p, model.cost_matrix_), p]


def probability(model: Any, graph: Graph, rows: GraphRows) -> str:
    """Class probabilities (n, n_classes) of a classifier, in float64."""
    cls = type(model)
    if cls is Pipeline:
        return probability(model[-1], graph, rows_of_steps(model, graph, rows))
    if (inner := delegate(model)) is not None:
        return probability(inner, graph, rows)
    if cls is TableLogistic:
        return probability(make_pipeline(model.encoder_, model.model_), graph, rows)
    if isinstance(model, BaseCostSensitiveNet):
        return network_estimates(model, graph, rows)[1]
    if cls in BOOSTING:
        return _of_scores(_boosting_scores(model, graph, rows), len(model.classes_), graph)
    if cls is CalibratedClassifierCV and model.method != "temperature":
        parts = [_calibrated(part, graph, rows) for part in model.calibrated_classifiers_]
        return _mean(parts, graph)
    if cls is FoldMean:
        parts = [_aligned(part, model.classes_, graph, rows) for part in model.estimators]
        return _mean(parts, graph)
    if isinstance(model, BayesMinimumRiskClassifier):
        return _aligned(model.estimator_, model.classes_, graph, rows, model.temperature_)
    if isinstance(model, CostSensitiveEnsembleClassifier):
        return _ensemble(model, graph, rows)
    return estimates(model, graph, rows)


def _mean_of_networks(p: str, models: Sequence[Any], graph: Graph, rows: GraphRows) -> str:
    """Costs by probabilities, and by cost matrices of rows that networks have learnt."""
    matrices = _mean([network_estimates(model, graph, rows)[2] for model in models], graph)
    weighted = graph.add("Mul", graph.add("Unsqueeze", p, np.array([2])), matrices)
    return graph.add("ReduceSum", weighted, np.array([1]), keepdims=0)


def _aligned(
    model: Any, classes: NDArray[Any], graph: Graph, rows: GraphRows, temperature: float = 1.0
) -> str:
    """Probabilities of all classes, 0 for those that the classifier does not have."""
    columns = label_index(model.classes_, classes, name="classes_")
    p = probability(model, graph, rows)
    if temperature != 1:
        logs = graph.add("Log", graph.add("Clip", p, SMALLEST, 1.0))
        p = graph.add("Softmax", graph.add("Mul", logs, 1 / temperature), axis=1)
    if np.array_equal(columns, np.arange(len(classes))):
        return p
    return graph.add("MatMul", p, np.eye(len(classes))[columns])


def _mean(parts: Sequence[str], graph: Graph) -> str:
    return graph.add("Div", graph.add("Sum", *parts), float(len(parts)))


def _ensemble(model: CostSensitiveEnsembleClassifier, graph: Graph, rows: GraphRows) -> str:
    parts = []
    for member, weight in zip(
        model.estimators_, model.estimator_weights_[model.estimator_weights_ > 0].tolist()
    ):
        p = _aligned(member, model.classes_, graph, rows)
        log = graph.add("Log", graph.add("Clip", p, SMALLEST, 1.0))
        parts.append(graph.add("Mul", log, weight))
    return graph.add("Softmax", graph.add("Sum", *parts), axis=1)


def _of_scores(scores: str, n_classes: int, graph: Graph) -> str:
    """Probabilities by logits, of which two classes have one."""
    if n_classes > 2:
        return graph.add("Softmax", scores, axis=1)
    p = graph.add("Sigmoid", scores)
    return graph.add("Concat", graph.add("Sub", 1.0, p), p, axis=1)


# ----------------------------------------------------------------- calibration


def _calibrated(model: Any, graph: Graph, rows: GraphRows) -> str:
    """Probabilities of a classifier and its calibrators, one for each class."""
    scores, n_classes = _scores(model.estimator, graph, rows), len(model.classes)
    columns = label_index(model.estimator.classes_, model.classes, name="classes_").tolist()
    if n_classes == 2:
        p = _by(model.calibrators[0], scores, graph)
        return graph.add("Concat", graph.add("Sub", 1.0, p), p, axis=1)
    parts = [graph.add("Mul", _column(scores, 0, graph), 0.0)] * n_classes
    for i, (k, calibrator) in enumerate(zip(columns, model.calibrators)):
        parts[k] = _by(calibrator, _column(scores, i, graph), graph)
    return _shares(parts, 1 / n_classes, graph)


def _shares(parts: Sequence[str], alike: float, graph: Graph) -> str:
    """Columns divided by their sum; where it is zero, `alike`."""
    columns = graph.add("Concat", *parts, axis=1)
    total = graph.add("ReduceSum", columns, np.array([1]), keepdims=1)
    none = graph.add("Equal", total, 0.0)
    share = graph.add("Div", columns, graph.add("Where", none, 1.0, total))
    return graph.add("Where", none, alike, share)


def _column(values: str, k: int, graph: Graph) -> str:
    return graph.add("Gather", values, np.array([k]), axis=1)


def _by(calibrator: Any, score: str, graph: Graph) -> str:
    """One class's probability (n, 1) by its score."""
    if hasattr(calibrator, "a_"):
        product = graph.add("Mul", score, -float(calibrator.a_))
        return graph.add("Sigmoid", graph.add("Sub", product, float(calibrator.b_)))
    graph.has_steps = True
    knots = (calibrator.X_thresholds_, calibrator.y_thresholds_)
    x, y = (np.asarray(values, np.float64) for values in knots)
    if len(x) == 1:
        return graph.add("Add", graph.add("Mul", score, 0.0), float(y[0]))
    inside = graph.add("Clip", score, float(x[0]), float(x[-1]))
    below = graph.add("Cast", graph.add("Less", x[1:-1], inside), to=7)
    segment = graph.add("ReduceSum", below, np.array([1]), keepdims=1)
    left = graph.add("Sub", inside, graph.add("Gather", x[:-1], segment))
    slope = graph.add("Gather", np.diff(y) / np.diff(x), segment)
    return graph.add("Add", graph.add("Mul", slope, left), graph.add("Gather", y[:-1], segment))


def _scores(model: Any, graph: Graph, rows: GraphRows) -> str:
    """What a calibrator reads, (n, 1) for two classes: decision_function, or probabilities."""
    cls, n_classes = type(model), len(model.classes_)
    if cls is Pipeline:
        return _scores(model[-1], graph, rows_of_steps(model, graph, rows))
    if (inner := delegate(model)) is not None:
        return _scores(inner, graph, rows)
    if cls in BOOSTING:
        return _boosting_scores(model, graph, rows)
    if hasattr(model, "decision_function"):
        scores = estimates(model, graph, rows, raw_scores=True)
    else:
        scores = probability(model, graph, rows)
    return _column(scores, -1, graph) if n_classes == 2 else scores


# ----------------------------------------------------------- gradient boosting


def _boosting_scores(model: Any, graph: Graph, rows: GraphRows) -> str:
    """Raw scores (n, n_trees_per_iteration_). skl2onnx ignores splits by categories."""
    codes = _category_codes(model)
    levels = {j: np.array([*of_column], object) for j, of_column in codes.items()}
    return _sums_of_trees(model, codes, graph, graph.value(coded_rows(levels, graph, rows)))


class _Ensemble:
    """One node of the graph with many trees."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Any]] = defaultdict(list)
        self.n_trees = 0

    def add(self, nodes: Sequence[Sequence[Any]], weights: Mapping[int, Sequence[float]]) -> None:
        """Add a tree whose leaves add weights, in their order, to some outputs."""
        leaves = [i for i, node in enumerate(nodes) if node[-1] == "LEAF"]
        columns = zip((*_FIELDS, "modes"), zip(*nodes))
        new: dict[str, Sequence[Any]] = {f"nodes_{name}": values for name, values in columns}
        new["nodes_treeids"] = [self.n_trees] * len(nodes)
        new["nodes_nodeids"] = list(range(len(nodes)))
        new["target_treeids"] = [self.n_trees] * len(leaves) * len(weights)
        new["target_nodeids"] = leaves * len(weights)
        new["target_ids"] = [output for output in weights for _ in leaves]
        new["target_weights"] = [weight for values in weights.values() for weight in values]
        for name, values in new.items():
            self.lists[name].extend(values)
        self.n_trees += 1

    def sums(self, graph: Graph, rows: str, n_outputs: int) -> str:
        """The sum of each output, (n, n_outputs), in float32."""
        attributes: dict[str, Any] = dict(self.lists)
        for name in ("nodes_values", "target_weights"):
            numbers = np.array(attributes.pop(name), np.float64)
            attributes[f"{name}_as_tensor"] = numpy_helper.from_array(numbers, name)
        return graph.add(
            "TreeEnsembleRegressor", rows, domain="ai.onnx.ml", n_targets=n_outputs, **attributes
        )


def _sums_of_trees(model: Any, codes: dict[int, dict[Any, float]], graph: Graph, rows: str) -> str:
    """Raw scores (n, n_trees_per_iteration_), of rows with the positions of categories."""
    ensemble, step = _Ensemble(), _largest_step(model)
    of_levels = {j: np.array([*of_column.values()]) for j, of_column in codes.items()}
    order = np.arange(model.n_features_in_)
    if codes:  # the splits number columns of categories first
        order = np.argsort(~model.is_categorical_, kind="stable")
    for of_iteration in model._predictors:
        for k, tree in enumerate(of_iteration):
            values = tree.nodes["value"][tree.nodes["is_leaf"] == 1]
            whole = np.rint(values / step) * step
            weights = {2 * k: whole.tolist(), 2 * k + 1: (values - whole).tolist()}
            ensemble.add(_boosted(tree, order.tolist(), of_levels), weights)
    base = np.ravel(model._baseline_prediction).astype(np.float64)
    sums = graph.as_double(ensemble.sums(graph, rows, 2 * len(base)))
    pairs = graph.add("Reshape", sums, np.array([-1, len(base), 2]))
    return graph.add("Add", graph.add("ReduceSum", pairs, np.array([2]), keepdims=0), base)


def _largest_step(model: Any) -> float:
    """A power of two: sums of its multiples are exact in float32, the type of an ensemble's sums.

    The rests of the values add up to so little that float32 is as good as float64 for them.
    """
    trees = chain.from_iterable(model._predictors)
    largest = sum(float(np.abs(tree.nodes["value"]).max()) for tree in trees)
    return float(2.0 ** (np.ceil(np.log2(largest + 1)) - 22))


def _category_codes(model: Any) -> dict[int, dict[Any, float]]:
    """The code of each category in the splits, of each column; NaN if it counts as missing."""
    if model._preprocessor is None:
        return {}
    encoder = model._preprocessor.named_transformers_["encoder"]
    codes_of_columns = {
        j: {level: float(code) if level == level else np.nan for code, level in enumerate(levels)}
        for j, levels in zip(np.flatnonzero(model.is_categorical_).tolist(), _listed(encoder))
    }
    if not isinstance(model, TableBoosting) or model._codes is None:
        return codes_of_columns
    return {
        j: {level: codes.get(common, np.nan) for level, common in zip_longest(levels, kept)}
        for (j, codes), levels, kept in zip(
            codes_of_columns.items(), _listed(model._codes.encoder), model._kept
        )
    }


def _listed(encoder: Any) -> list[list[Any]]:
    return [levels.tolist() for levels in encoder.categories_]


def _boosted(tree: Any, order: list[int], codes: dict[int, NDArray[np.float64]]) -> list[Any]:
    """The nodes of a tree; a split by categories is a chain of comparisons with one of them.

    The chain has the known categories of the side to which missing ones do not go, so that all
    others go to the other side.
    """
    nodes: list[list[Any]] = []
    chains = []
    for i, node in enumerate(tree.nodes):
        left, right = int(node["left"]), int(node["right"])
        missing, j = int(node["missing_go_to_left"]), order[node["feature_idx"]]
        if node["is_leaf"]:
            nodes.append([0, 0.0, 0, 0, 0, "LEAF"])
        elif not node["is_categorical"]:
            nodes.append([j, float(node["num_threshold"]), left, right, missing, "BRANCH_LEQ"])
        else:
            of_levels = codes[j]
            at_left = np.isin(of_levels, _members(tree.raw_left_cat_bitsets[node["bitset_idx"]]))
            listed = ~at_left & ~np.isnan(of_levels) if missing else at_left
            first, *others = np.flatnonzero(listed).tolist() or [NEVER]
            to, other = (right, left) if missing else (left, right)
            nodes.append([j, float(first), to, other, 0, "BRANCH_EQ"])
            chains.append((i, others))
    for i, others in chains:
        for code in others:
            j, _, to, other, *_ = nodes[i]
            nodes[i][3] = i = len(nodes)
            nodes.append([j, float(code), to, other, 0, "BRANCH_EQ"])
    return nodes


def _members(bits: NDArray[np.uint32]) -> NDArray[np.intp]:
    """The numbers in a set of bits."""
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
