"""The typed example runs; mypy, which `make lint` calls, checks its types."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "typed_use.py"


def test_the_typed_example_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")

    assert "a row" in capsys.readouterr().out
