"""Costs with names: selections keep the right names, and costs of other names never mix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxcst_sklearn.costs import cost_matrices
from tests.fuzz.conftest import examples

CLASSES, DECISIONS = "abc", "vwxyz"
N_SELECTIONS = 100  # in each example


def draw_costs(rng, n_classes=None, n_decisions=None, n=None):
    """Costs whose digits are row, class and decision, with labels in any order."""
    n_classes = rng.integers(2, 4) if n_classes is None else n_classes
    n_decisions = rng.integers(1, 6) if n_decisions is None else n_decisions
    n = rng.integers(1, 7) if n is None else n
    rows, columns = CLASSES[:n_classes], rng.permutation(list(DECISIONS[:n_decisions])).tolist()
    terms = {
        c: {d: 10.0 * i + DECISIONS.index(d) + 100 * np.arange(n) for d in columns}
        for i, c in enumerate(rows)
    }
    costs = cost_matrices(terms)
    costs = costs if rng.random() < 0.5 else costs[:, rng.permutation(n_classes)]
    return costs[rng.integers(n)] if rng.random() < 0.2 else costs


def draw_part(rng, size):
    """An index of one axis."""
    kind = rng.integers(8)
    ends = np.sort(rng.integers(-size, size + 1, 2))
    if kind < 3:
        return slice(*([None] * 3, [*ends, 1], [None, None, -1])[kind])
    if kind < 5:
        return [slice(None, None, 2), int(rng.integers(size))][kind - 3]
    if kind == 5:
        return rng.permutation(size)
    if kind == 6:
        return rng.random(size) < 0.6
    return rng.integers(-size, size, int(rng.integers(1, 4))).tolist()


def draw_key(rng, shape):
    """An index of an array: of rows, of axes, with new axes, an ellipsis or a mesh."""
    kind = rng.integers(6)
    if kind == 0:
        return draw_part(rng, shape[0])
    if kind == 1:
        return rng.random(shape[: rng.integers(1, len(shape) + 1)]) < 0.5
    if kind == 2:
        return np.ix_(*(rng.permutation(size)[: rng.integers(1, size + 1)] for size in shape))
    if kind == 3:
        return (..., *(draw_part(rng, size) for size in shape[-rng.integers(1, len(shape) + 1) :]))
    parts = [draw_part(rng, size) for size in shape[: rng.integers(1, len(shape) + 1)]]
    parts.insert(rng.integers(len(parts) + 1), [None, Ellipsis][kind - 4])
    return tuple(parts)


def named_by_values(values):
    """The names that costs should have: those of axes on which the digits of all costs agree."""
    digits = values.astype(int)
    lines = np.moveaxis(digits % 10, -1, 0)
    first = lines.reshape(len(lines), -1)[:, 0]
    if not (first == lines.T).all() or len({*first.tolist()}) < len(first):
        return None
    decisions = [DECISIONS[k] for k in first.tolist()]
    if values.ndim < 2:
        return None, decisions
    lines = np.moveaxis(digits // 10 % 10, -2, 0)
    first = lines.reshape(len(lines), -1)[:, 0]
    if not (first == lines.T).all() or len({*first.tolist()}) < len(first):
        return None, decisions
    return [CLASSES[k] for k in first.tolist()], decisions


def names(costs):
    if getattr(costs, "decisions", None) is None:
        return None
    return None if costs.classes is None else costs.classes.tolist(), costs.decisions.tolist()


@examples(20)
@given(seed=st.integers(0, 2**32))
def test_selections_keep_their_names(seed):
    rng = np.random.default_rng(seed)
    for _ in range(N_SELECTIONS):
        costs = draw_costs(rng)
        for _ in range(2):
            key = draw_key(rng, costs.shape)
            try:
                expected = np.asarray(costs)[key]
            except IndexError:  # index arrays of different lengths
                break
            had_classes, costs = costs.classes is not None, costs[key]
            np.testing.assert_array_equal(np.asarray(costs), expected)
            if not expected.size or not expected.ndim:
                break
            right = named_by_values(expected)
            assert names(costs) == (right if right is None or had_classes else (None, right[1])), (
                key
            )
            if right is None:
                break


def as_labelled(costs):
    """The costs in the order of the labels, which arrays of other orders have in common."""
    order = np.argsort(costs.decisions)
    values = np.asarray(costs)[..., order]
    return values if costs.classes is None else values[..., np.argsort(costs.classes), :]


@examples(20)
@given(seed=st.integers(0, 2**32))
def test_costs_mix_by_name_or_not_at_all(seed):
    rng = np.random.default_rng(seed)
    for _ in range(N_SELECTIONS // 2):
        a = draw_costs(rng)
        shape = a.shape[-2:]
        b = a + 1 if rng.random() < 0.3 else draw_costs(rng, *shape, n=len(a)) + 1
        if a.ndim != b.ndim:
            b = b[0] if b.ndim > a.ndim else b
        check_arithmetic(a, b)
        check_assignment(rng, a, b if a.ndim == b.ndim else b * np.ones((len(a), 1, 1)))


def check_arithmetic(a, b):
    for mix in (np.add, lambda a, b: a - -b, lambda a, b: a.copy().__iadd__(b)):
        if names(a) == names(b):
            found = mix(a, b)
            assert names(found) == names(a)
            np.testing.assert_array_equal(as_labelled(found), as_labelled(a) + as_labelled(b))
        else:
            with pytest.raises(ValueError, match="same order"):
                mix(a, b)


def check_assignment(rng, a, b):
    """The costs that are assigned to a selection are those of its names."""
    key = draw_key(rng, a.shape)
    places = np.arange(a.size).reshape(a.shape)
    target = a.copy()
    try:
        chosen, selected, given = places[key], a[key], b[key]
    except IndexError:
        return
    try:
        target[key] = given
    except ValueError:
        assert names(selected) != names(given)
        assert (np.asarray(target) == np.asarray(a)).all()
        return
    assert names(target) == names(a)
    if names(selected) and names(given) and chosen.size == np.unique(chosen).size:
        np.testing.assert_array_equal(as_labelled(target[key]), as_labelled(given))
