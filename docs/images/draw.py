"""Draw the pictures of the pages: ``python docs/images/draw.py`` in the root; names select some.

White, opaque backgrounds make them readable in light and dark themes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
IMAGES = ROOT / "docs" / "images"
BLUE, ORANGE, GREEN, GREY = "#1f6fb4", "#c85a11", "#3b7d23", "#5f6b76"
STYLE = {
    "font.size": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "auxcst",
    "svg.fonttype": "path",
    "savefig.facecolor": "white",
}


def save(figure, name, kind="svg"):
    """Vector graphics without a date, so that a second run changes nothing."""
    metadata = {"Date": None} if kind == "svg" else None
    figure.savefig(IMAGES / f"{name}.{kind}", dpi=110, metadata=metadata)
    plt.close(figure)


def box(ax, x, y, width, height, text, color, size=12, fill="white"):
    shape = {"boxstyle": "round,pad=0,rounding_size=0.08", "lw": 1.6, "ec": color, "fc": fill}
    ax.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, **shape))
    ax.text(x, y, text, ha="center", va="center", color="#1b2126", fontsize=size)


def arrow(ax, start, end, color=GREY, **style):
    ax.annotate(
        "", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.5, **style}
    )


def canvas(width, height):
    figure = plt.figure(figsize=(width, height))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(0, height))
    ax.axis("off")
    return figure, ax


def network():
    """The default: output and heads learn class probabilities, and costs enter in the decision."""
    figure, ax = canvas(7.4, 4.1)
    learns = "class\nprobabilities,\nloss"
    names = ["inputs\nx", "hidden\nlayer 1", "hidden\nlayer 2", "hidden\nlayer 3"]
    places = [0.55, 1.8, 3.2, 4.55]
    for x, name in zip(places, names):
        box(ax, x, 2.5, 0.95, 1.0, name, GREY if x < 1 else BLUE, 13, "#f2f4f6")
    for x, following in zip(places, [*places[1:], 6.1]):
        arrow(ax, (x + 0.48, 2.5), (following - 0.5 - 0.22 * (following > 5), 2.5))
    box(ax, 6.1, 2.5, 1.4, 1.0, f"output: {learns} $L_{{out}}$", ORANGE, 12, "#fdf1e8")
    for i, x in enumerate(places[1:3], 1):
        arrow(ax, (x, 1.98), (x, 1.55), ORANGE, linestyle=(0, (4, 2)))
        box(ax, x, 1.0, 1.3, 1.08, f"head {i}: {learns} $L_{i}$", ORANGE, 12, "#fdf1e8")
    box(ax, 4.45, 3.62, 0.9, 0.58, "costs C", GREEN, 12.5, "#eef6ea")
    decision = "decision: lowest\nexpected cost $p\\cdot C$"
    box(ax, 6.2, 3.62, 2.0, 0.72, decision, GREEN, 12.5, "#eef6ea")
    arrow(ax, (4.9, 3.62), (5.2, 3.62), GREEN)
    arrow(ax, (6.1, 3.0), (6.1, 3.25), GREEN)
    note = "$p$ is learnt from labels.\nWith PAPER, output and\nheads learn costs."
    ax.text(5.55, 1.1, note, ha="center", va="center", fontsize=12)
    total = "training minimises  $\\alpha_1 L_1 + \\alpha_2 L_2 + L_{out}$"
    ax.text(3.7, 0.13, f"{total}  ($\\alpha = 0$: no heads)", ha="center", fontsize=12.5)
    ax.text(0.1, 3.62, "predict:", va="center", fontsize=12.5, color=GREEN)
    ax.text(0.1, 1.0, "fit:", va="center", fontsize=12.5, color=ORANGE)
    save(figure, "network")


def costs():
    """Which costs do I have: the argument for each kind."""
    figure, ax = canvas(6.9, 4.5)
    box(ax, 3.45, 4.05, 5.2, 0.6, "Do costs differ between samples of a class?", GREY, 13)
    box(ax, 1.15, 2.75, 2.1, 0.75, "No: a table\nof costs", BLUE, 13, "#f2f4f6")
    box(ax, 4.6, 2.75, 4.3, 0.75, "Yes. Are they known when deciding?", GREY, 13)
    kinds = [
        (
            1.15,
            BLUE,
            "#f2f4f6",
            "cost_matrix= of\nthe constructor\n(K, K)\n\na missed tumour:\n20 biopsies",
        ),
        (
            3.5,
            GREEN,
            "#eef6ea",
            "Yes: cost_matrix=\nfunction of X, or\ncost= of (n, K, K)\n\nthe amount\nof a payment",
        ),
        (
            5.75,
            ORANGE,
            "#fdf1e8",
            "No: cost= of fit\nand score\n(n, K)\n\nthe outcome\nof a treatment",
        ),
    ]
    for x, color, fill, text in kinds:
        box(ax, x, 0.98, 2.1, 1.75, text, color, 12, fill)
    arrows = [((2.3, 3.75), (1.3, 3.15)), ((4.3, 3.75), (4.6, 3.15)), ((1.15, 2.37), (1.15, 1.88))]
    for start, end in [*arrows, ((3.9, 2.37), (3.6, 1.88)), ((5.3, 2.37), (5.6, 1.88))]:
        arrow(ax, start, end)
    save(figure, "costs")


def rivals():
    """Cost of a payment for each model, with standard errors over the sets, and seconds."""
    from benchmarks.quick_start import summary

    names = {
        "boosting, most probable class": "most probable class",
        "boosting, balanced class weights": "balanced class weights",
        "boosting, tuned threshold": "one tuned threshold",
        "boosting, expected cost": "expected cost:\nBayesMinimumRiskClassifier",
        "network": "CostSensitiveAuxMLP",
        "ensemble": "CostSensitiveEnsembleClassifier",
    }
    costs, seconds = summary("payments"), summary("payments", "cpu_seconds")
    figure, ax = plt.subplots(figsize=(8.6, 3.9), layout="constrained")
    places = [0, 1, 2, 3, 4.7, 5.7]
    for y, method in zip(places, names):
        mean, error = costs[method]
        ours = y >= 3
        ax.barh(y, mean, 0.66, color=GREEN if ours else "#9aa5b1")
        ax.errorbar(mean, y, xerr=error, color="k", capsize=4, lw=1.3)
        text = f"EUR {mean:.2f}   ({seconds[method][0]:.1f} s)"
        ax.text(mean + error + 0.05, y, text, va="center", fontsize=11)
    ax.set_yticks(places, names.values())
    ax.invert_yaxis()
    ax.text(-0.02, -0.85, "gradient boosting", ha="right", fontweight="bold")
    ax.text(-0.02, 4.05, "networks", ha="right", fontweight="bold")
    ax.set(xlim=(0, 1.6 * max(mean for mean, _ in costs.values())), ylim=(6.2, -1.2))
    ax.tick_params(axis="y", length=0)
    label = "mean cost of a payment, EUR (bars: standard errors; brackets: CPU seconds)"
    ax.set_xlabel(label, fontsize=11, x=0.35)
    save(figure, "rivals")


def relative_costs():
    """Mean cost of ours divided by the cost of others, by kind of data."""
    from benchmarks.first_page import rows

    titles = {
        "rare classes": "thirty small\ntables, rare class",
        "sixteen tables": "sixteen tables,\nup to 6,000 rows",
        "ten tables": "ten other\ntables",
        "deep tables": "twenty-six tables,\nRealMLP, five folds",
        "texts": "texts of\nmany classes",
        "images": "images, pretrained\nnetwork",
        "a million rows": "a million rows",
    }
    kinds = [(titles[row.data], row) for row in rows()]
    colors = {"logistic regression": BLUE, "gradient boosting": ORANGE}
    marks = {"logistic regression": "o", "gradient boosting": "s"}
    figure, ax = plt.subplots(figsize=(6, 5.2), layout="constrained")
    for y, (_, row) in enumerate(kinds):
        # A line for each other model, so that intervals and numbers do not cover each other.
        places = 0.26 * (np.arange(len(row.ratios))[::-1] - (len(row.ratios) - 1) / 2) - y
        for place, (name, value) in zip(places, row.ratios.items()):
            look = {"color": colors.get(name, GREY), "marker": marks.get(name, "D")}
            label = name if name in colors else "other (table)"
            low, high = row.intervals.get(name, (value, value))
            ax.errorbar(
                value,
                place,
                xerr=[[value - low], [high - value]],
                ms=8,
                ls="",
                capsize=3,
                label=label,
                **look,
            )
            ground = {"fc": "white", "ec": "none", "pad": 0.5}
            at = 1.02 if high < 1 < high + 0.12 else high + 0.02
            ax.text(at, place, f"{value:.2f}", fontsize=10, va="center", bbox=ground)
    ax.axvline(1, color="k", lw=1)
    for y in range(1, len(kinds)):
        ax.axhline(0.5 - y, color="#d5dadf", lw=0.8)
    ax.set_yticks([-y for y in range(len(kinds))], [name for name, _ in kinds])
    ax.set(xlim=(0.1, 1.6), ylim=(-len(kinds) + 0.5, 0.5))
    label = "mean cost of the ensemble / cost of others"
    ax.set_xlabel(f"{label}\n(bars: 95 % intervals over the data sets)", fontsize=11)
    handles = dict(zip(*reversed(ax.get_legend_handles_labels())))
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=3, fontsize=11)
    save(figure, "relative_costs")


def deep_tables():
    """Mean cost against CPU seconds of a fit, on the tables of `bench_deep_tables`."""
    from benchmarks.cost.bench_deep_tables import REFERENCE, ratios
    from benchmarks.cost.ranks import geometric_error, geometric_mean
    from benchmarks.first_page import _read

    left, right = {"ha": "right", "xytext": (-7, 6)}, {"xytext": (5, 6)}
    names = {
        "ours: one network": ("one network", {"ha": "right", "xytext": (-7, -4)}),
        "ours: default": ("network", {"xytext": (7, 2)}),
        "ours: ensemble": ("ensemble", {"xytext": (7, -12)}),
        "boosting, early stop": ("gradient boosting", left),
        "boosting, temperature": ("gradient boosting,\ntemperature", right),
        "CatBoost": ("CatBoost", right),
        "RealMLP": ("RealMLP", right),
        "RealMLP, five folds": ("RealMLP,\nfive folds", right),
    }
    runs = _read("deep_tables")["runs"]
    figure, ax = plt.subplots(figsize=(6.6, 4.4), layout="constrained")
    for method, (name, place) in names.items():
        cost = np.array([*ratios(runs, method, REFERENCE).values()])
        seconds = np.array([run["cpu_seconds"] for run in runs if run["method"] == method])
        at, ours = (geometric_mean(seconds), geometric_mean(cost)), method.startswith("ours")
        look = {"color": GREEN if ours else GREY, "marker": "o" if ours else "s"}
        ax.errorbar(*at, geometric_error(cost), capsize=3, ms=7, **look)
        ax.annotate(name, at, textcoords="offset points", fontsize=9, **place)
    ax.set(xscale="log", xlim=(0.03, 300), xlabel="CPU seconds of a fit (geometric mean)")
    ax.set_ylabel(f"mean cost / cost of {REFERENCE}\n(bars: standard errors over tables)")
    save(figure, "deep_tables")


def alphas():
    """Cost against alpha for several depths, from the experiments of the paper."""
    panels = {
        "sigmoid_sgd": "sigmoid, start of nn.Linear",
        "sigmoid_authors": "sigmoid, start of the authors",
        "relu_sgd": "ReLU",
    }
    figure, axes = plt.subplots(3, 2, figsize=(9.6, 9.2), layout="constrained")
    for row, (folder, title) in zip(axes, panels.items()):
        path = ROOT / "benchmarks" / "results" / "paper" / folder / "alpha_depth.txt"
        text = path.read_text(encoding="utf-8")
        for ax, (key, name) in zip(row, {"mnist": "MNIST", "cifar10": "CIFAR-10"}.items()):
            header, *lines = text.split(f"\n{key}, by alpha")[1].split("\n\n")[0].splitlines()[1:]
            alpha = [float(number) for number in header.split()[2:]]
            for line in lines:
                depth, values = (int(line.split()[0]), re.findall(r"([\d.]+) \+- ([\d.]+)", line))
                if depth in (3, 5, 8):
                    mean, error = np.array(values, float).T
                    label = f"{depth} layers"
                    ax.errorbar(alpha, mean, error, fmt="o-", ms=4, capsize=2, label=label)
            ax.set(title=f"{name}: {title}", xlabel="alpha", ylabel="mean test cost")
            if (folder, key) == ("sigmoid_sgd", "mnist"):
                ax.set_ylim(0.1, 0.25)
                ax.text(0.16, 0.243, "5 and 8 layers\nat alpha 0: above 3", va="top", fontsize=10)
            if key == "cifar10":
                ax.set_ylim(2.0, 3.6)
            ax.legend()
    save(figure, "alphas")


def growth():
    """Time and cost by the number of rows, simulated claims."""
    from benchmarks.first_page import _read

    names = {
        "ours: default": "network",
        "ours: ensemble": "ensemble",
        "boosting, early stop": "boosting",
        "LightGBM": "LightGBM",
    }
    figure, axes = plt.subplots(2, 1, figsize=(5.4, 6.2), layout="constrained")
    for (method, label), mark in zip(names.items(), "os^D"):
        cases = [
            c for c in _read("growth")["cases"] if (c["kind"], c["model"]) == ("claims", method)
        ]
        cases.sort(key=lambda case: case["rows"])
        rows = [case["rows"] for case in cases]
        axes[0].plot(rows, [case["cost"] for case in cases], f"{mark}-", label=label)
        axes[1].plot(rows, [case["cpu_seconds"] for case in cases], f"{mark}-")
    axes[0].set(xscale="log", xlabel="training rows", ylabel="mean test cost")
    axes[1].set(xscale="log", yscale="log", xlabel="training rows", ylabel="CPU seconds of a fit")
    figure.legend(loc="outside upper center", ncols=2)
    save(figure, "growth")


def payments(n=6000):
    """Simulated payments: rows, frauds and costs of training and test."""
    from auxcst_sklearn.costs import binary_cost_matrices
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split

    X, y = make_classification(n, n_informative=8, weights=[0.9], flip_y=0.02, random_state=0)
    amount = np.random.default_rng(0).lognormal(4, 1, len(y))
    X = np.column_stack([X, np.log(amount)])
    C = binary_cost_matrices(fp_cost=5, tp_cost=5, fn_cost=amount, classes=[0, 1], pos_label=1)
    return train_test_split(X, y, C, train_size=3000, stratify=y, random_state=0)


def thresholds():
    """Which payments each rule stops: three thresholds for all, and one for each payment."""
    from auxcst_sklearn import CostSensitiveAuxMLP
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split

    X, y = make_classification(4000, n_informative=8, weights=[0.9], flip_y=0, random_state=0)
    amount = np.random.default_rng(0).lognormal(4, 1, len(y))
    X = np.column_stack([X, np.log(amount)])
    X_train, X_test, y_train, y_test, _, amount = train_test_split(X, y, amount, random_state=0)
    p = CostSensitiveAuxMLP(random_state=0).fit(X_train, y_train).predict_proba(X_test)[:, 1]
    figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for label, color, size in [(0, "#9aa5b1", 8), (1, ORANGE, 16)]:
        name = "fraud" if label else "legitimate"
        ax.scatter(amount[y_test == label], p[y_test == label], size, color=color, label=name)
    ax.axhline(0.5, color=GREY, ls=":", label="most probable class")
    ax.axhline(y_train.mean(), color=GREY, ls="--", label="balanced class weights")
    line = np.geomspace(5.01, amount.max())
    ax.plot(line, 5 / line, color=GREEN, lw=2, label="expected cost: 5 / amount")
    ax.set(xscale="log", yscale="log", xlabel="amount of the payment, EUR", ylim=(2e-3, 1.2))
    ax.set_ylabel("estimated probability of fraud")
    figure.legend(loc="outside upper center", ncols=2, fontsize=11)
    save(figure, "thresholds")


def reliability():
    """Reliability of boosting before and after calibration, and of the network."""
    from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
    from sklearn.calibration import calibration_curve
    from sklearn.ensemble import RandomForestClassifier

    X_train, X_test, y_train, y_test, *_ = payments(23_000)
    forest = RandomForestClassifier(200, random_state=0)
    models = {
        "forest": forest,
        "forest, isotonic": BayesMinimumRiskClassifier(forest, calibration="isotonic"),
        "network": CostSensitiveAuxMLP(random_state=0),
    }
    figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
    ax.plot([0, 1], [0, 1], color="k", lw=1, label="perfect")
    for (name, model), mark in zip(models.items(), "os^"):
        probability = model.fit(X_train, y_train).predict_proba(X_test)[:, 1]
        found, predicted = calibration_curve(y_test, probability, n_bins=10)
        ax.plot(predicted, found, f"{mark}-", label=name)
    ax.set(xlabel="predicted probability of fraud", ylabel="share of frauds among these payments")
    ax.legend()
    save(figure, "reliability")


def decisions():
    """Cost by threshold, and what another review is worth."""
    from auxcst_sklearn import CostSensitiveAuxMLP
    from auxcst_sklearn.plotting import CostThresholdDisplay

    X_train, X_test, y_train, y_test, C_train, C_test = payments()
    model = CostSensitiveAuxMLP(random_state=0).fit(X_train, y_train, cost=C_train)
    figure, axes = plt.subplots(2, 1, figsize=(5.6, 7.4), layout="constrained")
    CostThresholdDisplay.from_estimator(
        model, X_test, y_test, cost=C_test, xscale="log", ax=axes[0]
    )
    three = [np.dstack([C, np.full(C.shape[:2], 4.0)]) for C in (C_train, C_test)]
    desk = CostSensitiveAuxMLP(decisions=["pass", "decline", "review"], random_state=0)
    expected = desk.fit(X_train, y_train, cost=three[0]).predict_cost(X_test, three[1])
    j, k = list(desk.decisions_).index("review"), 100
    without = np.delete(expected, j, axis=1).min(axis=1)
    gain = np.sort(without - expected[:, j])[::-1].clip(0)
    total = without.sum() - np.append(0, gain.cumsum())
    enough = np.count_nonzero(gain)
    axes[1].plot(total[: int(1.2 * enough)])
    axes[1].axvline(enough, ls="--", color="#D55E00", label=f"{enough}: one more is worth nothing")
    axes[1].plot(k, total[k], "o", color="#009E73", label=f"{k}: one more saves {gain[k]:.2f}")
    axes[1].set(xlabel="capacity of review", ylabel="expected cost")
    axes[1].legend(fontsize="small")
    save(figure, "decisions")


def confusion():
    """Which mistakes make up the cost, and the losses of the heads by epoch."""
    from auxcst_sklearn import CostSensitiveAuxMLP
    from auxcst_sklearn.plotting import CostConfusionDisplay, LayerLossDisplay
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
    off = abs(np.subtract.outer(range(10), range(10))).astype(float)
    model = CostSensitiveAuxMLP(cost_matrix=off, random_state=0).fit(X_train, y_train)
    figure, ax = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
    CostConfusionDisplay.from_estimator(model, X_test, y_test, ax=ax)
    save(figure, "confusion")
    deep = CostSensitiveAuxMLP(
        cost_matrix=off, depth=5, schedule="one_cycle", max_epochs=30, random_state=0
    ).fit(X_train, y_train)
    figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
    LayerLossDisplay.from_estimator(deep, ax=ax)
    ax.set_yscale("log")  # which shows the differences at the end
    ax.set_yticks([0.3, 0.5, 1, 2, 4], ["0.3", "0.5", "1", "2", "4"])
    ax.minorticks_off()
    save(figure, "layer_losses")


PICTURES = [
    network,
    costs,
    thresholds,
    rivals,
    relative_costs,
    deep_tables,
    alphas,
    growth,
    reliability,
    decisions,
    confusion,
]

if __name__ == "__main__":
    with plt.rc_context(STYLE):
        for picture in PICTURES:
            if len(sys.argv) == 1 or picture.__name__ in sys.argv[1:]:
                picture()
