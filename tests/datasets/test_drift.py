"""Drift of columns, against shares that are counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from auxcst_sklearn.datasets import column_drift

pd = pytest.importorskip("pandas")

TRAIN = {"age": [20.0, 30.0, None, 40.0], "country": ["NL", "FR", "NL", None]}
BATCH = {"country": ["NL", None, "DE", "UK"], "age": [10.0, None, 40.0, 41.0]}
EXPECTED = [[np.nan, 0.5, 0.25, 0.25], [0.5, np.nan, 0.25, 0.25]]
COLUMNS = ["unknown", "outside", "missing", "missing_train"]


def polars_frame(values):
    return pytest.importorskip("polars").DataFrame(values)


def nullable(values):
    return pd.DataFrame(values).convert_dtypes()


def categorical(values):
    return pd.DataFrame(values).astype({"country": "category"})


@pytest.mark.parametrize("frame", [pd.DataFrame, nullable, categorical, polars_frame])
def test_shares_of_a_frame_whose_columns_are_matched_by_name(frame):
    found = column_drift(frame(TRAIN), frame(BATCH))

    expected = pd.DataFrame(EXPECTED, index=["age", "country"], columns=COLUMNS)
    pd.testing.assert_frame_equal(found, expected)


def test_shares_of_arrays_with_codes():
    train, batch = np.array([[0, 3.0], [1, 5.0]]), np.array([[0, 3.0], [2, 5.5]])

    found = column_drift(train, batch, categorical_features=[0])

    np.testing.assert_array_equal(found["unknown"], [0.5, np.nan])
    np.testing.assert_array_equal(found["outside"], [np.nan, 0.5])


def test_without_a_number_in_training_all_numbers_are_outside():
    found = column_drift(np.array([[np.nan]]), np.array([[1.0], [np.nan]]))

    assert found.loc[0].tolist()[1:] == [0.5, 0.5, 1.0]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"age": [1.0]}, "'country'"),
        ({"age": ["old"], "country": ["NL"]}, "Column 'age'.*could not convert"),
        ({"age": [], "country": []}, "at least one row"),
    ],
)
def test_what_cannot_be_compared_is_named(batch, message):
    with pytest.raises(ValueError, match=message):
        column_drift(pd.DataFrame(TRAIN), pd.DataFrame(batch))
