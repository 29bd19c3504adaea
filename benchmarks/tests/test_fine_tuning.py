"""The experiment on a pretrained network and a class tree, on tiny images."""

import sys

import numpy as np
import pytest
import torch

from auxcst_sklearn.costs import tree_distance_cost_matrix
from benchmarks.paper import fine_tuning as experiment
from benchmarks.paper.caltech101 import load_caltech101, read_tree
from benchmarks.paper.pretrained import CHANNEL_MEANS, SqueezeNet

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Five images to train on and one to test on, of each of 39 classes and of another."""
    home = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name in [*read_tree(in_caltech256=True), "wrench"]:
        for i, subset in enumerate(["train"] * 5 + ["test"]):
            file = home / "caltech101-images" / "caltech101" / subset / name / f"image_{i:04}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(256, size=(20, 24, 3), dtype=np.uint8)).save(file)
    return home


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Random arrays with the names and shapes of the published ones."""
    torch.manual_seed(0)
    arrays = {name: value.numpy() for name, value in SqueezeNet(5).state_dict().items()}
    arrays = {name: a + 0.1 * (a.ndim == 1) for name, a in arrays.items()}
    arrays["classifier.1.weight"] = arrays["classifier.1.weight"][:, :, None, None]
    path = tmp_path_factory.mktemp("weights") / "squeezenet.npz"
    np.savez(path, **arrays)
    return path


def test_the_unit_of_hidden_layers_changes_no_output(weights):
    network = SqueezeNet.from_npz(weights).double().eval()
    with np.load(weights) as arrays:
        published = {name: torch.from_numpy(arrays[name]).double() for name in arrays.files}
    features = SqueezeNet(5).features.double()
    features.load_state_dict(
        {name[9:]: a for name, a in published.items() if name.startswith("features.")}
    )
    x = torch.rand(2, 3, 48, 40, dtype=torch.float64)
    with torch.no_grad():
        maps = features(255 * x.flip(1) - torch.tensor(CHANNEL_MEANS).view(3, 1, 1))
        expected = torch.nn.functional.conv2d(
            maps, published["classifier.1.weight"], published["classifier.1.bias"]
        ).mean((2, 3))
        torch.testing.assert_close(network(x), expected, rtol=1e-6, atol=1e-9)


def test_classes_have_their_place_in_the_tree(home):
    data = load_caltech101("caltech101-39", home, image_size=16)
    assert data.images.shape == (6 * 39, 3, 16, 16)
    assert (data.n_train, len(data.paths)) == (5 * 39, 39)
    names = [path.rpartition("/")[2] for path in data.paths]
    assert "wrench" not in names
    assert np.bincount(data.target).tolist() == [6] * 39
    cost = tree_distance_cost_matrix(data.paths)
    order = ["helicopter", "airplanes", "Motorbikes", "laptop", "butterfly"]
    from_helicopter = cost[names.index("helicopter"), [names.index(name) for name in order]]
    assert from_helicopter.tolist() == sorted(from_helicopter)
    assert len(read_tree(in_caltech256=False)) == 100


@pytest.mark.slow
def test_script_chooses_rates_runs_and_resumes(home, weights, tmp_path, monkeypatch, capsys):
    arguments = f"--data-home {home} --weights {weights} --out {tmp_path} --n-jobs 1 --epochs 1 "
    arguments += "--image-size 24 --batch-size 64 --alphas 0 0.5 --seeds 0 --learning-rates"
    monkeypatch.setattr(sys, "argv", ["fine_tuning", *arguments.split(), "1e-3", "1e-2"])
    saved = experiment.main()
    lines = (tmp_path / "runs.jsonl").read_text()
    assert len(lines.splitlines()) == 3 * 2 + 3  # kinds of networks and rates, then each once
    assert [row["network"] for row in saved["runs"]] == ["alpha 0", "alpha 0.5", "blind", "Bayes"]
    assert all(sum(row["distances"]) == row["n_test"] == 39 for row in saved["runs"])
    assert all(len(row["history"]["output_loss"]) == 1 for row in saved["runs"])
    chosen = {row["alpha"]: row["learning_rate"] for row in saved["runs"]}
    assert f"Rates: {{0.0: {chosen[0.0]}, 0.3: {chosen[0.5]}, None: {chosen[None]}}}" in (
        (tmp_path / "fine_tuning.txt").read_text()
    )
    assert (tmp_path / "fine_tuning.png").read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()

    assert experiment.main() == saved
    assert "3 runs are done, 0 are left" in capsys.readouterr().out
    assert (tmp_path / "runs.jsonl").read_text() == lines
