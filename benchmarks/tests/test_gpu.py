"""The benchmark of GPUs, in its small run on the CPU."""

import json
from importlib.metadata import version

import pytest

from benchmarks.speed import bench_gpu


@pytest.mark.slow
def test_a_small_run_on_the_cpu_from_end_to_end(tmp_path):
    bench_gpu.main(["--small", "--out", str(tmp_path / "gpu.json")])

    result = json.loads((tmp_path / "gpu.json").read_text())
    fits = {(f["case"], f["method"], f["precision"]): f["seconds"] for f in result["fits"]}
    assert len(fits) == 16  # four cases, ours and by hand, float32 and bf16
    assert all(seconds[0] > 0 for seconds in fits.values())
    assert {"over_raw", "over_float32"} <= result["ratios"][1].keys()
    ratio = fits["mlp", "ours", "bf16"][0] / fits["mlp", "raw", "bf16"][0]
    assert result["ratios"][1]["over_raw"] == ratio
    assert result["device"] == "cpu"
    assert (result["tests"], result["left_out"]) == (None, [])
    assert result["versions"]["torch"] == version("torch")  # torch.__version__ may add the build


def test_what_would_start_too_late_is_left_out(tmp_path):
    bench_gpu.main(["--small", "--minutes", "0", "--out", str(tmp_path / "gpu.json")])

    result = json.loads((tmp_path / "gpu.json").read_text())
    assert (result["fits"], len(result["left_out"])) == ([], 16)
