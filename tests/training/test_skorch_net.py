"""`net_` is a net of skorch: what its documentation says of a fitted net works."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris
from skorch import NeuralNet
from skorch.callbacks import Checkpoint, EarlyStopping

from tests.factories import dense, small_mlp, small_net, small_stack
from tests.seen import AS_THEY_ARE

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)
MODELS = {
    "networks": lambda: small_stack(**AS_THEY_ARE),
    "module": lambda: small_net(dense(4, 8, 8, 3), early_stopping=False),
}


@pytest.mark.parametrize("kind", MODELS)
def test_predictions_copies_and_files(kind, tmp_path):
    model = MODELS[kind]().fit(X, Y)
    net, rows = model.net_, X

    outputs = net.forward(rows)
    assert isinstance(net, NeuralNet)
    assert outputs.shape == (len(X), model.training_.n_networks, 3)
    with torch.no_grad():
        expected = net.module_(torch.from_numpy(rows).unsqueeze(0))
    torch.testing.assert_close(outputs, expected.movedim(0, 1))
    np.testing.assert_array_equal(net.predict_proba(rows), model.predict_proba(X))
    assert [record["epoch"] for record in net.history] == [*range(1, len(net.history) + 1)]

    fresh = clone(net)
    assert not fresh.initialized_
    assert fresh.initialize().lr == net.lr
    with torch.no_grad():
        next(fresh.module_.parameters()).zero_()
    assert not torch.equal(fresh.forward(rows), outputs)
    assert torch.equal(net.forward(rows), outputs)
    net.save_params(f_params=tmp_path / "weights.pt")
    fresh.load_params(f_params=tmp_path / "weights.pt")
    assert torch.equal(fresh.forward(rows), outputs)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_training_belongs_to_the_estimator(method):
    model = small_mlp().fit(X, Y)
    before = model.predict_proba(X)
    with pytest.raises(TypeError, match="Call fit or partial_fit of the estimator"):
        getattr(model.net_, method)(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("callback", [Checkpoint, EarlyStopping])
def test_two_best_epochs_are_an_error(callback, tmp_path):
    arguments = {"dirname": str(tmp_path)} if callback is Checkpoint else {}
    best = callback(monitor="train_loss", load_best=True, **arguments)
    model = small_mlp(callbacks=[best], early_stopping=True, max_epochs=2)
    with pytest.raises(ValueError, match=f"{callback.__name__} with load_best=True.*Leave load_"):
        model.fit(X, Y)
    model.set_params(early_stopping=False).fit(X, Y)
