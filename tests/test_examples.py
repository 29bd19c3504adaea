"""What `make demo` runs: the numbers of a page, and a search of alpha and depth."""

import re
import runpy
import sys

import matplotlib.pyplot as plt
import pytest
import sklearn

from tests.test_docs import ROOT

EXAMPLES = ROOT / "examples"


@pytest.mark.slow
def test_the_payments_cost_what_the_page_says(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "argv", ["demo_payments.py", "--out", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "demo_payments.py"), run_name="__main__")
    plt.close("all")

    printed = capsys.readouterr().out
    text = (ROOT / "docs" / "guide" / "why.rst").read_text(encoding="utf-8")
    figures = re.search(r"EUR (\d+\.\d+) with the ensemble and EUR (\d+\.\d+)", text)
    for name, expected in zip(["ensemble", "boosting, calibrated"], figures.groups()):
        (cost,) = re.findall(rf"^{name} +([\d.]+)", printed, re.M)
        assert float(cost) == pytest.approx(float(expected), abs=0.05)  # of other releases
    assert (tmp_path / "demo_payments.png").exists()


@pytest.mark.slow
def test_the_search_prints_a_table_and_draws_cost_against_alpha(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    script = (EXAMPLES / "search_alpha_depth.py").read_text(encoding="utf-8")
    for many, few in {
        "12_000": "900",
        "train_size=2000": "train_size=300",
        "n_jobs=2": "n_jobs=1",
    }.items():
        assert many in script
        script = script.replace(many, few)
    (tmp_path / "small.py").write_text(script, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["search_alpha_depth.py", str(tmp_path)])
    with sklearn.config_context():
        runpy.run_path(str(tmp_path / "small.py"))
    plt.close("all")

    printed = capsys.readouterr().out
    assert len(re.findall(r"^ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+$", printed, re.M)) == 4
    for row in ("all networks", "without heads", "CSAEPretrainedMLP", "Figure:"):
        assert row in printed
    assert (tmp_path / "search_alpha_depth.png").exists()


@pytest.mark.lint
def test_a_user_copies_about_40_lines():
    """From the costs to the table, without the simulation of payments and the figure."""
    lines = (EXAMPLES / "search_alpha_depth.py").read_text(encoding="utf-8").splitlines()
    start, end = (
        lines.index("import sys"),
        lines.index('matplotlib.use("agg")  # draws to a file, without a display'),
    )
    code = [line for line in lines[start:end] if line.strip() and not line.startswith("#")]
    assert len(code) <= 55
