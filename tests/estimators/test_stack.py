"""A default network, several in one stack, as its user sees it."""

import numpy as np
import torch

from tests.factories import small_stack


def test_stages_are_means_of_the_heads_of_the_networks(problem):
    model = small_stack(depth=3, loss="squared").fit(problem.X, problem.y, cost=problem.cost)

    with torch.no_grad():
        heads = model.net_.module_.forward_heads(torch.from_numpy(problem.X)[None])
    for found, of_networks in zip(model.staged_predict_cost(problem.X), heads, strict=True):
        expected = model.net_.statistics.to_currency(of_networks.double().numpy().mean(axis=0))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found, model.predict_cost(problem.X))
    for cost, labels in zip(
        model.staged_predict_cost(problem.X), model.staged_predict(problem.X), strict=True
    ):
        np.testing.assert_array_equal(labels, cost.argmin(axis=1))


def test_bfloat16_reaches_every_network(problem):
    X, y, _ = problem
    parameters = {"max_epochs": 5, "early_stopping": False, "temperature": 1.0}
    models = [small_stack(precision=one, **parameters).fit(X, y) for one in ("bf16", "float32")]

    rough, exact = (model.predict_proba(X) for model in models)
    difference = np.abs(rough - exact)
    assert (difference.max(axis=1) > 0).all()
    assert difference.mean() < 0.02
    assert {p.dtype for p in models[0].net_.module_.parameters()} == {torch.float32}
