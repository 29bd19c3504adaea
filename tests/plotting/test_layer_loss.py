from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError

from auxcst_sklearn.plotting import LayerLossDisplay


@pytest.mark.parametrize("part", ["train", "valid"])
def test_layer_losses_are_those_of_the_history(fitted, part):
    display = LayerLossDisplay.from_estimator(fitted, part=part)
    assert list(display.lines_) == ["hidden1", "hidden2", "output", "total"]
    for layer, line in display.lines_.items():
        key = f"{part}_loss" if layer == "total" else f"{part}_loss_{layer}"
        np.testing.assert_array_equal(line.get_ydata(), [r[key] for r in fitted.history_])
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
    total = display.losses["output"] + 0.2 * (display.losses["hidden1"] + display.losses["hidden2"])
    np.testing.assert_allclose(display.total, total, rtol=1e-5)
    name = {"train": "training loss", "valid": "held-out loss"}[part]
    assert display.ax_.get_ylabel() == name


def test_held_out_losses_stand_dashed_beside_those_of_training(fitted):
    display = LayerLossDisplay.from_estimator(fitted, part="both")
    for part, shown in [("train", display), ("valid", display.held_out)]:
        for layer, line in shown.lines_.items():
            key = f"{part}_loss" if layer == "total" else f"{part}_loss_{layer}"
            np.testing.assert_array_equal(line.get_ydata(), [r[key] for r in fitted.history_])
            assert line.get_linestyle() == {"train": "-", "valid": "--"}[part]
            assert line.get_color() == display.lines_[layer].get_color()
            assert line.axes is display.ax_
    assert display.ax_.get_ylabel() == "loss (solid: training, dashed: held out)"
    labels = [text.get_text() for text in display.legend_.get_texts()]
    assert labels == ["hidden1", "hidden2", "output", "total"]


def test_normalized_layer_losses_start_at_one(fitted):
    display = LayerLossDisplay.from_estimator(fitted, normalize=True)
    for layer, loss in display.losses.items():
        assert loss[0] != 1
        np.testing.assert_allclose(display.lines_[layer].get_ydata(), loss / loss[0])
    assert "relative" in display.ax_.get_ylabel()


def test_network_without_heads_has_one_curve(data, network):
    display = LayerLossDisplay.from_estimator(network(alpha=0).fit(*data))
    assert list(display.lines_) == ["output"]
    np.testing.assert_allclose(display.total, display.losses["output"])


def test_layer_losses_inside_a_search_of_pipelines(search):
    display = LayerLossDisplay.from_estimator(search)
    history = search.best_estimator_[-1].history_
    np.testing.assert_array_equal(display.total, [r["train_loss"] for r in history])


def test_estimators_without_layer_losses(data, network):
    with pytest.raises(TypeError, match="DummyClassifier, which has no history_"):
        LayerLossDisplay.from_estimator(DummyClassifier().fit(*data))
    with pytest.raises(NotFittedError):
        LayerLossDisplay.from_estimator(network())
    with pytest.raises(ValueError, match="early_stopping=True"):
        LayerLossDisplay.from_estimator(network(early_stopping=False).fit(*data), part="valid")
    with pytest.raises(ValueError, match="early_stopping=True"):
        LayerLossDisplay.from_estimator(network(early_stopping=False).fit(*data), part="both")
    with pytest.raises(ValueError, match="'part' parameter"):
        LayerLossDisplay.from_estimator(network().fit(*data), part="test")
