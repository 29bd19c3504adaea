import numpy as np
import pytest

from auxcst_sklearn._training.holdout import hold_out


def split_of(label, fraction=0.1):
    return hold_out(label, fraction, random_state=0)


def test_split_is_stratified():
    label = np.repeat([0, 1, 2], [100, 60, 40])

    train, held_out = split_of(label, 0.2)

    assert sorted([*train, *held_out]) == list(range(200))
    assert np.bincount(label[held_out]).tolist() == [20, 12, 8]


@pytest.mark.parametrize("label", [[0] * 20 + [1], [0, 1, 2, 3], [0, 1]])
def test_split_of_rare_classes(label):
    train, held_out = split_of(np.asarray(label))

    assert len(held_out) == max(1, round(len(label) / 10))
    assert sorted([*train, *held_out]) == list(range(len(label)))


def test_some_rows_must_be_left_to_train_on():
    with pytest.raises(ValueError, match="validation_fraction=0.9 holds out 2 of 2 rows"):
        split_of(np.array([0, 1]), 0.9)
