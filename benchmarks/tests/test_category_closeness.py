"""The experiment on costs from a class tree, on tiny images in the formats of both data sets."""

import shutil
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from auxcst_sklearn.costs import tree_distance_cost_matrix
from benchmarks.common.engine import key
from benchmarks.paper import category_closeness as experiment
from benchmarks.paper.alexnet import (
    AlexNetConfiguration,
    decide,
    make_estimator,
    random_alexnet,
    run,
)
from benchmarks.paper.category_closeness import make_configurations
from benchmarks.paper.images import CIFAR10_BRANCHES, draw_rows, load_images

Image = pytest.importorskip("PIL.Image")

TINY = AlexNetConfiguration(
    dataset="caltech256",
    image_size=16,
    train_size=12,
    test_size=None,
    seed=0,
    alpha=0.2,
    loss="squared",
    head_input="flatten",
    width=4,
    dropout=0.0,
    epochs=2,
    batch_size=4,
    learning_rate=1e-3,
    precision="float32",
)
CATEGORIES = ["004.baseball-bat", "005.baseball-mitt", "218.tennis-racket", "257.clutter"]
TINY_OPTIONS = "--train-size 12 --image-size 16 --width 4 --epochs 2 --batch-size 4 --n-jobs 1"


def save_images(folder, n, brightness):
    """Noise of 16 x 18 pixels around a brightness."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(brightness)
    for i in range(1, n + 1):
        pixels = rng.integers(brightness, brightness + 30, (16, 18, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{folder.name[:3]}_{i:04}.jpg")


@pytest.fixture(scope="session")
def caltech256(tmp_path_factory):
    """Six images of each of three categories, one of which is spelt unlike in the tree."""
    folder = tmp_path_factory.mktemp("256_ObjectCategories")
    for i, name in enumerate(CATEGORIES):
        save_images(folder / name, 6, 70 * i)
    return folder


@pytest.fixture(scope="session")
def cifar10_home(tmp_path_factory):
    home = tmp_path_factory.mktemp("data")
    for i, name in enumerate(sorted(CIFAR10_BRANCHES)):
        save_images(home / "cifar10-images" / "train" / name, 3, 20 * i)
        save_images(home / "cifar10-images" / "test" / name, 2, 20 * i)
    return home


@pytest.fixture(scope="session")
def data(caltech256):
    return load_images("caltech256", None, folder=caltech256, image_size=16)


def parse(arguments):
    return experiment.make_parser().parse_args([*map(str, arguments)])


def main(arguments, monkeypatch):
    """Run the script here: its numbers, and the tables that it writes."""
    monkeypatch.setattr(sys, "argv", [experiment.__file__, *map(str, arguments)])
    found = experiment.main()
    out = Path(arguments[arguments.index("--out") + 1])
    assert (out / "category_closeness.png").read_bytes().startswith(b"\x89PNG")
    text = (out / "category_closeness.txt").read_text()
    assert text.startswith("python -m benchmarks.paper.category_closeness ")
    return found, text


# --- images -----------------------------------------------------------------------------------


def test_caltech256_matches_categories_by_number_and_leaves_clutter_out(data):
    assert data.images.shape == (18, 3, 16, 16)
    assert data.images.dtype == np.uint8
    assert data.target.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert [path.rpartition("/")[2] for path in data.paths] == [
        "baseball-bat",
        "baseball-glove",
        "tennis-racket",
    ]
    assert tree_distance_cost_matrix(data.paths)[0].tolist() == [0, 2, 4]


def test_cifar10_has_a_tree_of_animals_and_vehicles(cifar10_home):
    data = load_images("cifar10", cifar10_home, folder=None, image_size=32)
    names = [path.rpartition("/")[2] for path in data.paths]
    assert names == sorted(CIFAR10_BRANCHES)
    assert (data.n_train, len(data.target)) == (30, 50)
    cost = tree_distance_cost_matrix(data.paths)
    ordered = ["cat", "dog", "horse", "frog", "truck"]
    from_cat = [cost[names.index("cat"), names.index(name)] for name in ordered]
    assert from_cat == sorted(set(from_cat))
    kinds = [path.split("/")[0] for path in data.paths]
    assert sorted(set(kinds)) == ["animal", "vehicle"]
    across = np.not_equal.outer(kinds, kinds)
    assert cost[across].min() > cost[~across].max()


def test_resized_images_stay_bytes(data):
    rows = np.array([3, 1])
    np.testing.assert_array_equal(data.resized(rows, 16), data.images[rows])
    large = data.resized(rows, 32)
    assert large.dtype == np.uint8
    assert large.shape == (2, 3, 32, 32)
    halved = large.reshape(2, 3, 16, 2, 16, 2).mean(axis=(3, 5))
    assert abs(halved - data.images[rows]).mean() < 4  # of noise with a range of 30


def test_caltech256_is_split_by_the_seed(data):
    train, test = draw_rows(data, 12, None, seed=0)
    assert sorted([*train, *test]) == list(range(18))
    assert np.bincount(data.target[train]).tolist() == [4, 4, 4]
    np.testing.assert_array_equal(draw_rows(data, 12, None, seed=0)[0], train)
    assert set(draw_rows(data, 12, None, seed=1)[0]) != set(train)
    train_again, fewer = draw_rows(data, 12, 3, seed=0)
    np.testing.assert_array_equal(train_again, train)
    assert set(fewer) < set(test)


def test_the_split_of_cifar10_is_kept(cifar10_home):
    data = load_images("cifar10", cifar10_home, folder=None, image_size=32)
    train, test = draw_rows(data, 20, None, seed=0)
    assert len(train) == 20
    assert max(train) < 30
    assert test.tolist() == list(range(30, 50))


@pytest.mark.parametrize(
    ("train_size", "test_size", "message"),
    [
        (19, None, "--train-size is 19; expected 1 to 18"),
        (0, None, "--train-size is 0; expected 1 to 18"),
        (18, None, "none is left to test on"),
        (None, None, "none is left to test on"),
        (2, None, "--train-size 2 leaves some of the 3 classes"),
        (12, 7, "--test-size is 7; expected 1 to 6"),
    ],
)
def test_impossible_sizes_are_named(data, train_size, test_size, message):
    with pytest.raises(ValueError, match=message):
        draw_rows(data, train_size, test_size, seed=0)


# --- what is missing --------------------------------------------------------------------------


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere is no folder; .* 001.ak47/001_0001.jpg"):
        load_images("caltech256", None, folder=tmp_path / "nowhere", image_size=16)


@pytest.mark.parametrize("name", ["256_ObjectCategories", "300.spam", "000.ham", "12.eggs"])
def test_folder_of_something_else(tmp_path, name):
    (tmp_path / "001.ak47").mkdir()
    (tmp_path / name).mkdir()
    with pytest.raises(FileNotFoundError, match=rf"class folders \['{name}'\]; expected"):
        load_images("caltech256", None, folder=tmp_path, image_size=16)


def test_empty_folder(tmp_path):
    (tmp_path / ".hidden").mkdir()
    with pytest.raises(FileNotFoundError, match="has no class folders; expected"):
        load_images("caltech256", None, folder=tmp_path, image_size=16)


def test_errors_come_before_any_training(tmp_path, monkeypatch):
    arguments = [*TINY_OPTIONS.split(), "--caltech256", tmp_path / "nowhere", "--out", tmp_path]
    with pytest.raises(FileNotFoundError, match="nowhere is no folder"):
        main(arguments, monkeypatch)
    assert not (tmp_path / "runs.jsonl").exists()


# --- configurations ---------------------------------------------------------------------------


def test_each_seed_has_one_cost_blind_network():
    options = parse(["--alphas", 0, 0.5, "--seeds", 3, 4, "--loss", "softmin"])
    configurations = make_configurations(options)
    assert [(c.seed, c.alpha, c.loss) for c in configurations] == [
        (seed, alpha, loss)
        for seed in (3, 4)
        for alpha, loss in [(0.0, "softmin"), (0.5, "softmin"), (None, "cross_entropy")]
    ]
    assert {(c.dataset, c.image_size) for c in configurations} == {("cifar10", 32)}


def test_every_option_that_matters_is_part_of_the_identity():
    values = ["cifar10", 32, 15, 3, 1, None, "softmin", "mean"]
    values += [8, 0.5, 3, 8, 0.1, "bf16", "0" * 64, 1, 0.1]
    others = [
        replace(TINY, **{f.name: value}) for f, value in zip(fields(TINY), values, strict=True)
    ]
    assert len(others) == len(values)
    keys = {key(c.identity) for c in [TINY, *others]}
    assert len(keys) == 1 + len(fields(TINY))


# --- one run ----------------------------------------------------------------------------------


def test_random_weights_keep_the_scale_of_a_signal():
    torch.manual_seed(0)
    network = random_alexnet(small=True, width=256, dropout=0.0)
    with torch.no_grad():
        outputs = network(torch.rand(8, 3, 32, 32))
    assert 0.1 < outputs.std() < 10


@pytest.mark.parametrize(
    ("alpha", "head_input"), [(0.0, "flatten"), (0.2, "flatten"), (0.2, "mean")]
)
def test_run_tests_what_it_trained(data, alpha, head_input):
    configuration = replace(TINY, alpha=alpha, head_input=head_input)
    record = run(configuration, data, "cpu")
    train, test = draw_rows(data, 12, None, seed=0)
    cost_matrix = tree_distance_cost_matrix(data.paths)
    estimator = make_estimator(configuration, cost_matrix, device="cpu")
    y_pred = estimator.fit(data.images[train], data.target[train]).predict(data.images[test])
    assert len(estimator.hidden_layers_) == (6 if alpha else 0)
    assert estimator.head_input == head_input
    (result,) = record["results"]
    assert result["method"] == "AuxAlexNet"
    assert result["test_cost"] == pytest.approx(cost_matrix[data.target[test], y_pred].mean())
    assert result["accuracy"] == pytest.approx(np.mean(data.target[test] == y_pred))
    constant = cost_matrix[data.target[test]].mean(axis=0).min()
    assert result["savings"] == pytest.approx(1 - result["test_cost"] / constant)
    assert (record["n_classes"], record["n_train"], record["n_test"]) == (3, 12, 6)
    assert record["train_loss"] == pytest.approx(
        [epoch["train_loss_output"] for epoch in estimator.history_], abs=1e-6
    )


def test_one_cost_blind_network_serves_both_decisions(data):
    configuration = replace(TINY, alpha=None, loss="cross_entropy")
    record = run(configuration, data, "cpu")
    train, test = draw_rows(data, 12, None, seed=0)
    cost_matrix = tree_distance_cost_matrix(data.paths)
    estimator = make_estimator(configuration, cost_matrix, device="cpu").fit(
        data.images[train], data.target[train]
    )
    with torch.no_grad():
        (logits,) = estimator.net_.module_(torch.from_numpy(data.images[test])[None])
    risk = torch.softmax(logits, dim=1).numpy() @ cost_matrix
    expected = {"blind": logits.argmax(dim=1).numpy(), "Bayes": risk.argmin(axis=1)}
    assert [result["method"] for result in record["results"]] == list(expected)
    for result in record["results"]:
        cost = cost_matrix[data.target[test], expected[result["method"]]].mean()
        assert result["test_cost"] == pytest.approx(cost)


def test_bayes_decision_avoids_expensive_mistakes():
    estimates = 1 - np.array([[0.4, 0.3, 0.3], [0.9, 0.1, 0.0]])
    cost_matrix = np.array([[0, 4, 4], [4, 0, 2], [4, 2, 0]])
    decisions = decide(replace(TINY, alpha=None), estimates, cost_matrix)
    assert decisions["blind"].tolist() == [0, 0]
    assert decisions["Bayes"].tolist() == [1, 0]


def test_larger_images_of_cifar10(cifar10_home):
    data = load_images("cifar10", cifar10_home, folder=None, image_size=64)
    configuration = replace(TINY, dataset="cifar10", image_size=24, train_size=20, test_size=10)
    record = run(configuration, data, "cpu")
    assert (record["n_train"], record["n_test"], record["n_classes"]) == (20, 10, 10)


# --- the script -------------------------------------------------------------------------------


@pytest.mark.slow
def test_script_on_caltech256_then_resumed(caltech256, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "256_ObjectCategories"
    shutil.copytree(caltech256, folder)
    arguments = [*TINY_OPTIONS.split(), "--caltech256", folder, "--out", tmp_path]
    arguments += ["--alphas", 0, 0.5, "--seeds", 0, 1]
    saved, table = main(arguments, monkeypatch)
    runs = (tmp_path / "runs.jsonl").read_text()
    assert len(runs.splitlines()) == 2 * 3  # seeds; two alphas and the cost-blind network
    assert "holds 18 images of 3 of the 256 categories" in capsys.readouterr().out

    shutil.rmtree(folder)  # there is nothing left to load images for
    assert main(arguments, monkeypatch) == (saved, table)
    assert (tmp_path / "runs.jsonl").read_text() == runs
    assert "6 runs are done, 0 are left" in capsys.readouterr().out

    networks = ["alpha 0", "alpha 0.5", "blind", "Bayes"]
    assert [row["network"] for row in saved["runs"]] == networks * 2
    cost = {(row["network"], row["seed"]): row["test_cost"] for row in saved["runs"]}
    summary = {(entry["network"], entry["measure"]): entry for entry in saved["summary"]}
    for network in networks:
        of_seeds = np.array([cost[network, seed] for seed in (0, 1)])
        assert summary[network, "test cost"]["mean"] == pytest.approx(of_seeds.mean())
        for reference in {"alpha 0", "blind", "Bayes"} - {network}:
            paired = of_seeds - [cost[reference, seed] for seed in (0, 1)]
            entry = summary[network, f"minus {reference}"]
            assert entry["mean"] == pytest.approx(paired.mean())
            assert entry["standard_error"] == pytest.approx(np.std(paired, ddof=1) / np.sqrt(2))
    assert [line.split("  ")[0] for line in table.splitlines()[7:]] == networks
