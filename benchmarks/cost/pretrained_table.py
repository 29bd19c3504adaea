"""The table of ``bench_pretrained``: costs of fine-tuned networks and of their rivals.

``python -m benchmarks.cost.pretrained_table out/pretrained`` judges all runs of a folder. Rates
are those of least held-out cost, for each method by itself; temperatures, weights of heads and the
penalty of the logistic regression are learnt from the same held-out images.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from joblib import Memory
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn._training.geometric_mean import geometric_mean, mean_weights, weights_if_better
from auxcst_sklearn._training.temperature import log_clipped
from auxcst_sklearn.losses import BayesRisk, OneSided, Target
from benchmarks.common.folders import RESULTS
from benchmarks.common.provenance import provenance

Arrays = dict[str, Any]
PENALTIES = (1e-3, 1e-2, 1e-1)

# What users do instead, by the run that it needs.
RIVALS = ("blind", "Bayes", "Bayes, temperature", "features, logistic", "features, MLP")
NAMES = {
    "output": "default, output alone",
    "default": "default: heads without a gradient vote",
    "cross-entropy": "the same, cross-entropy",
    "gradient": "heads with a gradient, output alone",
    "gradient, vote": "heads with a gradient vote",
    "costs on labels": "costs on features of labels",
    "one_sided": "one-sided, heads without a gradient",
    "one_sided_heads": "one-sided, heads with a gradient",
    "one_sided_plain": "one-sided, no heads",
}


class Judged(NamedTuple):
    """Mean held-out cost, test costs of all images, log loss there and accuracy."""

    held_out: float
    costs: NDArray[np.float64]
    log_loss: float
    accuracy: float


def judge(arrays: Arrays, held_out: Any, test: Any, *, blind: bool = False) -> Judged:
    """The decisions of least expected cost, or the most probable classes."""
    cost_matrix, parts = arrays["cost_matrix"], []
    for name, p in {"held_out": held_out, "test": test}.items():
        y = arrays[f"{name}_target"]
        chosen = p.argmax(1) if blind else (p @ cost_matrix).argmin(1)
        log_loss = -np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean()
        parts.append((cost_matrix[y, chosen], log_loss, (chosen == y).mean()))
    (before, *_), (costs, log_loss, accuracy) = parts
    return Judged(before.mean(), costs, float(log_loss), float(accuracy))


def judge_costs(arrays: Arrays, held_out: Any, test: Any) -> Judged:
    """The decisions of least estimated cost, without probabilities."""
    p = [np.eye(r.shape[1])[r.argmin(1)] for r in (held_out, test)]
    return judge(arrays, *p, blind=True)._replace(log_loss=float("nan"))


def smoothed(outputs: NDArray[np.float32]) -> NDArray[np.float64]:
    """Probabilities of the default loss."""
    return BayesRisk().probabilities(torch.as_tensor(outputs).double()).numpy()


def labels_alone(outputs: NDArray[np.float32]) -> NDArray[np.float64]:
    """Probabilities without smoothing."""
    return softmax(outputs.astype(np.float64), axis=1)


def voting(arrays: Arrays, of: Callable[..., Any], *, alone: bool = False) -> tuple[Any, Any]:
    """Held-out and test probabilities of the mean of layers, or of the output at a temperature."""
    logs = [
        np.stack([log_clipped(of(layer)) for layer in arrays[f"{part}_layers"]])
        for part in ("held_out", "test")
    ]
    label = arrays["held_out_target"]
    weights = None if alone else weights_if_better(logs[0], label)
    if weights is None:
        logs = [log[-1:] for log in logs]
        weights = mean_weights(logs[0], label)
    return geometric_mean(weights, logs[0]), geometric_mean(weights, logs[1])


def of_plain(arrays: Arrays) -> dict[str, Judged]:
    raw = [labels_alone(arrays[f"{part}_layers"][-1]) for part in ("held_out", "test")]
    tempered = voting(arrays, labels_alone, alone=True)
    return {
        "blind": judge(arrays, *raw, blind=True),
        "Bayes": judge(arrays, *raw),
        "Bayes, temperature": judge(arrays, *tempered),
    }


def of_frozen(arrays: Arrays) -> dict[str, Judged]:
    X, y = arrays["train_features"], arrays["train_target"]
    parts = arrays["held_out_features"], arrays["test_features"]
    found = {}
    for C in PENALTIES:  # noqa: N806
        model = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=100)).fit(X, y)
        found[C] = judge(arrays, *map(model.predict_proba, parts))
    network = CostSensitiveAuxMLP(cost_matrix=arrays["cost_matrix"], random_state=0).fit(X, y)
    return {
        "features, logistic": min(found.values(), key=lambda judged: judged.held_out),
        "features, MLP": judge(arrays, *map(network.predict_proba, parts)),
    }


def of_default(arrays: Arrays) -> dict[str, Judged]:
    found = {
        "output": judge(arrays, *voting(arrays, smoothed, alone=True)),
        "default": judge(arrays, *voting(arrays, smoothed)),
    }
    if "train_features" in arrays:
        found["costs on labels"] = linear_costs(arrays)
    return found


def of_heads(arrays: Arrays) -> dict[str, Judged]:
    return {
        "gradient": judge(arrays, *voting(arrays, smoothed, alone=True)),
        "gradient, vote": judge(arrays, *voting(arrays, smoothed)),
    }


def of_costs(name: str) -> Callable[[Arrays], dict[str, Judged]]:
    def judged(arrays: Arrays) -> dict[str, Judged]:
        outputs = [arrays[f"{part}_layers"][-1] for part in ("held_out", "test")]
        return {name: judge_costs(arrays, *outputs)}

    return judged


def linear_costs(arrays: Arrays, *, epochs: int = 30, rate: float = 1e-2) -> Judged:
    """A linear layer that learns costs by the one-sided loss, on features that labels trained."""
    torch.manual_seed(0)
    X, label = torch.from_numpy(arrays["train_features"]), torch.from_numpy(arrays["train_target"])
    cost_matrix = torch.from_numpy(arrays["cost_matrix"]).float()
    cost_matrix = cost_matrix / cost_matrix.mean()
    layer, loss = torch.nn.Linear(X.shape[1], len(cost_matrix)), OneSided()
    optimizer = torch.optim.AdamW(layer.parameters(), rate)
    n_steps = epochs * -(-len(X) // 32)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=n_steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            target = Target(cost_matrix[label[rows]], label[rows])
            loss.mean(layer(X[rows]), target).backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        parts = [
            layer(torch.from_numpy(arrays[f"{p}_features"])).numpy() for p in ("held_out", "test")
        ]
    return judge_costs(arrays, *parts)


JUDGES: dict[str, Callable[[Arrays], dict[str, Judged]]] = {
    "plain": of_plain,
    "frozen": of_frozen,
    "default": of_default,
    "heads": of_heads,
    "labels": lambda arrays: {"cross-entropy": judge(arrays, *voting(arrays, labels_alone))},
    **{name: of_costs(name) for name in ("one_sided", "one_sided_heads", "one_sided_plain")},
}

# Set, network and seed; for each method what each rate gives.
Key = tuple[str, str, int]
Rates = dict[str, dict[float, Judged]]


def judge_all(folder: Path) -> tuple[dict[Key, dict[str, Judged]], dict[str, Any]]:
    """The runs of every method at its rate of least held-out cost."""
    found: dict[Key, Rates] = defaultdict(lambda: defaultdict(dict))
    seconds: dict[str, list[float]] = defaultdict(list)
    judged_run = Memory(folder / "judged", verbose=0).cache(judge_run)
    for file in sorted(folder.glob("*_*_*_*_*.npz")):
        name, network, *method, rate, seed = file.stem.split("_")
        kind = "_".join(method)
        if kind not in JUDGES:
            continue
        methods, cpu = judged_run(file, kind, file.stat().st_mtime)
        seconds[f"{network}, {kind}"].append(cpu)
        for what, judged in methods.items():
            found[name, network, int(seed)][what][float(rate)] = Judged(*judged)
    best = {
        key: {what: rates[chosen_rate(found, key, what)] for what, rates in methods.items()}
        for key, methods in found.items()
    }
    return best, {kind: round(float(np.mean(values)), 1) for kind, values in seconds.items()}


def judge_run(file: Path, kind: str, modified: float) -> tuple[dict[str, Any], float]:
    """All methods of one run as plain tuples, and its CPU seconds; stored until it changes."""
    with np.load(file) as arrays:
        loaded = dict(arrays)
    judged = JUDGES[kind](loaded)
    return {what: tuple(one) for what, one in judged.items()}, float(loaded["cpu"])


def chosen_rate(found: dict[Key, Rates], key: Key, what: str) -> float:
    """The rate that costs least on held-out images, over all sets of a network with all its rates.

    The images that one set holds out are too few to choose by.
    """
    sets = [m[what] for other, m in found.items() if other[1] == key[1] and what in m]
    rates = sorted({rate for of_set in sets for rate in of_set})
    complete = [of_set for of_set in sets if len(of_set) == len(rates)]
    costs = [np.mean([np.log(s[rate].held_out) for s in complete]) for rate in rates]
    own = found[key][what]
    best = rates[int(np.argmin(costs))]
    return best if best in own else next(iter(own))


def row_of(of_seeds: Sequence[dict[str, Judged]], what: str) -> dict[str, float]:
    """Means over the seeds, and the paired difference to the temperature's Bayes decision."""
    own = [seed for seed in of_seeds if what in seed]
    base = [seed for seed in own if "Bayes, temperature" in seed]
    row = {
        "cost": float(np.mean([seed[what].costs.mean() for seed in own])),
        "log_loss": float(np.mean([seed[what].log_loss for seed in own])),
        "accuracy": float(np.mean([seed[what].accuracy for seed in own])),
        "seeds": len(own),
    }
    if base:
        pairs = [seed[what].costs - seed["Bayes, temperature"].costs for seed in base]
        difference = np.mean(pairs, axis=0)
        row["difference"] = float(difference.mean())
        row["error"] = float(difference.std(ddof=1) / len(difference) ** 0.5)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    best, seconds = judge_all(options.folder)
    table: dict[str, dict[str, dict[str, float]]] = {}
    for name, network in dict.fromkeys(key[:2] for key in best):
        of_seeds = [methods for key, methods in best.items() if key[:2] == (name, network)]
        methods = [m for m in (*RIVALS, *NAMES) if any(m in seed for seed in of_seeds)]
        table[f"{name}, {network}"] = {what: row_of(of_seeds, what) for what in methods}
    text = "\n".join(lines(table))
    print(text)
    content = {**provenance(), "table": table, "cpu_seconds": seconds}
    (options.results / "pretrained.json").write_text(json.dumps(content, indent=1) + "\n")


def lines(table: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """A line for each method of each set, and geometric means of ratios to the best rival."""
    found, ratios = [], defaultdict(list)
    for name, rows in table.items():
        found.append(name)
        best = min((rows[rival]["cost"] for rival in RIVALS if rival in rows), default=np.nan)
        for what, row in rows.items():
            ratios[what].append(row["cost"] / best)
            ending = ""
            if "difference" in row:
                ending = f"{row['difference']:+8.4f} ({row['error']:.4f})"
            found.append(
                f"  {NAMES.get(what, what):42}{row['cost']:8.4f}{row['cost'] / best:7.3f}"
                f"{row['log_loss']:8.4f}{row['accuracy']:8.4f}{row['seeds']:3.0f} {ending}"
            )
    found.append("geometric means of the ratio to the best rival of each set")
    for what, values in ratios.items():
        mean = np.exp(np.log(values).mean())
        found.append(f"  {NAMES.get(what, what):42}{mean:7.3f} of {len(values)}")
    return found


if __name__ == "__main__":
    main()
