import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from auxcst_sklearn.datasets import to_memmap

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def frame():
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "amount": rng.gamma(1, 100, size=250),
            "age": rng.randint(18, 90, size=250),
            "gap": np.where(rng.rand(250) < 0.2, np.nan, 1.5),
            "flag": rng.rand(250) < 0.5,
        }
    )


def dask_frame(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=4)


def dask_array(frame):
    return pytest.importorskip("dask.array").from_array(frame.to_numpy(float), chunks=(90, 3))


SOURCES = {
    "array": lambda frame: frame.to_numpy(float),
    "blocks of an array": lambda frame: np.array_split(frame.to_numpy(float), 7),
    "array of objects": lambda frame: frame.to_numpy(),
    "pandas": lambda frame: frame,
    "labels of rows": lambda frame: frame.set_index(np.arange(250)[::-1] / 2),
    "nullable pandas": lambda frame: frame.convert_dtypes(),
    "chunks of pandas": lambda frame: (frame[start : start + 40] for start in range(0, 250, 40)),
    "polars": pl.from_pandas,
    "slices of polars": lambda frame: pl.from_pandas(frame).iter_slices(100),
    "Arrow": lambda f: (part.to_pandas() for part in pa.Table.from_pandas(f).to_batches(100)),
    "partitions of dask": lambda frame: (p.compute() for p in dask_frame(frame).partitions),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_numbers(frame, tmp_path, kind):
    X = to_memmap(SOURCES[kind](frame), tmp_path / "X.npy")
    assert isinstance(X, np.memmap)
    assert (X.dtype, X.flags.c_contiguous, X.flags.writeable) == (np.float32, True, False)
    np.testing.assert_array_equal(X, frame.to_numpy(np.float32))
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]


def test_arrays_of_any_dimension(tmp_path):
    images = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5)
    found = to_memmap([images, images[:1]], tmp_path / "X.npy", dtype="uint8")
    np.testing.assert_array_equal(found, np.concatenate([images, images[:1]]))


def test_columns_are_found_by_name(frame, tmp_path):
    X = to_memmap([frame[:100], frame[frame.columns[::-1]][100:]], tmp_path / "X.npy")
    np.testing.assert_array_equal(X, frame.to_numpy(np.float32))
    for other in (frame[["age", "amount"]], frame.rename(columns={"age": "Age"})):
        message = "After 250 rows, .* with the columns .*(Age|'age', 'amount')"
        with pytest.raises(ValueError, match=message):
            to_memmap([frame, other], tmp_path / "Y.npy")
    with pytest.raises(ValueError, match=r"rows of shape \(6,\) .*expected \(2, 3\)"):
        to_memmap([np.ones((2, 2, 3)), np.ones((2, 6))], tmp_path / "Y.npy")


def test_empty_blocks_and_columns_of_gaps(tmp_path):
    blocks = [pd.DataFrame({"a": [], "b": []}), pd.DataFrame({"a": [None, None], "b": [1, 2]})]
    X = to_memmap(blocks, tmp_path / "X.npy")
    np.testing.assert_array_equal(X, [[np.nan, 1], [np.nan, 2]])
    assert to_memmap([np.ones((0, 2)), np.ones((3, 2))], tmp_path / "Y.npy").shape == (3, 2)


def nullable(values):
    return pd.Series(values, dtype=object)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (nullable([1, None, Decimal("2.5")]), [1, np.nan, 2.5]),
        (pl.Series([Decimal("1.5"), None]), [1.5, np.nan]),
        (pl.Series([True, None]), [1, np.nan]),
        (pd.Series([1, 2, None], dtype="Int64"), [1, 2, np.nan]),
        (pd.Series([True, None], dtype="boolean"), [1, np.nan]),
        (pd.Series([7, 3]).astype("category"), [7, 3]),
        (pd.Series([0.3] * 5 + [0.1 + 0.2]), [0.3] * 6),  # constant but for rounding
    ],
)
def test_numbers_of_other_types(tmp_path, column, found):
    frame = (pl if isinstance(column, pl.Series) else pd).DataFrame({"x": column})
    X = to_memmap(frame, tmp_path / "x.npy")
    np.testing.assert_array_equal(X[:, 0], np.array(found, np.float32))


MARKED = ["1", "2.5e3", "?"]


@pytest.mark.parametrize(
    ("blocks", "found"),
    [
        ([pd.DataFrame({"x": MARKED})], "'1'"),
        ([pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"x": [3, "N.A."]})], "'N.A.'"),
        ([pd.DataFrame({"x": pd.Categorical(["1", "-"])})], "'1'"),
        ([pl.DataFrame({"x": MARKED})], r".*'1'.*"),
        ([pl.DataFrame({"x": ["a", None]}).cast(pl.Categorical)], "'a'"),
        ([pd.DataFrame({"x": ["1", "2"]})], "'1'"),
    ],
)
def test_strings_are_refused_with_their_column(tmp_path, blocks, found):
    message = f"Column 'x' of source contains {found}; expected numbers.*codes of categories"
    with pytest.raises(TypeError, match=message):
        to_memmap(blocks, tmp_path / "X.npy")
    assert list(tmp_path.iterdir()) == []


def test_strings_of_arrays_are_refused(tmp_path):
    for source, name in ((np.array([[1, "a"]], object), "1"), (np.array([["a"]]), "0")):
        with pytest.raises(TypeError, match=f"Column {name} of source contains .*'a'"):
            to_memmap(source, tmp_path / "X.npy")


@pytest.mark.parametrize(
    ("column", "dtype", "message"),
    [
        ([1.0, 300.0], "uint8", r"'x' of source contains 300.0, which uint8 cannot hold"),
        ([1.0, np.nan], "int64", "contains nan, which int64 cannot hold"),
        ([1, 2**24 + 1], "float32", "contains 16777217, which float32 cannot hold"),
        (nullable([1, 2**24 + 1]), "float32", "contains 16777217, which float32 cannot hold"),
        (nullable([np.timedelta64(1, "D")]), "float32", "contains .*timedelta64.*expected numbers"),
        ([1.0, 1e60], "float32", "contains 1e\\+60, which float32 cannot hold"),
        ([1.7e9 + i / 10 for i in range(99)], "float32", "differences float32 cannot hold"),
        (pd.to_datetime(["2026-01-01", "2026-01-02"]), "float32", "datetime64.*Convert it"),
        ([[1], [2]], "float32", r"'x' of source contains \[1\]; expected numbers"),
        ([1j, 2], "float32", r"'x' of source contains .*1j"),
        (np.array([200], np.uint8), "int8", "which int8 cannot hold"),
        (np.array([2**64 - 1], np.uint64), "int64", "which int64 cannot hold"),
    ],
)
def test_what_the_file_cannot_hold_is_refused_and_nothing_written(tmp_path, column, dtype, message):
    with pytest.raises((ValueError, TypeError), match=message):
        to_memmap(pd.DataFrame({"x": column}), tmp_path / "X.npy", dtype=dtype)
    assert list(tmp_path.iterdir()) == []


def test_differences_are_compared_over_all_blocks(tmp_path):
    stamps = [np.full((3, 1), 1.7e9 + second) for second in range(3)]
    with pytest.raises(ValueError, match="Column 0 of source has values from 1700000000 to 17000"):
        to_memmap(stamps, tmp_path / "X.npy")
    assert to_memmap(stamps, tmp_path / "X.npy", dtype="float64")[-1, 0] == 1.7e9 + 2


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        ("rows.csv", {}, "source is or yields a str; expected dense arrays or DataFrames"),
        ({"a": [1]}, {}, "source is or yields a str; expected"),
        ([[1, 2], [3, 4]], {}, "source is or yields a list; expected"),
        (pd.Series([1.0]), {}, "source is or yields a Series; expected"),
        ([pl.LazyFrame({"a": [1]})], {}, "source is or yields a LazyFrame; expected"),
        (np.zeros((0, 2)), {}, "source is empty"),
        (np.zeros((2, 0)), {}, "source is empty"),
        ([], {}, "source is empty"),
        (pd.DataFrame(np.eye(2), columns=["a", "a"]), {}, "expected each name once"),
        (np.zeros((3, 2)), {"dtype": "U3"}, "dtype='U3'; expected a type of numbers"),
        (sparse.csr_array(np.eye(2)), {}, "yields a csr_array; expected dense"),
        ([sparse.csr_array(np.eye(2))], {}, "yields a csr_array; expected dense"),
        (np.ma.masked_invalid([[1, np.nan]]), {}, "contains 1 masked values"),
    ],
)
def test_what_is_no_table(tmp_path, source, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        to_memmap(source, tmp_path / "X.npy", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("of", [dask_frame, dask_array, lambda f: [dask_frame(f)]])
def test_dask_is_computed_by_the_caller(frame, tmp_path, of):
    with pytest.raises(TypeError, match=r"from dask \(part.compute\(\) for part"):
        to_memmap(of(frame), tmp_path / "X.npy")
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_there(tmp_path):
    path = tmp_path / "X.npy"
    to_memmap(np.zeros((2, 1)), path)
    with pytest.raises(FileExistsError, match="Pass overwrite=True"):
        to_memmap(np.ones((3, 1)), path)
    assert to_memmap(np.ones((3, 1)), path, overwrite=True).tolist() == [[1], [1], [1]]
    (tmp_path / "Y.npy.part").touch()
    with pytest.raises(FileExistsError, match="another call is writing it, or was interrupted"):
        to_memmap(np.ones((2, 1)), tmp_path / "Y.npy")


def test_an_overwrite_that_fails_leaves_the_old_file(tmp_path):
    def blocks():
        yield np.ones((5, 1))
        raise OSError("the disk is gone")

    before = to_memmap(np.zeros((2, 1)), tmp_path / "X.npy").tolist()
    with pytest.raises(OSError, match="gone"):
        to_memmap(blocks(), tmp_path / "X.npy", overwrite=True)
    assert np.load(tmp_path / "X.npy").tolist() == before
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]


def test_a_killed_call_leaves_no_half_file(tmp_path):
    script = (
        "import numpy as np, os\n"
        "from auxcst_sklearn.datasets import to_memmap\n"
        "def blocks():\n"
        "    yield np.ones((1000, 2))\n"
        "    os.kill(os.getpid(), 9)\n"
        f"to_memmap(blocks(), {str(tmp_path / 'X.npy')!r})\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy.part"]


def test_two_calls_at_once_do_not_mix_their_rows(tmp_path):
    def blocks():
        with pytest.raises(FileExistsError, match="another call is writing it"):
            to_memmap(np.ones((2, 1)), tmp_path / "X.npy")
        yield np.zeros((2, 1))

    assert to_memmap(blocks(), tmp_path / "X.npy").tolist() == [[0], [0]]


def test_the_source_may_be_the_file(tmp_path):
    X = to_memmap(np.arange(4.0)[:, np.newaxis], tmp_path / "X.npy")
    blocks = (X[rows] for rows in ([3, 1], [0, 2]))
    assert to_memmap(blocks, tmp_path / "X.npy", overwrite=True).ravel().tolist() == [3, 1, 0, 2]


def test_integers_in_objects_are_exact(tmp_path):
    column = [2**53 + 1, 1]
    found = to_memmap(np.array([column], object).T, tmp_path / "X.npy", dtype="int64")
    assert found[:, 0].tolist() == column
