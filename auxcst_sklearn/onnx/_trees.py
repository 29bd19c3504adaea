"""Forests and gradient boosting of scikit-learn, which compare and add up in float64.

skl2onnx ignores splits by categories and missing values in forests, and rounds the sums of a
forest, which may be ties.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from .._estimators.table_models import TableBoosting
from ._graph import Graph

NEVER = -2  # no code of a category

# Of a node, before its mode, which is LEAF for leaves; children are positions.
_FIELDS = ("featureids", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")


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
        given: dict[str, Any] = dict(self.lists)
        for name in ("nodes_values", "target_weights"):
            numbers = np.array(given.pop(name), np.float64)
            given[f"{name}_as_tensor"] = numpy_helper.from_array(numbers, name)
        return graph.add(
            "TreeEnsembleRegressor", rows, domain="ai.onnx.ml", n_targets=n_outputs, **given
        )


def forest_probability(model: Any, graph: Graph, rows: str) -> str:
    """Probabilities (n, n_classes) of a forest or of one tree.

    The ensemble returns the leaf of each tree, of which the probabilities are looked up.
    """
    ensemble, starts, n_leaves = _Ensemble(), [], 0
    trees = [part.tree_ for part in getattr(model, "estimators_", [model])]
    for k, tree in enumerate(trees):
        is_leaf = tree.children_left < 0
        modes = np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist()
        columns = (tree.feature, tree.threshold, tree.children_left, tree.children_right)
        feature, value, left, right = (np.where(is_leaf, 0, part).tolist() for part in columns)
        missing = np.where(is_leaf, 0, tree.missing_go_to_left).astype(int).tolist()
        ranks = range(is_leaf.sum())
        ensemble.add([*zip(feature, value, left, right, missing, modes)], {k: ranks})
        starts.append(n_leaves)
        n_leaves += len(ranks)
    single = graph.add("Cast", rows, to=TensorProto.FLOAT)  # as scikit-learn's trees read them
    leaves = ensemble.sums(graph, graph.as_double(single), len(trees))
    index = graph.add("Add", graph.add("Cast", leaves, to=TensorProto.INT64), np.array(starts))
    table = np.concatenate([tree.value[tree.children_left < 0, 0] for tree in trees])
    total = graph.add("ReduceSum", graph.add("Gather", table, index), np.array([1]), keepdims=0)
    return graph.add("Div", total, float(len(trees)))


def boosting_scores(model: Any, codes: dict[int, dict[Any, float]], graph: Graph, rows: str) -> str:
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


def category_codes(model: Any) -> dict[int, dict[Any, float]]:
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
