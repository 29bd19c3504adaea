from __future__ import annotations

import subprocess
import sys

from auxcst_sklearn.plotting._drawing import amount, share


def test_without_matplotlib_the_error_names_the_extra():
    script = """
import sys

sys.modules["matplotlib"] = None
from auxcst_sklearn.plotting import CostThresholdDisplay
try:
    CostThresholdDisplay.from_predictions([0, 1], [1, 0], cost_matrix=[[0, 1], [2, 0]])
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'auxcst_sklearn[plot]'" in run.stdout


def test_amounts_have_about_three_digits():
    assert [amount(v) for v in (0.01234, 3.14159, 123456.7)] == ["0.0123", "3.14", "123,457"]


def test_shares_have_about_two_digits():
    values = (0, 0.00123, 0.0456, 0.789, 1)
    assert [share(v) for v in values] == ["0 %", "0.12 %", "4.6 %", "79 %", "100 %"]
