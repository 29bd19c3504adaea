import numpy as np
import pytest
import torch

from auxcst_sklearn._training.folds import folds, hold_out, sampled_folds
from tests.factories import small_stack


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


@pytest.mark.parametrize("n_groups", [None, 30, 2000])
def test_the_only_rows_of_a_class_are_trained_on(n_groups):
    label = np.r_[np.arange(3990) % 2, np.full(10, 2)]  # in one group, or in one row
    groups = None if n_groups is None else np.r_[np.arange(3990) % (n_groups - 1), [n_groups] * 10]
    if groups is None:
        label[-9:] = 0
    held = []
    for seed in range(10):
        parts = folds(label, 5, random_state=seed, groups=groups)
        parts.append(hold_out(label, 0.3, random_state=seed, groups=groups))
        for seen, unseen in parts:
            assert set(label[seen]) == {0, 1, 2}
            assert sorted([*seen, *unseen]) == list(range(4000))
            held.append(2 in label[unseen])
    assert not any(held)


@pytest.mark.parametrize("seed", range(5))
def test_a_group_with_the_only_rows_of_a_class_is_not_divided(seed):
    """One of ten groups has the only rows of class 2, beside rows of the other classes."""
    groups, label = np.repeat(np.arange(10), 20), np.arange(200) % 2
    label[-5:] = 2
    parts = folds(label, 5, random_state=seed, groups=groups)
    parts.append(hold_out(label, 0.3, random_state=seed, groups=groups))
    of_row = sampled_folds(label, 1, 0.3, 4, random_state=seed, groups=groups).of_row
    parts.append((np.flatnonzero(of_row), np.flatnonzero(of_row == 0)))
    for seen, unseen in parts:
        assert set(groups[seen]).isdisjoint(groups[unseen])
        assert set(label[seen]) == {0, 1, 2}


@pytest.mark.parametrize("n_networks", [1, 5])
def test_networks_learn_a_class_of_one_group(n_networks):
    """Five groups, each of which would be a fold; the fourth has the only rows of class 2."""
    groups, y = np.repeat(np.arange(5), 40), np.arange(200) % 2
    y[groups == 3] *= 2
    X = np.random.RandomState(0).randn(200, 4) + 4 * np.eye(3, 4)[y]
    for seed in range(4):
        model = small_stack(
            n_networks=n_networks,
            width=32,
            max_epochs=8,
            validation_fraction=0.2,
            random_state=seed,
        )
        net = model.fit(X, y, groups=groups).net_
        with torch.no_grad():
            of_each = net.module_(torch.as_tensor(X[y == 2]).float())
        assert (of_each.argmax(dim=-1) == 2).float().mean(dim=1).min() > 0.5


def test_another_group_is_held_out_than_the_only_one_of_a_class():
    groups, label = np.repeat(np.arange(5), 40), np.arange(200) % 2
    label[groups == 3] *= 2
    for seed in range(20):
        seen, unseen = hold_out(label, 0.2, random_state=seed, groups=groups)
        assert set(label[seen]) == {0, 1, 2}
        assert len(unseen) == 40


def test_no_fold_of_groups_is_empty():
    """Rounding decides ties of scikit-learn's stratified folds, which then leaves one empty."""
    label = np.repeat([0, 1, 0], [8, 2, 2])
    groups = np.repeat(np.arange(5), [5, 3, 1, 1, 2])
    held_out = [unseen for _, unseen in folds(label, 5, random_state=1, groups=groups)]
    assert sorted(map(len, held_out)) == [1, 1, 2, 3, 5]


def test_a_fold_of_one_class_is_held_out():
    label = np.repeat([0, 1], 10)

    seen, unseen = hold_out(label, 0.5, random_state=0, groups=label)

    assert len(seen) == len(unseen) == 10


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.7, 0.9])
def test_a_share_of_the_groups_of_many_rows(share):
    label, groups = np.tile([0, 1], 500), np.repeat(np.arange(100), 10)
    found = sampled_folds(label, 1, share, 4, random_state=0, groups=groups)
    assert np.mean(found.of_row == 0) == pytest.approx(share, abs=0.011)
    assert set(groups[found.of_row == 0]).isdisjoint(groups[found.of_row == 1])
    with pytest.raises(ValueError, match="1 different values of groups"):
        sampled_folds(label, 1, share, 4, random_state=0, groups=np.zeros(1000))


@pytest.mark.parametrize("n_folds", [2, 5])
def test_many_groups_are_in_folds_of_equally_many(n_folds):
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.arange(20_000) % 5000)
    label = (rng.random(5000) < 0.002)[groups].astype(int)
    found = folds(label, n_folds, random_state=0, groups=groups)
    held_out = np.concatenate([unseen for _, unseen in found])
    assert sorted(held_out) == list(range(20_000))
    for seen, unseen in found:
        assert not np.intersect1d(groups[seen], groups[unseen]).size
        assert len(np.unique(groups[unseen])) == 5000 // n_folds
    other = folds(label, n_folds, random_state=1, groups=groups)
    assert not np.array_equal(found[0][1], other[0][1])


@pytest.mark.parametrize(
    ("parameters", "groups", "message"),
    [
        ({"n_networks": 40}, None, "There are 30 samples, but 40 folds.*Lower n_networks"),
        ({"n_networks": 3}, np.arange(30) % 2, "There are 2 different values of groups, but 3"),
        ({"n_networks": 1, "early_stopping": True}, np.zeros(30), "There are 1 different values"),
    ],
)
def test_an_error_of_too_few_samples_names_the_parameters(parameters, groups, message):
    X, y = np.random.RandomState(0).randn(30, 2), np.arange(30) % 3
    with pytest.raises(ValueError, match=message):
        small_stack(**parameters).fit(X, y, groups=groups)


@pytest.mark.parametrize("groups", [None, np.arange(30) // 3])
def test_the_largest_fraction_leaves_something_to_train_on(groups):
    label = np.arange(30) % 3
    seen, unseen = hold_out(label, 0.999, random_state=0, groups=groups)
    assert len(seen) > 0
    assert len(unseen) > 0
