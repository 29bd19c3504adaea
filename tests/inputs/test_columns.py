import pickle
import timeit
import warnings
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from auxcst_sklearn import CostSensitiveEnsembleClassifier, CSAEPretrainedMLP
from auxcst_sklearn._inputs.columns import CategoryCodes
from auxcst_sklearn._inputs.tables import find_categories
from tests.factories import small_cnn, small_mlp, small_stack

Y = np.arange(12) % 2
WORDS = ["b", "a", None, "b", "c", "a"] * 2
FRAME = pd.DataFrame(
    {
        "word": WORDS,
        "number": np.arange(12.0),
        "level": pd.Categorical([3, 1, 2] * 4),
        "flag": Y == 1,
        "object": np.arange(12).astype(object),
        "nullable": pd.array([1, None] * 6, dtype="Int64"),
    }
)


def test_columns_of_strings_and_categories_are_found():
    found = find_categories(FRAME, "from_dtype")
    assert found.tolist() == [True, False, True, False, False, False]
    assert find_categories(FRAME, None) is None
    assert find_categories(FRAME[["number", "flag"]], "from_dtype") is None
    assert find_categories(FRAME.to_numpy(), "from_dtype") is None
    kinds = [pl.String, pl.Categorical, pl.Enum(["x"]), pl.Int8, pl.Boolean]
    frame = pl.DataFrame([[None]] * 5, schema=dict(zip("abcde", kinds)))
    found = find_categories(frame, "from_dtype")
    assert found.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize(
    "given",
    [[1, 3], np.array([3, 1]), [False, True, False, True], ["b", "d"], pd.Index(["d", "b"])],
)
def test_columns_are_given_by_mask_position_and_name(given):
    X = pd.DataFrame(np.zeros((3, 4)), columns=list("abcd"))
    assert find_categories(X, given).tolist() == [False, True, False, True]


def test_codes_count_sorted_categories():
    codes = CategoryCodes(find_categories(FRAME, "from_dtype")).fit(FRAME)

    found = codes.transform(FRAME)

    assert codes.sizes == [3, 3]
    expected = {"a": 0, "b": 1, "c": 2, None: np.nan}
    np.testing.assert_array_equal(found[:, 0], [expected[word] for word in WORDS])
    np.testing.assert_array_equal(found[:, 1], np.arange(12))
    np.testing.assert_array_equal(found[:, 2], [2, 0, 1] * 4)
    np.testing.assert_array_equal(found[:, 3], Y)
    np.testing.assert_array_equal(found[:, 5], [1, np.nan] * 6)


def test_unknown_and_missing_categories_differ():
    codes = CategoryCodes(np.array([True, True])).fit(pd.DataFrame({"a": WORDS, "b": ["x"] * 12}))

    found = codes.transform(pd.DataFrame({"a": ["z", None], "b": ["z", None]}))

    np.testing.assert_array_equal(found, [[-1, -1], [np.nan, -1]])  # in b none was missing


NUMBERS = [2, 0, 1, 2]
KINDS = {
    "strings": pd.DataFrame({"n": ["2", "0", "1", "2"]}),
    "bytes": pd.DataFrame({"n": [b"2", b"0", b"1", b"2"]}),
    "numbers": pd.DataFrame({"n": NUMBERS}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_categories_of_another_kind_raise_an_error(kind, other):
    codes = CategoryCodes(np.array([True])).fit(KINDS[kind])
    if kind == other:
        later = KINDS[kind].astype("category")
        np.testing.assert_array_equal(codes.transform(later).ravel(), NUMBERS)
        return
    with pytest.raises(ValueError, match=rf"'n' of X contains {other}, .* training are {kind}"):
        codes.transform(KINDS[other])
    with pytest.raises(ValueError, match="expected the same"):  # in one row of two
        codes.transform(pd.concat([KINDS[kind][:1], KINDS[other][:1]]))


def test_the_form_of_a_number_makes_no_other_category():
    rates = np.array([0.05, 0.1, 0.19, 3.0, np.nan])
    double = [
        pd.DataFrame({"r": rates}),
        pd.DataFrame({"r": [Decimal(str(rate)) for rate in rates]}),
        rates[:, np.newaxis],
    ]
    single = [
        pd.DataFrame({"r": rates}).astype(np.float32),
        pd.DataFrame({"r": pd.array(rates, dtype="Float32")}),
        pl.DataFrame({"r": rates}).cast(pl.Float32),
        rates[:, np.newaxis].astype(np.float32),
    ]
    for fitted, form in [*product(double, double), *product(single, single)]:
        codes = CategoryCodes(np.array([True])).fit(fitted)
        np.testing.assert_array_equal(codes.transform(form).ravel(), [0, 1, 2, 3, np.nan])


def test_large_identifiers_stay_apart():
    ids = 10**17 + np.arange(4)
    for X in (ids[:, np.newaxis], pd.DataFrame({"id": ids})):
        codes = CategoryCodes(np.array([True])).fit(X)
        assert codes.transform(X).ravel().tolist() == [0, 1, 2, 3]
        assert codes.transform(X[:2] + 1).ravel().tolist() == [1, 2]


@pytest.mark.parametrize("first", [-(2**53) - 9, -(2**63), 2**53 + 1])
def test_codes_of_large_identifiers_do_not_depend_on_the_batch(first):
    X = np.column_stack([first + np.arange(6) % 3, [0, 2**60, 1, 2, 3, 4]])
    codes = CategoryCodes(np.array([True, False])).fit(X)
    np.testing.assert_array_equal(codes.transform(X)[:, 0], np.arange(6) % 3)
    small = np.array([[5, 5]])  # unknown, and within the range of float64
    assert codes.transform(small)[0, 0] == codes.transform(np.vstack([X, small]))[-1, 0]


@pytest.mark.parametrize(
    "special",
    [pd.cut(np.arange(12), 3), pd.Categorical(pd.to_datetime(["2026-01-01", "2026-02-01"] * 6))],
)
def test_categories_that_are_no_strings_do_not_match_strings(special):
    model = small_mlp().fit(pd.DataFrame({"c": special}), Y)
    with pytest.raises(ValueError, match="'c' of X contains strings, .* training are (Int|Time)"):
        model.predict(pd.DataFrame({"c": pd.Series(special).astype(str)}))


def test_money_of_arrow_is_a_number():
    pa = pytest.importorskip("pyarrow")
    money = pd.array([Decimal("2.5"), Decimal("7.5")] * 6, dtype=pd.ArrowDtype(pa.decimal128(9, 2)))
    X = pd.DataFrame({"amount": money})
    model = small_mlp().fit(X, Y)
    assert model.is_categorical_ is None
    expected = small_mlp().fit(X.astype(float), Y).predict_cost(X)
    np.testing.assert_array_equal(model.predict_cost(X), expected)


@pytest.mark.parametrize("kind", [object, "category", "string"])
def test_an_empty_string_is_a_missing_category(kind):
    X = pd.DataFrame({"s": ["a", "b", None, "c"] * 20, "x": np.arange(80.0)})
    y = X["s"].isna()
    empty = X.fillna({"s": ""}).astype({"s": kind})
    model, same = small_mlp().fit(X, y), small_mlp().fit(empty, y)
    np.testing.assert_array_equal(model.predict_cost(empty), model.predict_cost(X))
    np.testing.assert_array_equal(same.predict_cost(X), model.predict_cost(X))
    unknown = model.predict_cost(X.assign(s="never seen"))
    assert (unknown != model.predict_cost(X.assign(s=""))).any()


def test_missing_values_of_pandas_in_arrays_and_objects():
    words = np.array([["u", 1], ["v", 2], [pd.NA, 3]] * 4, dtype=object)
    codes = CategoryCodes(np.array([True, False])).fit(words)
    np.testing.assert_array_equal(codes.transform(words)[:3, 0], [0, 1, np.nan])
    numbers = pd.DataFrame({"i": pd.Series([1, pd.NA] * 6, dtype=object)})
    for network in (small_mlp, CSAEPretrainedMLP):
        with pytest.raises(TypeError, match="NAType"):
            network().fit(numbers, Y)


def test_an_array_of_strings_for_categories_that_were_floats():
    codes = CategoryCodes(np.array([True])).fit(np.array([[0.0], [1.0]]))
    assert codes.transform(np.array([[True], [None]], dtype=object)).tolist() == [[1], [-1]]
    with pytest.raises(ValueError, match="Column 0 of X contains strings, such as '1'"):
        codes.transform(np.array([["1"]]))


SEEN = FRAME.assign(id=2**60 + np.arange(12), half=np.float32([0.1, 0.2] * 6))
FEW = SEEN.iloc[[1, 2, 3]]


@pytest.mark.parametrize("mask", [[1, 0, 1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 1, 1, 1, 0], [1] * 8])
@pytest.mark.parametrize(
    "few",
    [
        FEW,
        FEW.assign(word=["a", "", "zebra"]),
        FEW.assign(word=None, number=np.nan),
        FEW.assign(number=[1, 2, 3], flag=[1.0, 0.0, np.nan]),
        FEW.astype({"number": np.float32}),
        FEW.astype({"number": "Float64"}),
    ],
)
def test_a_few_rows_get_the_codes_that_they_get_among_many(few, mask):
    codes = CategoryCodes(np.array(mask, dtype=bool)).fit(SEEN)
    many = pd.concat([few, *[SEEN] * 10], ignore_index=True)

    np.testing.assert_array_equal(codes.transform(few), codes.transform(many)[: len(few)])
    np.testing.assert_array_equal(codes.transform(codes.read(few)), codes.transform(few))


def test_an_infinite_number_in_a_few_rows_is_an_error_as_among_many():
    codes = CategoryCodes(np.array([True, False])).fit(SEEN[["word", "number"]])
    few = FEW[["word", "number"]].assign(number=np.inf)
    for rows in (few, pd.concat([few] * 40)):
        with pytest.raises(ValueError, match="infinity"):
            codes.transform(rows)


@pytest.mark.parametrize(
    "values",
    [
        np.array([["b", "x"], ["a", "y"], [np.nan, "x"]], dtype=object),
        np.array([[3.0, 1], [1.5, np.nan], [np.nan, -2]]),
    ],
)
def test_codes_are_those_of_the_encoder(values):
    codes = CategoryCodes(np.array([True, True])).fit(values[:2])
    other = "c" if values.dtype == object else 7.0
    for rows in (values, np.where(np.eye(3, 2, dtype=bool), other, values)):
        found = codes.transform(rows)
        np.testing.assert_array_equal(found, codes.encoder.transform(rows))


def test_a_row_takes_as_long_whatever_the_number_of_categories():
    times = []
    for n in (10, 100_000):
        rows = np.array([f"c{i}" for i in range(n)], dtype=object)[:, np.newaxis]
        codes = CategoryCodes(np.array([True])).fit(rows)
        saved = pickle.dumps(codes)
        assert codes.transform(rows[-1:]) == n - 1
        times.append(min(timeit.repeat(lambda: codes.transform(rows[:1]), number=1, repeat=20)))  # noqa: B023
        assert len(pickle.dumps(codes)) == len(saved)
        assert pickle.loads(pickle.dumps(codes)).transform(rows[-1:]) == n - 1
    assert times[1] < 20 * times[0]


def test_numbers_stay_float32():
    X = np.random.default_rng(0).integers(3, size=(9, 2)).astype(np.float32)

    found = CategoryCodes(np.array([True, False])).fit(X).transform(X)

    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, X)


OBJECTS = np.column_stack([np.array(["a", "b"] * 6, dtype=object), np.arange(12.0)])


@pytest.mark.parametrize(
    ("X", "given", "message"),
    [
        (OBJECTS, "from_dtype", "could not convert string to float: 'a'"),
        (FRAME, ["level"], "could not convert string to float: 'b'"),
        (OBJECTS, ["word"], r"contains \['word'\], but the columns of X are \[\]"),
        (OBJECTS, [2], "index 2 is out of bounds"),
        (OBJECTS, [True], "boolean index did not match"),
        (OBJECTS, "dtype", "'categorical_features' parameter .* Got 'dtype'"),
        (sparse.csr_array(np.eye(12)), [0], "but X is sparse; expected a DataFrame or an array"),
        (pd.DataFrame({"a": ["x", 1] * 6}), "from_dtype", "uniformly strings or numbers"),
    ],
)
def test_columns_that_are_no_numbers_or_not_there_are_errors(X, given, message):
    with pytest.raises((IndexError, TypeError, ValueError), match=message):
        small_mlp(categorical_features=given).fit(X, Y)


def test_a_matrix_is_refused_with_and_without_categories():
    X = sparse.csr_matrix([[0, 1]] * 12).todense()  # where users have them from
    for categorical_features in (None, [0]):
        with pytest.raises(TypeError, match=r"np.matrix is not supported.* np.asarray"):
            small_mlp(categorical_features=categorical_features).fit(X, Y)


def test_mistakes_at_prediction_are_named():
    model = small_mlp(max_epochs=1).fit(FRAME, Y)

    with pytest.raises(ValueError, match="could not convert string to float: 'one'"):
        model.predict(FRAME.assign(number="one"))
    with pytest.raises(ValueError, match="^The feature names should match"):
        model.predict(FRAME.iloc[:, ::-1])
    with pytest.raises(ValueError, match="X is sparse, but some of its columns are categories"):
        model.predict(sparse.csr_array(np.eye(12, 6)))


def test_categories_are_refused_where_there_were_none_in_training():
    model = small_mlp().fit(np.arange(24.0).reshape(12, 2), [0, 1] * 6)
    frame = pd.DataFrame({"a": pd.Series(["u", "v"], dtype="category"), "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match="could not convert string to float: 'u'"):
        model.predict(frame)


DAYS = np.arange("2026-01-01", "2026-01-13", dtype="datetime64[D]")
OF_PANDAS = pd.Series(DAYS)
COLUMNS_OF_TIMES = {
    "datetime64": DAYS,
    "seconds": OF_PANDAS.astype("datetime64[s]"),
    "zone": OF_PANDAS.dt.tz_localize("Asia/Tokyo"),
    "arrow": OF_PANDAS.astype("timestamp[us][pyarrow]"),
    "dates of arrow": OF_PANDAS.astype("date32[day][pyarrow]"),
    "spans": OF_PANDAS - OF_PANDAS[0],
    "periods": OF_PANDAS.dt.to_period("M"),
    "polars": pl.Series(DAYS),
    "spans of polars": pl.Series((DAYS - DAYS[0]).astype("m8[us]")),
    "dates of polars": pl.Series(DAYS.tolist()),
}
OBJECTS_OF_TIMES = {
    "dates": pd.Series(DAYS.tolist(), dtype=object),
    "timestamps": OF_PANDAS.astype(object),
    "gaps": OF_PANDAS.astype(object).where(Y == 0, "unknown"),
    "polars": pl.Series(DAYS.tolist(), dtype=pl.Object),
}
TIMES = DAYS.repeat(2).reshape(12, 2)
ROWS_OF_TIMES = {
    "array": TIMES,
    "spans": TIMES - TIMES[0],
    "lists of datetime64": [[day, 5.0] for day in DAYS],
    "lists of dates": [[5.0, day] for day in DAYS.tolist()],
    "tuples of timestamps": [(day, "a") for day in OF_PANDAS],
    "list of arrays": [*TIMES.astype("M8[ns]")],
}
OF_TABLES = {
    "network": small_mlp,
    "pretrained": CSAEPretrainedMLP,
    "images": small_cnn,
    "ensemble": lambda: CostSensitiveEnsembleClassifier(random_state=0),
    "logistic": lambda: CostSensitiveEnsembleClassifier().get_params()["logistic"],
    "boosting": lambda: CostSensitiveEnsembleClassifier().get_params()["boosting"],
}


@pytest.mark.parametrize("model", ["network", "ensemble", "logistic"])
@pytest.mark.parametrize("kind", COLUMNS_OF_TIMES)
def test_columns_of_times_are_refused_with_a_recipe(kind, model):
    make = pl.DataFrame if "polars" in kind else pd.DataFrame
    X = make({"x": np.arange(12), "day": COLUMNS_OF_TIMES[kind]})
    with pytest.raises(ValueError, match="Column 'day' of X contains times .*DatetimeEncoder"):
        OF_TABLES[model]().fit(X, Y)


@pytest.mark.parametrize("model", ["network", "boosting", "logistic"])
@pytest.mark.parametrize("kind", OBJECTS_OF_TIMES)
def test_objects_that_are_times_are_no_numbers(kind, model):
    make = pl.DataFrame if kind == "polars" else pd.DataFrame
    X = make({"x": np.arange(12), "day": OBJECTS_OF_TIMES[kind]})
    # With scikit-learn 1.6, boosting reads polars by the interchange protocol, without objects.
    with pytest.raises((TypeError, ValueError), match="date|Timestamp|data type Object"):
        OF_TABLES[model]().fit(X, Y)


@pytest.mark.parametrize("model", OF_TABLES)
@pytest.mark.parametrize("kind", ROWS_OF_TIMES)
def test_rows_of_times_are_refused(kind, model):
    with pytest.raises(ValueError, match="X contains times .*DatetimeEncoder"):
        OF_TABLES[model]().fit(ROWS_OF_TIMES[kind], Y)


@pytest.mark.parametrize("model", ["network", "boosting", "logistic"])
@pytest.mark.parametrize("kind", ROWS_OF_TIMES)
def test_times_are_refused_where_the_training_had_numbers(kind, model):
    fitted = OF_TABLES[model]().fit(np.arange(24.0).reshape(12, 2), Y)
    for method in (fitted.predict, fitted.predict_proba):
        with pytest.raises(ValueError, match="X contains times"):
            method(ROWS_OF_TIMES[kind])


@pytest.mark.parametrize("values", [["a", pd.NaT, None, "b"], [b"u", b"v", b"u", b"v"]])
def test_strings_with_gaps_and_bytes_are_categories(values):
    X = pd.DataFrame({"s": pd.Series(values * 3, dtype=object)})
    assert small_mlp().fit(X, Y).is_categorical_.tolist() == [True]


IN_CELLS = {
    "rows of dates": TIMES.tolist(),
    "lists": pd.DataFrame({"l": [[1, 2]] * 12}),
    "lists and strings": pd.DataFrame({"l": [[1, 2], "a"] * 6}),
    "lists of one": pd.DataFrame({"l": [[1]] * 12}),
    "polars lists": pl.DataFrame({"l": [[1, 2]] * 12}),
    "structs": pl.DataFrame({"s": [{"u": 1}] * 12}),
}


@pytest.mark.parametrize("X", IN_CELLS.values(), ids=IN_CELLS)
@pytest.mark.parametrize("network", [small_mlp, CSAEPretrainedMLP, small_cnn])
def test_cells_with_several_values_are_no_numbers(network, X):
    with pytest.raises((TypeError, ValueError)):
        network().fit(X, Y)


@pytest.mark.parametrize(
    "X", [pd.DataFrame(index=range(12)), pl.DataFrame()], ids=["pandas", "polars"]
)
@pytest.mark.parametrize("network", [small_mlp, small_cnn])
def test_a_table_without_columns_is_refused(network, X):
    with pytest.raises(ValueError, match="X has no columns"):
        network().fit(X, Y)


@pytest.mark.parametrize("network", [small_mlp, CSAEPretrainedMLP])
def test_one_row_without_a_table_is_refused(network):
    table = pd.DataFrame({"a": range(12), "b": range(12)})
    model = network(max_epochs=1).fit(table, Y)
    row = table.iloc[0]
    for X in (dict(row), row):
        with pytest.raises(ValueError, match="Expected (2D|a 2-dim)"):
            model.predict(X)
        assert model.predict(pd.DataFrame([X])).shape == (1,)
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.predict([dict(row)])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_columns_of_identifiers_are_warned_of(make):
    n = 60
    columns = {
        "day": [f"2026-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(n)],
        "city": ["Bonn", "Oslo"] * (n // 2),
    }
    y = np.arange(n) % 2
    model = small_mlp(max_epochs=1)

    of_names = {**columns, "day": [f"n{i}" for i in range(n)]}
    with pytest.warns(UserWarning, match="Column 'day' of X .* 60 distinct .* 60 rows") as found:
        model.fit(make(of_names), y)
    assert [w.filename for w in found] == [__file__]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small_mlp(max_epochs=1).fit(make(columns)[:49], y[:49])
        small_mlp(max_epochs=1, categorical_features=["day", "city"]).fit(make(columns), y)
        model.predict(make(columns))


def test_the_first_layer_has_factors_for_indicators_alone():
    rng = np.random.RandomState(0)
    X = pd.DataFrame({"a": rng.randn(200), "s": rng.choice(["x", "y", "z"], 200)})
    X.loc[:9, "a"] = np.nan
    y = (X["s"] == "x").astype(int)

    def first_layer(rows, **parameters):
        return small_stack(**parameters).fit(rows, y).net_.module_.hidden["hidden1"][0]

    layer = first_layer(X)
    assert layer.around == (2, 0)  # the number, and its gaps
    assert layer.scale.shape == (3, 1, 3)
    assert layer.scale.any()
    for other in (first_layer(X, learn_scales=False), first_layer(X[["a"]].fillna(0))):
        assert other.scale is None
