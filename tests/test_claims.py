"""The claims job of the examples, on fewer rows."""

from importlib.util import module_from_spec, spec_from_file_location

import matplotlib.pyplot as plt
import pytest
import sklearn

from tests.test_docs import ROOT


@pytest.mark.slow
def test_claims_go_from_a_file_to_the_next_month(tmp_path, monkeypatch, capsys):
    for name in ("pandas", "onnxscript", "skl2onnx", "starlette", "uvicorn"):
        pytest.importorskip(name)
    pytest.importorskip("torch", minversion="2.7")  # of to_onnx
    monkeypatch.syspath_prepend(ROOT / "examples")
    spec = spec_from_file_location("claims", ROOT / "examples" / "claims.py")
    claims = module_from_spec(spec)
    spec.loader.exec_module(claims)
    monkeypatch.setattr(claims, "LIMIT", {"investigate": 1})
    with sklearn.config_context():
        claims.main(1200, tmp_path)
    plt.close("all")

    printed = capsys.readouterr().out
    assert "100.0% the same in the service" in printed
    assert "20 a day" in printed
    assert {"claims.csv", "claims.onnx", "claims.png"} <= {file.name for file in tmp_path.iterdir()}


@pytest.mark.lint
def test_a_user_writes_at_most_120_lines():
    """Without the simulation of the file, titles and blank lines."""
    lines = (ROOT / "examples" / "claims.py").read_text(encoding="utf-8").splitlines()
    start, end = (
        lines.index(line) for line in ("import argparse", 'def main(n=30_000, out=Path("out")):')
    )
    simulation = range(lines.index("def simulate(n, path, seed=0):"), end)
    code = [line for i, line in enumerate(lines[start:], start) if i not in simulation]
    assert len([line for line in code if line.strip() and not line.strip().startswith("#")]) <= 120
