from __future__ import annotations

import numpy as np
import pytest

from auxcst_sklearn.plotting._results import (
    find_name,
    levels,
    paired_standard_error,
)


def test_find_name_takes_the_full_name_or_its_last_component():
    names = ["net__alpha", "net__depth", "alpha_step__depth"]

    assert find_name("alpha", names, "x") == "net__alpha"
    assert find_name("net__depth", names, "x") == "net__depth"
    with pytest.raises(ValueError, match="x='depth' stands for each of"):
        find_name("depth", names, "x")
    with pytest.raises(ValueError, match="hue='width' is not there"):
        find_name("width", names, "hue")


def test_levels_sort_numbers_and_keep_the_order_of_texts():
    assert levels([2, 0.5, None, 2])[0] == [0.5, 2, None]
    found, place = levels(["b", "a", "b"])
    assert found == ["b", "a"]
    assert place.tolist() == [0, 1, 0]


def test_what_a_fold_adds_to_all_candidates_is_no_error():
    rng = np.random.RandomState(0)
    own, fold = rng.normal(size=(400, 5)), 100 * rng.normal(size=5)

    error = paired_standard_error(own + fold)
    np.testing.assert_allclose(error, paired_standard_error(own))
    plain = own.std(axis=1, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(np.mean(error**2), np.mean(plain**2), rtol=0.02)


def test_two_candidates_have_the_error_of_their_difference():
    scores = np.random.RandomState(0).normal(size=(2, 7))

    of_difference = (scores[0] - scores[1]).std(ddof=1) / np.sqrt(7)
    np.testing.assert_allclose(paired_standard_error(scores), of_difference / np.sqrt(2))


def test_candidates_that_failed_or_are_alone():
    scores = np.array([[1.0, 2.0, 4.0], [np.nan, 1.0, 1.0]])

    error = paired_standard_error(scores)
    np.testing.assert_allclose(error[0], scores[0].std(ddof=1) / np.sqrt(3))
    assert np.isnan(error[1])
    assert np.isnan(paired_standard_error(np.ones((2, 1)))).all()
