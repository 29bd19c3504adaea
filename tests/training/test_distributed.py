"""One fit by two real processes against the same fit by one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from auxcst_sklearn._training.processes import ALONE, distributed_fit, processes
from tests.training import ranks

ROOT = Path(__file__).parents[2]
SECONDS = 150

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not torch.distributed.is_available(), reason="torch has no torch.distributed"
    ),
]


def run_together(commands):
    """Run processes side by side, and end all of them; their output and exit codes."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    variables["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    started = [
        subprocess.Popen([sys.executable, *c], cwd=ROOT, env=variables, **pipe) for c in commands
    ]
    try:
        outputs = [process.communicate(timeout=SECONDS)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return outputs, [process.returncode for process in started]


def results_of_ranks(folder, backend):
    commands = [
        ["-m", "tests.training.ranks", str(rank), "2", str(folder), backend] for rank in (0, 1)
    ]
    outputs, codes = run_together(commands)
    files = [folder / f"rank{rank}.pkl" for rank in (0, 1)]
    assert all(file.exists() for file in files), outputs
    return [pickle.loads(file.read_bytes()) for file in files], outputs, codes


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    return results_of_ranks(tmp_path_factory.mktemp("ranks"), "gloo")


@pytest.fixture(scope="module")
def results(together):
    return together[0]


def numbers(value):
    """All numbers of a result."""
    if isinstance(value, dict):
        value = [v for _, v in sorted(value.items())]
    if isinstance(value, list | tuple):
        return np.concatenate([np.empty(0), *map(numbers, value)])
    return np.ravel(np.asarray(value, dtype=float))


@pytest.mark.parametrize("fit", ranks.EQUAL, ids=lambda fit: fit.__name__)
def test_two_processes_train_what_one_trains(results, fit):
    np.testing.assert_allclose(numbers(results[0][fit.__name__]), numbers(fit()), atol=1e-5)


@pytest.mark.parametrize("fit", ranks.ALIKE, ids=lambda fit: fit.__name__)
def test_ranks_end_with_the_same_bits(results, fit):
    first, second = (pickle.dumps(of_rank[fit.__name__]) for of_rank in results)
    assert first == second


def test_a_fit_without_the_others_is_that_of_one_process(results):
    model = ranks.small_mlp(**ranks.PLAIN).fit(ranks.X, ranks.Y)
    for one, other in zip(results[0]["alone"][0], ranks.weights(model)):
        np.testing.assert_array_equal(one, other)


def test_what_all_ranks_see_they_refuse_alike(results):
    for mistake, expected in {
        "other_labels": "rank 1 was given another learning_rate, y than rank 0; expected the whole",
        "checkpoints": "checkpoint_dir='never_made' cannot be set in a training by several",
    }.items():
        assert expected in results[0][mistake]
        assert results[0][mistake] == results[1][mistake]


def test_a_wrong_parameter_leaves_the_group_of_the_caller(results):
    for of_rank in results:  # whose later fits have no error
        assert "'max_epochs' parameter" in of_rank["wrong parameter"]
        assert of_rank["stack"]


def test_a_rank_whose_fit_fails_leaves_the_group(results):
    assert results[1]["bad_rows"].startswith("ValueError: Input X contains NaN")
    assert "RuntimeError" in results[0]["bad_rows"]  # the connection is lost
    for of_rank in results:
        assert not any(of_rank[f"{m.__name__} leaves a group"] for m in ranks.MISTAKES)


def test_later_fits_of_a_search_that_catches_the_error_raise(results):
    for of_rank, cause in zip(results, ("RuntimeError: ", "OSError: disk full")):
        assert "All the 4 fits failed" in of_rank["search"]
        assert "1 fits failed" in of_rank["search"]
        assert cause in of_rank["search"]
        message = f"left its torch.distributed group, because a fit failed ({cause}"
        assert message in of_rank["after_it"]


def test_the_death_of_a_process_ends_the_others(together):
    results, _, codes = together
    assert codes == [0, 3]
    assert "RuntimeError" in results[0]["death"]
    assert results[0]["group_ended"]


def test_rank_0_alone_prints_the_progress(together):
    _, outputs, _ = together
    assert "train_loss" in outputs[0]
    assert "train_loss" not in outputs[1]


def test_the_example_runs_under_torchrun():
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    (output,), codes = run_together([[*launcher, "examples/torchrun_fit.py", "--rows", "600"]])
    assert codes == [0], output
    assert "2 processes: mean cost" in output


def test_without_a_group_there_is_nothing_to_agree_on():
    with distributed_fit("auto"):
        assert processes() is ALONE


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_each_rank_trains_on_its_gpu(tmp_path):
    (first, second), _, _ = results_of_ranks(tmp_path, "nccl")
    assert pickle.dumps(first["on_gpu"]) == pickle.dumps(second["on_gpu"])
    one = numbers(ranks.on_gpu())
    np.testing.assert_allclose(numbers(first["on_gpu"]), one, rtol=1e-4, atol=1e-4)
