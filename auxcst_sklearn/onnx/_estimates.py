"""The decision of a fitted model as one file, by the probabilities of any classifier or network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from .._checks.data import label_index
from .._checks.nesting import delegate
from .._estimators.base import BaseCostSensitiveNet
from .._estimators.bayes import BayesMinimumRiskClassifier
from .._estimators.ensemble import CostSensitiveEnsembleClassifier
from .._estimators.members import FoldMean
from .._estimators.table_models import TableBoosting, TableLogistic
from .._training.geometric_mean import SMALLEST
from ._converted import coded_rows, estimates, network_estimates, rows_of_steps
from ._graph import MATRICES, Graph, GraphRows
from ._trees import boosting_scores, category_codes, forest_probability

# Exact types: a subclass may predict in another way.
BOOSTING = (HistGradientBoostingClassifier, TableBoosting)
FORESTS = (
    RandomForestClassifier,
    ExtraTreesClassifier,
    DecisionTreeClassifier,
    ExtraTreeClassifier,
)


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
    kind = type(model)
    if kind is Pipeline:
        return probability(model[-1], graph, rows_of_steps(model, graph, rows))
    if (inner := delegate(model)) is not None:
        return probability(inner, graph, rows)
    if kind is TableLogistic:
        return probability(make_pipeline(model.encoder_, model.model_), graph, rows)
    if isinstance(model, BaseCostSensitiveNet):
        return network_estimates(model, graph, rows)[1]
    if kind in BOOSTING:
        return _of_scores(_boosting_scores(model, graph, rows), len(model.classes_), graph)
    if kind in FORESTS:
        return forest_probability(model, graph, graph.value(coded_rows({}, graph, rows)))
    if kind is CalibratedClassifierCV and model.method != "temperature":
        parts = [_calibrated(part, graph, rows) for part in model.calibrated_classifiers_]
        return _mean(parts, graph)
    if kind is FoldMean:
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


def _boosting_scores(model: Any, graph: Graph, rows: GraphRows) -> str:
    codes = category_codes(model)
    levels = {j: np.array([*of_column], object) for j, of_column in codes.items()}
    return boosting_scores(model, codes, graph, graph.value(coded_rows(levels, graph, rows)))


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
    found = graph.add("Concat", *parts, axis=1)
    total = graph.add("ReduceSum", found, np.array([1]), keepdims=1)
    none = graph.add("Equal", total, 0.0)
    share = graph.add("Div", found, graph.add("Where", none, 1.0, total))
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
    kind, n_classes = type(model), len(model.classes_)
    if kind is Pipeline:
        return _scores(model[-1], graph, rows_of_steps(model, graph, rows))
    if kind is FrozenEstimator:
        return _scores(model.estimator, graph, rows)
    if isinstance(model, BaseCostSensitiveNet) and not model._has_probabilities():
        order = model._of_classes(np.arange(len(model.decisions_))[np.newaxis])[0]
        cost = graph.add("Gather", cost_and_probability(model, graph, rows)[0], order, axis=1)
        if n_classes > 2:
            return graph.add("Neg", cost)
        return graph.add("Sub", _column(cost, 0, graph), _column(cost, 1, graph))
    if kind in BOOSTING:
        return _boosting_scores(model, graph, rows)
    if hasattr(model, "decision_function"):
        scores = estimates(model, graph, rows, raw_scores=True)
    else:
        scores = probability(model, graph, rows)
    return _column(scores, -1, graph) if n_classes == 2 else scores
