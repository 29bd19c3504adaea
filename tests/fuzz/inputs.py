"""Strategies: data of every dtype, layout and container, costs, labels and weights."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import torch
from hypothesis import strategies as st
from scipy import sparse

# Values of features: usual ones, and those at which arithmetic ends.
NUMBERS = [0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, -1e30, 1e9 + 1, np.nan, np.inf, 3e38, 1e-40]
MONEY = [0.0, 1.0, 2.5, 1e-300, 1e-9, 1e9, 1e300, -1.0, np.nan, np.inf]


class Input(NamedTuple):
    """What a call is given, and whether it is what the documentation asks for."""

    value: object
    usual: bool


def rng_of(draw):
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def spoilt(draw, array, values, at_most=2):
    """The array with some values put in, and whether there are any."""
    n = draw(st.sampled_from([0, 0, 0, 1, at_most]))
    if n == 0 or array.size == 0:
        return array, True
    array = array.copy()
    for _ in range(n):
        array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from(values))
    return array, False


DTYPES = ["f8", "f4", "f2", "i8", "i1", "u1", ">f8", ">i4", "?", "O"]
LAYOUTS = ["C", "F", "reversed", "strided", "read-only", "memmap"]
CONTAINERS = ["array", "array", "array", "list", "pandas", "polars", "csr", "csc", "coo"]


def laid_out(draw, array, tmp):
    layout = draw(st.sampled_from(LAYOUTS))
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "reversed":
        return array[::-1][::-1] if array.ndim < 2 else array[::-1, ::-1][::-1, ::-1]
    if layout == "strided":
        return np.repeat(array, 2, axis=0)[::2]
    if layout == "read-only":
        array = array.copy()
        array.flags.writeable = False
    elif layout == "memmap" and array.size and array.dtype != object:
        path = tmp / "x"
        array.tofile(path)
        array = np.memmap(path, array.dtype, "r", shape=array.shape)
    return array


@st.composite
def features(draw, tmp, n=None, d=None):
    """Features (n, d)."""
    n = draw(st.sampled_from([0, 1, 2, 3, 9, 10, 30, 60])) if n is None else n
    d = draw(st.sampled_from([0, 1, 2, 5])) if d is None else d
    X = rng_of(draw).normal(scale=draw(st.sampled_from([1, 1, 50, 1e-6])), size=(n, d))
    X, usual = spoilt(draw, X, NUMBERS)
    dtype = draw(st.sampled_from(DTYPES[:2] * 3 + DTYPES))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        X = X.astype(dtype)
    X = laid_out(draw, X, tmp)
    container = draw(st.sampled_from(CONTAINERS))
    if container == "list":
        X = X.tolist()
    elif container == "pandas":
        X = pd.DataFrame(np.array(X), columns=[f"x{j}" for j in range(d)])
        X = with_words(draw, X)
    elif container == "polars" and X.dtype.isnative and X.dtype != object and X.dtype != "f2":
        X = pl.DataFrame(np.array(X), schema=[f"x{j}" for j in range(d)])
    elif container in ("csr", "csc", "coo") and X.dtype.isnative and X.dtype not in (object, "f2"):
        X = getattr(sparse, f"{container}_array")(np.array(X))
    return Input(X, usual and n >= 10 and d >= 1)


def with_words(draw, X):
    """A frame whose first column may hold words, categories, gaps or dates."""
    if not X.shape[1] or draw(st.booleans()):
        return X
    words = np.array(["a", "b", "c"])[rng_of(draw).integers(0, 3, len(X))].astype(object)
    kind = draw(st.sampled_from(["words", "gaps", "category", "dates", "Int64"]))
    if kind == "gaps":
        words[: len(words) // 3] = None
    column = pd.Series(words, index=X.index)
    if kind == "category":
        column = column.astype("category")
    elif kind == "dates":
        column = pd.Series(pd.Timestamp("2020-01-01"), index=X.index)
    elif kind == "Int64":
        column = pd.Series(range(len(X)), index=X.index, dtype="Int64").where(lambda c: c != 1)
    return X.assign(x0=column)


LABELS = [
    [0, 1, 2], [-5, 3, 1000], ["ant", "bee", "cat"], [False, True], [0.0, 1.0], [1.5, 2.5, 0.1],
    [7], [0, "a"], [None, 1, 2], [b"x", b"y"],
]  # fmt: skip


@st.composite
def labels(draw, n, kinds=LABELS):
    """Labels (n,)."""
    names = draw(st.sampled_from(kinds[:3] * 4 + kinds))
    n = n + draw(st.sampled_from([0] * 12 + [1, -1]))
    index = rng_of(draw).integers(0, len(names), size=max(n, 0))
    if n >= len(names):
        index[: len(names)] = range(len(names))
    values = [names[i] for i in index]
    return draw(st.sampled_from([values, np.array(values, dtype=object), pd.Series(values)] * 2))


@st.composite
def costs(draw, n, k, tmp):
    """Costs per sample, of 2 or 3 dimensions, or None."""
    kind = draw(st.sampled_from(["none", "rows", "rows", "rows", "matrices", "odd"]))
    if kind == "none":
        return Input(None, True)
    shape = (n, k) if kind == "rows" else (n, k, k)
    if kind == "odd":
        shape = draw(st.sampled_from([(k, n), (n,), (n, k + 1), (n + 1, k), (n, k, 1), ()]))
    C = rng_of(draw).exponential(draw(st.sampled_from([1, 1, 1e-9, 1e9])), size=shape)
    if draw(st.integers(0, 9)) == 0:
        C = np.full(shape, draw(st.sampled_from([0.0, 1.0])))
    C, usual = spoilt(draw, np.asarray(C), MONEY)
    if draw(st.integers(0, 4)) == 0 and C.size and C.ndim:
        C = laid_out(draw, C, tmp)
    return Input(C, usual and kind != "odd")


@st.composite
def weights(draw, n):
    """Weights (n,), or None."""
    kind = draw(st.sampled_from(["none", "none", "some", "odd"]))
    if kind == "none":
        return None
    w = rng_of(draw).exponential(size=n)
    if kind == "odd" and n:
        w[0] = draw(st.sampled_from([0, -1.0, np.nan, np.inf, 1e300, 1e-300]))
        if draw(st.booleans()):
            w[:] = 0
    return w


def snapshot(value):
    """A copy of what a caller contains, to compare with afterwards."""
    if sparse.issparse(value):
        return [part.copy() for part in _parts(value)]
    return [value.copy()] if isinstance(value, (np.ndarray, pd.DataFrame, pd.Series)) else []


def assert_unchanged(value, before):
    after = _parts(value) if sparse.issparse(value) else [value]
    for now, then in zip(after, before):
        if isinstance(now, (pd.DataFrame, pd.Series)):
            assert now.equals(then)
        elif now.dtype == object:
            assert repr(now.tolist()) == repr(then.tolist())
        else:
            np.testing.assert_array_equal(now, then)


def _parts(value):
    names = ("data", "indices", "indptr", "coords")
    return [np.asarray(getattr(value, name)) for name in names if hasattr(value, name)]


def modes():
    """What torch keeps for the whole process."""
    autocast = torch.is_autocast_enabled("cpu"), torch.are_deterministic_algorithms_enabled()
    return torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads(), *autocast


def checked(call, *args, allowed):
    """The result of a call, or None where it refuses its arguments with a message."""
    before = [snapshot(arg) for arg in args]
    rng, torch_rng = np.random.get_state()[1].copy(), torch.get_rng_state()
    before_modes = modes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filters = warnings.filters[:]
        try:
            result = call()
        except Exception as error:
            if not allowed(error):
                raise
            result = None
        assert warnings.filters == filters
    for arg, then in zip(args, before):
        assert_unchanged(arg, then)
    assert (np.random.get_state()[1] == rng).all()
    assert torch.equal(torch.get_rng_state(), torch_rng)
    assert modes() == before_modes
    return result
