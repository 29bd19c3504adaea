"""The table of the README is that of the results."""

import re
from collections import defaultdict

import numpy as np
import pytest

from benchmarks.common.json_files import from_json
from tests.test_docs import ROOT

RIVALS = {
    "logistic regression": "logistic",
    "scikit-learn's boosting, stopped early": "boosting, early stop",
    "the same, isotonic calibration": "boosting, isotonic",
    "AutoGluon, without networks": "AutoGluon",
    "CatBoost (one split)": "CatBoost",
    "network alone, ``CostSensitiveAuxMLP``": "ours: default",
}


def ratios_of_ensemble(file):
    """Cost of the ensemble over that of each method: by set, means over the splits."""
    costs = defaultdict(dict)
    for run in from_json(file.read_text(encoding="utf-8"))["runs"]:
        costs[run["method"]][run["set"], run["seed"]] = run["test_cost"]
    ensemble, found = costs["ours: ensemble"], {}
    for method, of_method in costs.items():
        by_set = defaultdict(list)
        for split, cost in of_method.items():
            by_set[split[0]].append(ensemble[split] / cost)
        found[method] = [np.mean(ratios) for ratios in by_set.values()]
    return found


def test_ratios_of_the_readme():
    results = ROOT / "benchmarks" / "results"
    if not results.is_dir():
        pytest.skip("the sdist has no results")
    sixteen, ten = (
        ratios_of_ensemble(results / f"{name}.json") for name in ("tables_wide", "tables_held_out")
    )
    sixteen["CatBoost"] = ratios_of_ensemble(results / "tables_members.json")["CatBoost"]
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    for label, method in RIVALS.items():
        (line,) = re.findall(rf"^{re.escape(label)}  +(.*)$", text, re.M)
        parts = re.split(r"  +", line)
        for part, found in zip(parts, (sixteen[method], ten.get(method))):
            if found:
                assert float(part) == pytest.approx(np.exp(np.mean(np.log(found))), abs=0.0051)
        worst = max(sixteen[method] + ten.get(method, []))
        assert float(parts[2].split()[0]) == pytest.approx(worst, abs=0.0051)


def test_times_of_the_readme():
    file = ROOT / "benchmarks" / "results" / "growth.json"
    if not file.is_file():
        pytest.skip("the sdist has no results")
    cases = from_json(file.read_text(encoding="utf-8"))["cases"]
    found = {(case["kind"], case["rows"], case["model"]): case for case in cases}
    sizes = [20_000, 100_000, 1_000_000]
    ensemble, light = (
        [found["claims", n, m] for n in sizes] for m in ("ours: ensemble", "LightGBM")
    )
    network, boosting = (
        found["numbers", 100_000, m] for m in ("ours: default", "boosting, early stop")
    )

    def listed(values, form):
        *first, last = (format(value, form) for value in values)
        return f"{', '.join(first)} and {last}"

    text = " ".join((ROOT / "README.rst").read_text(encoding="utf-8").split())
    for expected in (
        f"the ensemble takes {listed([case['cpu_seconds'] for case in ensemble], '.0f')} CPU "
        "seconds",
        f"LightGBM {listed([case['cpu_seconds'] for case in light], '.2g')}, at",
        listed([a["cost"] / b["cost"] for a, b in zip(light, ensemble)], ".2f")
        + " of the ensemble's cost",
        f"takes {network['cpu_seconds']:.0f}, boosting {boosting['cpu_seconds']:.0f}, at four",
    ):
        assert expected in text
    assert boosting["cost"] / network["cost"] == pytest.approx(4, abs=0.5)
