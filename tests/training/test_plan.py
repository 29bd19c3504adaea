"""The plan of a training: what each "auto" becomes, and that fits are as planned."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch

from auxcst_sklearn import (
    CostSensitiveAuxCNN,
    CostSensitiveAuxMLP,
    CostSensitiveAuxNet,
    CSAEPretrainedMLP,
)
from auxcst_sklearn._training.plan import NetworkFacts, Plan, Sizes, make_plan, rows_by_memory
from auxcst_sklearn.costs._statistics import CostStatistics
from tests.factories import small_mlp

MODULE = NetworkFacts(learns_temperature_alone=True, module="Net", is_instance=True)
TRAINED = replace(MODULE, looks_trained=True)
ENCODER = replace(TRAINED, reads_masks=True)
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(90, 4)), np.arange(90) % 3


def statistics(highest=1.0):
    return CostStatistics(np.array([500.0, 500.0]), np.array([[0.0, highest], [1.0, 0.0]]))


def plan_of(
    estimator, n_samples=1000, network=None, *, costs=None, stream=False, device="cpu", **sizes
):
    sizes = Sizes(n_samples=n_samples, n_inputs=sizes.pop("n_inputs", 10), **sizes)
    given = estimator.get_params(deep=False), sizes, costs or statistics()
    return make_plan(*given, device, network, stream=stream)


@pytest.mark.parametrize(
    ("n", "batch", "patience", "n_networks", "n_rates"),
    [
        (10, 16, 4, 5, 3),
        (640, 20, 4, 5, 3),
        (20_000, 256, 3, 5, 2),
        (90_000, 450, 2, 3, 2),
        (10**6, 512, 1, 3, 2),
    ],
)
def test_tables_are_planned_by_their_number_of_samples(n, batch, patience, n_networks, n_rates):
    plan = plan_of(CostSensitiveAuxMLP(), n)

    assert (plan.batch_size, plan.patience, plan.n_networks) == (batch, patience, n_networks)
    assert (len(plan.plateau_rates), plan.learning_rate, plan.early_stopping) == (n_rates, 8e-3, 1)
    assert plan.validates


@pytest.mark.parametrize(("n", "batch"), [(102_000, 510), (300_000, 1500), (10**6, 4096)])
def test_an_epoch_of_many_samples_has_200_steps_on_a_gpu(n, batch):
    on_gpu = plan_of(CostSensitiveAuxMLP(), n, device="cuda")

    assert replace(on_gpu, device="cpu", batch_size=512) == replace(
        plan_of(CostSensitiveAuxMLP(), n), batch_size=512
    )
    assert on_gpu.batch_size == batch
    assert plan_of(CostSensitiveAuxMLP(batch_size=50), n, device="cuda").batch_size == 50


@pytest.mark.parametrize("n", [10, 640, 20_000, 100_000])
def test_fewer_samples_are_planned_alike_on_a_gpu(n):
    for model in (CostSensitiveAuxMLP(), CSAEPretrainedMLP(), CostSensitiveAuxCNN()):
        on_gpu = plan_of(model, n, device="cuda:1")
        assert replace(on_gpu, device="cpu") == plan_of(model, n)


@pytest.mark.parametrize(
    ("usual", "batch", "row_nbytes", "free", "rows"),
    [
        (3, 128, 64 * 112 * 112 * 4, 80 * 10**9, 1024),  # images of 224 x 224
        (3, 16, 64 * 112 * 112 * 4, 80 * 10**9, 256),  # sixteen times the batch
        (3, 128, 64 * 112 * 112 * 4, 10**9, 8),  # of one gigabyte a twentieth
        (3, 128, 10**9, 10**9, 3),
        (4096, 16, 4, 80 * 10**9, 4096),
        (4096, 4096, 0, 80 * 10**9, 65_536),
    ],
)
def test_a_gpu_predicts_what_its_memory_has_room_for(usual, batch, row_nbytes, free, rows):
    assert rows_by_memory(usual, batch, row_nbytes, free) == rows


def test_parameters_that_are_numbers_stay():
    model = CostSensitiveAuxMLP(
        batch_size=50, patience=7, n_networks=2, learning_rate=0.3, temperature=1.5, n_bins=9
    )
    plan = plan_of(model, 10**6)

    assert (plan.batch_size, plan.patience, plan.n_networks) == (50, 7, 2)
    assert (plan.learning_rate, plan.temperature, plan.n_bins) == (0.3, 1.5, 9)


@pytest.mark.parametrize("schedule", ["one_cycle", "constant"])
def test_only_plateaus_have_a_high_rate_and_large_batches(schedule):
    plan = plan_of(CostSensitiveAuxMLP(schedule=schedule), 90_000)

    assert (plan.learning_rate, plan.batch_size) == (2e-3, 128)
    assert plan.schedule == schedule


@pytest.mark.parametrize(
    ("parameters", "sizes", "rate"),
    [
        ({"early_stopping": False}, {}, 2e-3),
        ({}, {"n_samples": 9}, 2e-3),
        ({}, {"n_samples": 9, "has_validation_set": True}, 8e-3),
        ({}, {"stream": True}, 2e-3),
        ({}, {"n_inputs": 300}, 4e-3),
    ],
)
def test_the_rate_of_plateaus_needs_validation_samples_to_lower_it(parameters, sizes, rate):
    assert plan_of(CostSensitiveAuxMLP(**parameters), **sizes).learning_rate == rate


def test_sparse_rows_are_neither_scaled_nor_binned_by_default():
    dense, flat = (plan_of(CostSensitiveAuxMLP(), is_sparse=sparse) for sparse in (False, True))

    assert (dense.scaling, dense.n_bins) == ("as_needed", 16)
    assert (flat.scaling, flat.n_bins) == ("none", 0)
    assert plan_of(CostSensitiveAuxMLP(standardize=True), is_sparse=True).scaling == "each"
    assert plan_of(CostSensitiveAuxMLP(n_networks=1)).n_bins == 0


@pytest.mark.parametrize(
    ("network", "rate", "factor", "votes", "gradient", "n_networks"),
    [
        (MODULE, 1e-3, 1.0, None, None, 2),
        (TRAINED, 1e-3, 0.1, True, 0.0, 1),
        (ENCODER, 5e-3, 0.02, True, 0.0, 1),
    ],
)
@pytest.mark.filterwarnings("ignore:The weights of module")
def test_modules_are_planned_by_what_is_known_of_them(
    network, rate, factor, votes, gradient, n_networks
):
    plan = plan_of(CostSensitiveAuxNet(torch.nn.Linear(4, 3)), network=network)

    assert (plan.learning_rate, plan.pretrained_lr_factor) == (rate, factor)
    assert (plan.combine_heads, plan.head_gradient) == (votes, gradient)
    assert (plan.n_networks, plan.early_stopping) == (n_networks, network.looks_trained)
    assert plan.validates  # for the temperature


def test_a_module_of_unknown_weights_warns_unless_the_caller_knows():
    with pytest.warns(UserWarning, match="weights of module, a Net, are taken for new ones"):
        plan_of(CostSensitiveAuxNet(torch.nn.Linear(4, 3)), network=MODULE)
    plan_of(CostSensitiveAuxNet(torch.nn.Linear(4, 3), pretrained=False), network=MODULE)


@pytest.mark.filterwarnings("ignore:The weights of module")
def test_extreme_costs_stop_a_new_module_early():
    model = CostSensitiveAuxNet(torch.nn.Linear(4, 3))

    assert not plan_of(model, network=MODULE).early_stopping
    assert plan_of(model, network=MODULE, costs=statistics(1e6)).early_stopping


def test_the_temperature_is_a_number_where_nothing_determines_it():
    cnn = CostSensitiveAuxCNN()
    facts = NetworkFacts(learns_temperature_alone=True)

    assert plan_of(CostSensitiveAuxMLP()).temperature is None
    assert plan_of(CostSensitiveAuxMLP(early_stopping=False)).temperature == 1
    assert plan_of(CostSensitiveAuxMLP(loss="one_sided")).temperature == 1
    assert plan_of(cnn, network=facts).temperature is None
    assert plan_of(cnn, 9, network=facts).temperature == 1
    assert plan_of(CSAEPretrainedMLP()).temperature == 1


@pytest.mark.parametrize(
    ("unit", "n_units", "n_networks", "rows"),
    [("samples", 1, 1, 4096), ("samples", 1, 5, 819), ("values", 48, 1, 10922)]
    + [("steps", 512, 1, 32), ("words", 2**22, 1, 1), ("samples", 1, 50, 256)],
)
def test_large_samples_are_predicted_in_small_batches(unit, n_units, n_networks, rows):
    model = CostSensitiveAuxMLP(n_networks=n_networks)

    assert plan_of(model, unit=unit, units_per_sample=n_units).predict_rows == rows


def test_a_fit_is_as_planned_and_shows_it(capsys):
    model = CostSensitiveAuxMLP(1, 8, max_epochs=3, random_state=0, verbose=1).fit(X, Y)
    plan, net = model.training_, model.net_

    assert capsys.readouterr().out.startswith(f"Training: {plan}\n")
    assert (plan.n_networks, plan.batch_size) == (net.n_networks, net.batch_size) == (5, 16)
    assert (plan.learning_rate, plan.device) == (net.lr, "cpu")
    assert plan.predict_rows == net.iterator_valid__batch_size
    assert "auto" not in str(plan)
    with pytest.raises(FrozenInstanceError):
        plan.batch_size = 3
    assert pickle.loads(pickle.dumps(model)).training_ == plan


def test_a_continued_training_keeps_what_its_networks_have():
    model = small_mlp(warm_start=True, n_networks=2, batch_size="auto").fit(X, Y)
    model.set_params(learning_rate=0.5).fit(X[:40], Y[:40])

    assert model.training_.n_networks == model.net_.n_networks == 2
    assert model.training_.learning_rate == model.net_.lr == 0.5


def test_blocks_of_a_stream_have_a_constant_rate_after_a_fit_with_plateaus():
    model = CostSensitiveAuxMLP(1, 8, max_epochs=3, random_state=0).fit(X, Y)
    assert model.training_.learning_rate == 8e-3
    model.partial_fit(X[:30], Y[:30])

    assert isinstance(model.training_, Plan)
    assert (model.training_.stream, model.training_.max_epochs) == (True, 1)
    assert model.training_.learning_rate == 2e-3
    assert {group["lr"] for group in model.net_.optimizer_.param_groups} == {2e-3}


def test_a_failed_fit_leaves_the_plan():
    model = small_mlp().fit(X, Y)
    before = model.training_
    with pytest.raises(ValueError, match="diverged|infinite or NaN"):
        model.set_params(learning_rate=1e30, optimizer="sgd").fit(X, Y)
    assert model.training_ is before
