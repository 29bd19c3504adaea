import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.datasets import to_memmap

pa = pytest.importorskip("pyarrow")
dask = pytest.importorskip("dask")


@pytest.fixture
def frame():
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "amount": rng.gamma(1, 100, size=250),
            "age": rng.randint(18, 90, size=250),
            "colour": np.array(["red", "green", "blue"])[rng.randint(3, size=250)],
            "gap": np.where(rng.rand(250) < 0.2, np.nan, 1.5),
            "label": rng.randint(2, size=250),
        }
    )


FEATURES = ["amount", "age", "colour", "gap"]


@pytest.fixture
def expected(frame):
    codes = np.searchsorted(["blue", "green", "red"], frame.colour)
    return np.column_stack([frame.amount, frame.age, codes, frame.gap]).astype(np.float32)


def parquet(frame, folder):
    frame.to_parquet(folder / "rows.parquet", row_group_size=40)
    return folder / "rows.parquet"


def parquet_folder(frame, folder):
    (folder / "parts").mkdir()
    frame[:100].to_parquet(folder / "parts" / "a.parquet")
    frame[100:].to_parquet(folder / "parts" / "b.parquet")
    return str(folder / "parts")


def csv(frame, folder):
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def feather(frame, folder):
    frame.to_feather(folder / "rows.feather")
    return folder / "rows.feather"


SOURCES = {
    "parquet": parquet,
    "a folder of parquet": parquet_folder,
    "CSV": csv,
    "Feather": feather,
    "pandas": lambda frame, folder: frame,
    "pandas with categories": lambda frame, folder: frame.astype({"colour": "category"}),
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "Arrow table": lambda frame, folder: pa.Table.from_pandas(frame),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_table_gives_the_same_numbers_and_codes(frame, expected, tmp_path, kind):
    source = SOURCES[kind](frame, tmp_path)
    X = to_memmap(source, tmp_path / "X.npy", columns=FEATURES)
    assert isinstance(X, np.memmap)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, expected)
    y = to_memmap(source, tmp_path / "y.npy", columns="label", dtype="int64")
    assert y.shape == (250,)
    np.testing.assert_array_equal(y, frame.label)
    described = json.loads((tmp_path / "X.npy.json").read_text())
    categories = {"colour": ["blue", "green", "red"]}
    assert described == {"columns": FEATURES, "is_single": False, "categories": categories}


def test_positions_of_numpy(tmp_path):
    rows = np.arange(6.0).reshape(2, 3)
    X = to_memmap(rows, tmp_path / "X.npy", columns=np.array([2, 0]))
    np.testing.assert_array_equal(X, rows[:, [2, 0]])
    assert to_memmap(rows, tmp_path / "y.npy", columns=np.int64(1)).shape == (2,)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask_writes_its_parts_itself(frame, expected, tmp_path, scheduler):
    dd = pytest.importorskip("dask.dataframe")
    with dask.config.set(scheduler=scheduler, num_workers=2):
        parts = dd.from_pandas(frame, npartitions=4)
        X = to_memmap(parts, tmp_path / "X.npy", columns=FEATURES)
    np.testing.assert_array_equal(X, expected)


def test_arrays_of_numpy_zarr_and_dask(tmp_path):
    zarr = pytest.importorskip("zarr")
    da = pytest.importorskip("dask.array")
    rows = np.random.RandomState(0).randn(300, 7)
    stored = zarr.array(rows, chunks=(50, 7), store=str(tmp_path / "rows.zarr"))
    chunked = da.from_array(rows, chunks=(90, 3))
    for i, source in enumerate([rows, stored, chunked, chunked[chunked[:, 0] > -10]]):
        X = to_memmap(source, tmp_path / f"{i}.npy", columns=[6, 0, 3])
        np.testing.assert_array_equal(X, rows[:, [6, 0, 3]].astype(np.float32))


def test_files_hold_what_pandas_reads(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "1.csv").write_text("id,s,v\n9007199254740993,foo,1\n2,,\n")
    (folder / "2.csv").write_text("id,s,v\n3,NA,0.5\n")
    (folder / "README.txt").write_text("no,data\n")
    (folder / "2.csv.bak").write_text("id,s,v\n4,bar,2\n")
    ids = to_memmap(folder, tmp_path / "id.npy", columns="id", dtype="int64")
    assert ids.tolist() == [9007199254740993, 2, 3]
    X = to_memmap(folder, tmp_path / "X.npy", columns=["s", "v"])
    np.testing.assert_array_equal(X, [[0, 1], [np.nan, np.nan], [np.nan, 0.5]])
    (folder / "3.csv").write_text("id,s\n3,NA\n")
    with pytest.raises(ValueError, match=r"3.csv has the columns \['id', 's'\]"):
        to_memmap(folder, tmp_path / "Y.npy")


def test_numbers_that_turn_to_fractions_late_in_a_csv(tmp_path):
    numbers = np.arange(300_000.0)
    numbers[-1] = 0.5
    text = "v\n" + "\n".join(f"{v:g}" if v % 1 else f"{v:.0f}" for v in numbers)
    (tmp_path / "v.csv").write_text(text)
    found = to_memmap(tmp_path / "v.csv", tmp_path / "v.npy", columns="v", dtype="float64")
    np.testing.assert_array_equal(found, numbers)


def test_an_index_is_no_column_and_a_folder_name_is_one(frame, tmp_path):
    frame[["age", "gap"]][frame.age > 40].to_parquet(tmp_path / "rows.parquet")
    X = to_memmap(tmp_path / "rows.parquet", tmp_path / "X.npy")
    assert json.loads((tmp_path / "X.npy.json").read_text())["columns"] == ["age", "gap"]
    assert len(X) == (frame.age > 40).sum()
    frame.to_parquet(tmp_path / "by_label", partition_cols=["label"])
    y = to_memmap(tmp_path / "by_label", tmp_path / "y.npy", columns="label", dtype="int8")
    np.testing.assert_array_equal(np.bincount(y), np.bincount(frame.label))


def test_only_the_rows_of_a_folder_are_read(tmp_path):
    rows = pd.DataFrame({"x": [1.0, 2.0]})
    folder = tmp_path / "run=7" / "rows"
    for part in ("month=1", ".ipynb_checkpoints", "_temporary/0"):
        (folder / part).mkdir(parents=True)
        rows.to_parquet(folder / part / "part.parquet")
    X = to_memmap(folder, tmp_path / "X.npy")
    assert json.loads((tmp_path / "X.npy.json").read_text())["columns"] == ["x", "month"]
    assert len(X) == 2
    rows.to_csv(folder / "later.csv", index=False)
    with pytest.raises(ValueError, match=r"files that end in \.csv and \.parquet; expected one"):
        to_memmap(folder, tmp_path / "Y.npy")


def test_a_column_that_is_constant_but_for_rounding_is_written(tmp_path):
    rows = pd.DataFrame({"x": [0.3] * 70_000 + [0.1 + 0.2] * 10})
    assert len(to_memmap(rows, tmp_path / "X.npy")) == len(rows)


def test_names_that_are_numbers_and_gaps_before_strings(tmp_path):
    rows = pd.DataFrame({0: [None] * 65_536 + ["a", "b"], 1: 1.0})
    X = to_memmap(rows, tmp_path / "X.npy")
    np.testing.assert_array_equal(X[-3:], [[np.nan, 1], [0, 1], [1, 1]])
    again = to_memmap(rows[-1:], tmp_path / "Y.npy", like=tmp_path / "X.npy")
    assert again.tolist() == [[1, 1]]
    with pytest.raises(ValueError, match=r"columns \[0, 1\], of which source lacks \[0\]"):
        to_memmap(rows[[1]], tmp_path / "Z.npy", like=tmp_path / "X.npy")
    with pytest.raises(FileNotFoundError, match="none.npy.json is missing"):
        to_memmap(rows, tmp_path / "Z.npy", like="none.npy")


def test_codes_of_an_earlier_file(frame, tmp_path):
    to_memmap(frame, tmp_path / "train.npy", columns=["colour"])
    later = pd.DataFrame({"colour": ["red", "violet", None, "blue"]})
    X = to_memmap(later, tmp_path / "test.npy", like=tmp_path / "train.npy")
    np.testing.assert_array_equal(X.ravel(), [2, -1, np.nan, 0])


def test_columns_of_an_earlier_file(frame, tmp_path):
    """In another order, with others beside them, or missing; positions have no names to match."""
    first = to_memmap(frame, tmp_path / "train.npy", columns=["amount", "colour", "age"])
    later = frame[["gap", "age", "label", "colour", "amount"]]
    again = to_memmap(later, tmp_path / "test.npy", like=tmp_path / "train.npy")
    np.testing.assert_array_equal(again, first)
    for source in (frame[["amount", "colour"]], frame[["amount", "age"]].to_numpy()):
        with pytest.raises(ValueError, match=r"of which source lacks .*'age'"):
            to_memmap(source, tmp_path / "Z.npy", like=tmp_path / "train.npy")
    with pytest.raises(TypeError, match="'age' of source holds .*string, but numbers in the file"):
        to_memmap(later.astype({"age": str}), tmp_path / "Z.npy", like=tmp_path / "train.npy")
    labels = to_memmap(frame, tmp_path / "y.npy", columns="colour")
    assert to_memmap(later, tmp_path / "y2.npy", like=tmp_path / "y.npy").shape == labels.shape
    chosen = to_memmap(
        later, tmp_path / "chosen.npy", columns=["gap", "colour"], like=tmp_path / "train.npy"
    )
    np.testing.assert_array_equal(chosen[:, 1], first[:, 1])


@pytest.mark.parametrize(
    "names",
    [pd.MultiIndex.from_tuples([(1, "a"), (1, "b")]), pd.to_datetime(["2026-01-01", "2026-02-01"])],
)
def test_names_that_are_no_strings(names, tmp_path):
    rows = pd.DataFrame(np.eye(2), columns=names)
    first = to_memmap(rows, tmp_path / "1.npy")
    again = to_memmap(rows[names[::-1]], tmp_path / "2.npy", like=tmp_path / "1.npy")
    np.testing.assert_array_equal(again, first)


def test_a_late_string_in_a_csv_column_of_numbers(tmp_path):
    (tmp_path / "v.csv").write_text("w,v\n" + "1,2\n" * 300_000 + "1,foo\n")
    with pytest.raises(ValueError, match=r"v.csv cannot be read: .*foo"):
        to_memmap(tmp_path / "v.csv", tmp_path / "v.npy")
    assert [file.name for file in tmp_path.iterdir()] == ["v.csv"]


def test_shuffled_alike(frame, tmp_path):
    both = frame.sort_values("label")
    X, y = (
        to_memmap(both, tmp_path / name, columns=c, dtype="float64", shuffle=True, random_state=3)
        for name, c in (("X.npy", ["amount"]), ("y.npy", "label"))
    )
    assert np.abs(np.diff(y)).sum() > 50  # runs of labels, which were two
    pairs = sorted(zip(X[:, 0], y))
    assert pairs == sorted(zip(frame.amount, frame.label.astype(float)))
    with pytest.raises(ValueError, match="random_state=None with shuffle=True; expected an int"):
        to_memmap(both, tmp_path / "other.npy", shuffle=True)


@pytest.mark.parametrize(
    ("column", "dtype", "message"),
    [
        ([1.0, 300.0], "uint8", r"'x' of source holds .*300.*, which uint8 cannot hold"),
        ([1.0, np.nan], "int64", "holds .*nan.*, which int64 cannot hold"),
        ([1, 2**24 + 1], "float32", "holds .*16777217.*, which float32 cannot hold"),
        ([1.0, 1e60], "float32", "holds .*1e\\+60.*, which float32 cannot hold"),
        ([1.7e9 + i / 10 for i in range(99)], "float32", "which float32 cannot hold"),
        ([1.7e9 + 40 * i for i in range(99)], "float32", "differences float32 cannot hold"),
        (pd.to_datetime(["2026-01-01", "2026-01-02"]), "float32", "holds timestamp.*Make numbers"),
        ([[1], [2]], "float32", "'x' of source holds list"),
        (np.array([200], np.uint8), "int8", "which int8 cannot hold"),
        (np.array([-1], np.int8), "uint8", "which uint8 cannot hold"),
        (np.array([2**64 - 1], np.uint64), "int64", "which int64 cannot hold"),
        (pd.Series(["x"] * 65_536 + [1], dtype=object), "float32", "neither all|in some rows"),
        (pd.Series([1] * 65_536 + ["x"], dtype=object), "float32", "neither all|in some rows"),
    ],
)
def test_what_the_file_cannot_hold_is_refused_and_nothing_written(tmp_path, column, dtype, message):
    with pytest.raises((ValueError, TypeError), match=message):
        to_memmap(pd.DataFrame({"x": column}), tmp_path / "X.npy", dtype=dtype)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_there(frame, tmp_path):
    path = tmp_path / "X.npy"
    to_memmap(frame, path, columns=["age"])
    with pytest.raises(FileExistsError, match="pass overwrite=True"):
        to_memmap(frame, path, columns=["age"])
    X = to_memmap(frame, path, columns=["amount"], overwrite=True)
    np.testing.assert_array_equal(X[:, 0], frame.amount.astype(np.float32))
    (tmp_path / "Y.npy.part").touch()
    with pytest.raises(FileExistsError, match="another call writes it, or was killed"):
        to_memmap(frame, tmp_path / "Y.npy", columns=["age"])


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        ("rows.xlsx", {}, "ends in none of .parquet"),
        (np.zeros((3, 2)), {"columns": [2]}, r"columns holds \[2\]; expected some of \[0, 1\]"),
        (np.zeros((3, 2, 2)), {}, r"source has shape \(3, 2, 2\)"),
        (np.zeros((0, 2)), {}, r"source has shape \(0, 2\); expected at least one row"),
        (np.zeros((3, 2)), {"dtype": "U3"}, "dtype='U3'; expected a type of numbers"),
        (np.array([["a"]]), {}, "holds <U1; expected numbers"),
        (7, {}, "source is a int; expected the path"),
        (pl.DataFrame({"a": [1]}).lazy(), {}, r"LazyFrame; .* Pass source.collect\(\)"),
        (np.zeros((3, 2)), {"columns": [1, 1]}, "names a column twice"),
        (pytest.importorskip("dask.array").zeros((4, 3, 2)), {}, r"shape \(4, 3, 2\)"),
        (iter([1]), {}, "source is a list_iterator; expected the path"),
    ],
)
def test_what_is_no_table(tmp_path, source, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        to_memmap(source, tmp_path / "X.npy", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_call_leaves_no_half_file(tmp_path):
    script = (
        "import numpy as np, os\n"
        "from auxcst_sklearn.datasets import to_memmap\n"
        "class Rows:\n"
        "    shape = (200_000, 2)\n"
        "    def __getitem__(self, rows):\n"
        "        if rows.start > 100_000: os.kill(os.getpid(), 9)\n"
        "        return np.ones((rows.stop - rows.start, 2))\n"
        f"to_memmap(Rows(), {str(tmp_path / 'X.npy')!r})\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy.part"]


def test_progress(tmp_path, capsys):
    to_memmap(np.ones((70_000, 1)), tmp_path / "X.npy", verbose=1)
    assert capsys.readouterr().out.splitlines()[-1] == "to_memmap: 70,000 of 70,000 rows"


def test_a_model_of_codes_and_gaps(frame, tmp_path):
    X = to_memmap(frame, tmp_path / "X.npy", columns=FEATURES)
    y = to_memmap(frame, tmp_path / "y.npy", columns="label", dtype="int64")
    model = CostSensitiveAuxMLP(
        categorical_features=[2], cost_matrix=[[0, 1], [5, 0]], max_epochs=2, random_state=0
    )
    assert model.fit(X, y).predict(X).shape == (250,)


def test_an_overwrite_that_fails_leaves_both_files(tmp_path):
    X = to_memmap(pd.DataFrame({"c": ["a", "b"]}), tmp_path / "X.npy")
    before = X.tolist(), (tmp_path / "X.npy.json").read_text()
    (tmp_path / "X.npy.json.part").mkdir()  # cannot be written
    with pytest.raises(OSError):
        to_memmap(pd.DataFrame({"c": ["b", "z"]}), tmp_path / "X.npy", overwrite=True)
    (tmp_path / "X.npy.json.part").rmdir()
    assert (np.load(tmp_path / "X.npy").tolist(), (tmp_path / "X.npy.json").read_text()) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["X.npy", "X.npy.json"]


def test_two_calls_at_once_do_not_mix_their_rows(tmp_path):
    class Slow:
        """Rows during whose reading another call writes the same file."""

        shape = (2, 1)

        def __getitem__(self, rows):
            with pytest.raises(FileExistsError, match="another call writes it"):
                to_memmap(np.ones((2, 1)), tmp_path / "X.npy")
            return np.zeros((2, 1))[rows]

    assert to_memmap(Slow(), tmp_path / "X.npy").tolist() == [[0], [0]]


def test_sparse_rows_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"source is sparse; .*toarray"):
        to_memmap(sparse.csr_array(np.eye(2)), tmp_path / "X.npy")
