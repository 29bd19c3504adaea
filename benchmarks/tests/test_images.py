"""The comparison of images: its parts, its augmentation and its table."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.cost.bench_images import Draw, draw, judged, moved, patches, table


@pytest.mark.parametrize("part", ["validation", "test"])
def test_training_rows_and_the_rows_that_judge_are_others(part):
    given = draw("digits", part, rows=100, seed=0, data_home=Path())
    train, judging = ({image.tobytes() for image in images} for images in (given.X, given.X_test))

    assert len(given.X) == len(given.y) == 100
    assert not train & judging
    assert given.costs.shape == (10, 10)


def test_parts_do_not_overlap():
    parts = [draw("digits", part, 100, 0, Path()).X_test for part in ("validation", "test")]

    one, other = ({image.tobytes() for image in part} for part in parts)
    assert not one & other


def test_probabilities_are_judged_by_decisions_of_least_expected_cost():
    costs = np.array([[0.0, 1], [10, 0]])
    p, y = np.array([[0.8, 0.2], [0.95, 0.05]]), np.array([0, 0])
    given = Draw(p, y, p, y, costs, "shift", 0, Path())

    found = judged(p, given)

    assert found["cost"] == 0.5  # the first row is decided as class 1
    assert found["accuracy"] == 1
    assert found["log_loss"] == pytest.approx(-np.log([0.8, 0.95]).mean())


def test_images_are_mirrored_and_shifted_by_the_plain_loop():
    torch.manual_seed(0)
    rows = torch.arange(16.0).view(1, 1, 16, 1).expand(300, 1, 16, 16)
    columns = rows.mT

    assert set((moved(rows, flips=False) - rows)[:, 0, 8, 8].tolist()) == {-2, -1, 0, 1, 2}
    assert {row[4] > row[8] for row in moved(columns, flips=True)[:, 0, 8].tolist()} == {
        True,
        False,
    }
    assert {row[4] > row[8] for row in moved(columns, flips=False)[:, 0, 8].tolist()} == {False}


def test_random_patches_separate_digits():
    given = draw("digits", "validation", rows=200, seed=0, data_home=Path())

    assert judged(patches(given), given)["accuracy"] > 0.8


def test_the_table_has_means_over_seeds_of_one_part():
    run = {"set": "mnist", "part": "test", "rows": 1000, "method": "ours", "accuracy": 0.5}
    one = {**run, "seed": 0, "cost": 1.0, "log_loss": 0.25, "cpu_seconds": 10}
    other = {**run, "seed": 1, "cost": 2.0, "log_loss": 0.75, "cpu_seconds": 20}

    *_, row, _ = table([one, other, {**one, "part": "validation"}], "test").splitlines()

    assert row.split() == ["mnist", "1000", "ours", "2", "1.500", "0.500", "0.500", "15"]
