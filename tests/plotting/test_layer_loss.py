from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError

from auxcst_sklearn import CostSensitiveAuxCNN
from auxcst_sklearn.plotting import LayerLossDisplay


def curve(history, part, layer):
    key = f"{part}_loss" if layer == "total" else f"{part}_loss_{layer}"
    return [record.get(key, np.nan) for record in history]


def test_layer_losses_are_those_of_the_history(fitted):
    display = LayerLossDisplay.from_estimator(fitted)

    assert list(display.lines_) == ["hidden1", "hidden2", "output", "total"]
    for part, lines in [("train", display.lines_), ("valid", display.held_out_lines_)]:
        for layer, line in lines.items():
            np.testing.assert_array_equal(line.get_ydata(), curve(fitted.history_, part, layer))
            np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
            assert line.get_linestyle() == {"train": "-", "valid": "--"}[part]
            assert line.get_color() == display.lines_[layer].get_color()
            assert line.axes is display.ax_
    losses = display.losses
    total = losses["output"] + 0.2 * (losses["hidden1"] + losses["hidden2"])
    np.testing.assert_allclose(losses["total"], total, rtol=1e-5)
    assert display.ax_.get_ylabel() == "loss (solid: training, dashed: validation)"
    labels = [text.get_text() for text in display.legend_.get_texts()]
    assert labels == ["hidden1", "hidden2", "output", "total"]
    assert len({tuple(np.ravel(line.get_color())) for line in display.lines_.values()}) == 4


def test_epochs_without_held_out_rows_are_gaps(data, network):
    model = network(depth=3, early_stopping=True).fit(*data)
    model.partial_fit(*data)

    display = LayerLossDisplay.from_estimator(model)

    assert np.isfinite(display.losses["output"]).all()
    assert np.isfinite(display.held_out["output"]).tolist() == [True, True, False]


def test_network_without_heads_or_held_out_rows_has_one_curve(data, network):
    display = LayerLossDisplay.from_estimator(network(alpha=0, early_stopping=False).fit(*data))
    assert list(display.lines_) == ["output"]
    assert display.held_out is None
    assert display.ax_.get_ylabel() == "training loss"


def test_layer_losses_inside_a_search_of_pipelines(search):
    display = LayerLossDisplay.from_estimator(search)
    history = search.best_estimator_[-1].history_
    np.testing.assert_array_equal(display.losses["output"], curve(history, "train", "output"))


def test_estimators_without_layer_losses(data, network):
    with pytest.raises(TypeError, match="DummyClassifier, which has no history_"):
        LayerLossDisplay.from_estimator(DummyClassifier().fit(*data))
    with pytest.raises(NotFittedError):
        LayerLossDisplay.from_estimator(network())


def test_legend_has_the_weights_of_averaged_heads():
    X, y = load_digits(return_X_y=True)
    images = X.reshape(-1, 8, 8) / 16
    known = {"channels": (4, 8), "max_epochs": 2, "random_state": 0}
    for combine_heads in (True, False):
        model = CostSensitiveAuxCNN(combine_heads=combine_heads, **known).fit(images, y)
        display = LayerLossDisplay.from_estimator(model)
        labels = [text.get_text() for text in display.legend_.get_texts()]
        layers = [*model.hidden_layers_, "output"]
        if combine_heads:
            assert display.weights == dict(zip(layers, model.head_weights_.tolist()))
            layers = [f"{name} ({w:.2f})" for name, w in zip(layers, model.head_weights_)]
        assert labels == [*layers, "total"]
