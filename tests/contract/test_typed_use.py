"""The typed example runs; mypy, which `make lint` calls, checks its types."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "typed_use.py"


def test_the_typed_example_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")

    assert "a row" in capsys.readouterr().out


MISTAKES = """
from auxcst_sklearn import CostSensitiveAuxCNN, CostSensitiveAuxMLP, Typo
CostSensitiveAuxMLP(detph=3)
CostSensitiveAuxMLP(early_stopping="auto")
CostSensitiveAuxCNN(learning_rate="auto")
CostSensitiveAuxMLP(depth=3, learning_rate="auto").fti()
print(CostSensitiveAuxMLP(depth=3).set_params(alpha=0).training_.batch_size)
"""


@pytest.mark.slow
def test_type_checkers_see_names_parameters_and_methods(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    # The settings are those of setup.cfg, which mypy finds in the folder that it runs in.
    command = [sys.executable, "-m", "mypy", str(tmp_path / "mistakes.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)

    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 5
    for error, part in zip(errors, ["Typo", "detph", "early_stopping", "learning_rate", "fti"]):
        assert part in error
