"""Write the tables of the pages from committed results: ``python docs/tables/make.py``."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.rst", *sorted((ROOT / "docs").rglob("*.rst"))]
# A table of a page: its name in TABLES, with hyphens, and its lines.
DIRECTIVE = re.compile(
    r"^(\.\. csv-table::\n   :name: table-(\S+)\n(?:   :.*\n)*\n)(?:   \S.*\n)*", re.M
)
# What the results call our models, and what the pages call them.
NAMES = {
    "ours: pool": "ensemble",
    "ours: ensemble": "ensemble",
    "ours: default": "network",
    "ours: pool, vectors": "ensemble, costs learnt",
    "ours: ensemble, vectors": "ensemble, costs learnt",
    "ours: default, vectors": "network, costs learnt",
    "boosting, vectors": "boosting, class means",
    "ours: default, alpha 0": "network without heads",
    "ours: default, one network": "one network",
    "same network: Bayes": "reference, without a temperature",
    "same network: Bayes, temperature": "reference, with a temperature",
    "Bayes: logistic": "logistic regression",
    "Bayes: boosting, early stop": "boosting, early stop",
    "five boostings": "mean of five boosting models",
    "rule with its defaults": "BayesMinimumRiskClassifier()",
    "logistic": "logistic regression",
    "logistic, isotonic": "logistic regression, isotonic",
}

# Rows of the README: the label, the rivals, and when they are the better choice.
WHEN = {
    "rare classes": (
        "30 small tables, rare class",
        {"gradient boosting": "", "best of five others": "the best in your cross-validation"},
    ),
    "sixteen tables": (
        "16 tables, up to 6,000 samples",
        {
            "gradient boosting": "gradient boosting, if seconds matter",
            "CatBoost": "",
            "AutoGluon": "",
        },
    ),
    "ten tables": (
        "10 other tables (6 suit networks)",
        {"gradient boosting": "logistic regression, if nearly linear"},
    ),
    "deep tables": ("26 tables", {"RealMLP, five folds": ""}),
    "texts": ("texts of many classes", {"logistic regression": "logistic regression"}),
    "images": ("images, pretrained network", {"best of five others": "fine-tuning without heads"}),
    "a million rows": (
        "a million simulated claims",
        {"gradient boosting": "gradient boosting, a tenth of the time"},
    ),
}


def read(path):
    return (RESULTS / path).read_text(encoding="utf-8")


def rst_table(name, title=""):
    """Cells of the first table behind a title of a file of results."""
    text = read(f"{name}.rst")
    text = text[text.index(f"{title}\n") :] if title else text
    table = re.search(r"^=[= ]+\n(.*?)\n=[= ]+\n(.*?)\n=[= ]+$", text, re.M | re.S)
    lines = [table[1], *table[2].splitlines()]
    return [re.split(r" {2,}", line.strip()) for line in lines]


def summary(name, columns, title=""):
    """Some columns of a table, two decimals for ratios, our names."""
    header, *lines = rst_table(name, title)
    for line in lines:
        values = dict(zip(reversed(header), reversed(line)))  # the first of equal names
        row = [NAMES.get(values[header[0]], values[header[0]])]
        for column in columns:
            value = values[column]
            if column in ("ratio", "worst", "log loss") and value != "-":
                value = f"{float(value):.2f}"
            if column == "worst" and "at" in values:
                value += f" ({values['at']})"
            if column == "ratio" and "s.e." in values and title != "":
                value += f" ({float(values['s.e.']):.2f})"
            row.append(value)
        yield row


def tables(name):
    yield ["model", "cost (s.e.)", "worst set", "log loss", "CPU s"]
    yield from summary(name, ["ratio", "worst", "log loss", "CPU s"], "6000 rows: over all sets")


SMALL = ("cost_small", ["ratio", "worst", "CPU s"], "Over all settings")


def toy():
    """Small data sets: the networks and other models, without the losses."""
    yield ["model", "cost (s.e.)", "worst setting", "CPU s"]
    yield from (line for line in summary(*SMALL) if not line[0].startswith("loss: "))


def losses():
    """The losses alone, on the same data sets."""
    yield ["loss", "cost (s.e.)", "worst setting", "CPU s"]
    for name, *cells in summary(*SMALL):
        if name == "network":
            yield ["Bayes risk, the default", *cells]
        elif name.startswith("loss: "):
            yield [name.removeprefix("loss: ").removesuffix(", alpha 0.2"), *cells]


def vectors():
    yield ["model", "cost (s.e.)", "worst set", "CPU s"]
    yield from summary("tables_vectors", ["ratio", "worst", "CPU s"], "6000 rows: over all sets")


def images():
    """Means over seeds that chose nothing; costs with their standard errors over test images.

    The last lines are geometric means over sets; 0.005 is added to costs before they are divided.
    """
    labels = {
        "ours": "CostSensitiveAuxCNN",
        "plain": "plain torch",
        "patches": "random patches",
        "squeezenet": "features of SqueezeNet",
    }
    measures = ("cost", "log_loss", "accuracy", "cpu_seconds")
    groups = defaultdict(list)
    for run in json.loads(read("images.json"))["runs"]:
        if run["part"] == "test" and run["method"] in labels:
            groups[run["set"], run["rows"], run["method"]].append(run)
    head = ["set", "training images", "seeds", "model"]
    yield [*head, "cost (s.e.)", "log loss", "accuracy", "CPU s"]
    means = {}
    for name, rows, method in sorted(groups, key=lambda key: key[:2]):
        runs = groups[name, rows, method]
        mean = np.array([np.mean([run[key] for run in runs]) for key in measures])
        means[name, rows, method] = mean + [0.005, 0, 0, 0]
        error = np.hypot.reduce([run["error"] for run in runs]) / len(runs)
        cost, *others = (f"{value:.3f}" for value in mean[:-1])
        cells = f"{cost} ({error:.3f})", *others, f"{mean[-1]:.0f}"
        yield [name, str(rows), str(len(runs)), labels[method], *cells]
    sets = [(name, rows) for name, rows, method in means if method == "ours"]
    logs = {key: np.log(means[(*key, "ours")] / means[(*key, "plain")]) for key in sets}
    for which in ("all sets", "all but digits"):
        some = [log for (name, _), log in logs.items() if which == "all sets" or name != "digits"]
        ratios = (f"{ratio:.2f}" for ratio in np.exp(np.mean(some, axis=0)))
        yield [f"geometric mean, {which}", "", "", "CostSensitiveAuxCNN / plain torch", *ratios]


def heads():
    """Networks with the default heads and without: means over seeds, and ratios by seed."""
    runs = [run for run in json.loads(read("heads.json"))["runs"] if run["part"] == "test"]
    yield ["network", "seeds", "cost without heads", "cost", "ratio (s.e.)", "log loss", "CPU time"]
    of = {(run["network"], run["method"], run["seed"]): run for run in runs}
    kinds = {}
    numbers = re.compile(r"(\d+)")
    for network in sorted(
        {run["network"] for run in runs},
        key=lambda name: [int(part) if part.isdigit() else part for part in numbers.split(name)],
    ):
        seeds = sorted(seed for name, method, seed in of if (name, method) == (network, "default"))
        pairs = [(of[network, "default", s], of[network, "no heads", s]) for s in seeds]
        costs = np.array([[with_heads["cost"], alone["cost"]] for with_heads, alone in pairs])
        logs = np.log((costs[:, 0] + 0.005) / (costs[:, 1] + 0.005))
        ratio = np.exp(logs.mean())
        error = "" if len(logs) == 1 else f" ({ratio * logs.std(ddof=1) / len(logs) ** 0.5:.2f})"
        others = [
            np.exp(np.mean([np.log(a[key] / b[key]) for a, b in pairs]))
            for key in ("log_loss", "cpu_seconds")
        ]
        kinds[network] = np.array([ratio, *others])
        cost, alone = costs.mean(axis=0)
        cells = [f"{alone:.3f}", f"{cost:.3f}", f"{ratio:.2f}{error}"]
        yield [network, str(len(seeds)), *cells, *(f"{other:.2f}" for other in others)]
    mean = np.exp(np.mean([np.log(kind) for kind in kinds.values()], axis=0))
    yield ["geometric mean", "", "", "", *(f"{value:.2f}" for value in mean)]


def series_sets():
    """Mean costs over the seeds, by set and network; MiniROCKET on the same seeds."""
    samples = {
        **{"ArrowHead": 36, "BasicMotions": 40, "GunPoint": 50, "ItalyPowerDemand": 67},
        **{"ACSF1": 100, "OSULeaf": 200, "JapaneseVowels": 270, "ECG": 500},
    }
    networks = ["Inception", "ResNet", "LSTM-FCN", "transformer"]
    costs = defaultdict(dict)
    for run in json.loads(read("series.json"))["runs"]:
        if run["method"] in ("default", "MiniROCKET, logistic regression"):
            costs[run["set"], run["network"]][run["seed"]] = run["cost"]
    yield ["set", "training samples", "seeds", "MiniROCKET", *networks]
    for name, n in samples.items():
        found = [costs[name, network] for network in networks]
        seeds = sorted(set().union(*found))
        if seeds:
            rocket = [costs[name, "-"][s] for s in seeds if s in costs[name, "-"]]
            means = [
                f"{np.mean([*one]):.3f}" if one else "-"
                for one in (rocket, *map(dict.values, found))
            ]
            yield [name, n, len(seeds), *means]


def growth():
    from benchmarks.common.json_files import from_json

    cases = {
        (case["kind"], case["rows"], case["model"]): case
        for case in from_json(read("growth.json"))["cases"]
    }
    models = {
        "ours: default": "network",
        "ours: ensemble": "ensemble",
        "boosting, early stop": "boosting",
        "LightGBM": "LightGBM",
        "CatBoost": "CatBoost",
    }
    yield ["samples", *models.values()]
    for kind, rows in sorted({key[:2] for key in cases}):
        cells = [cases.get((kind, rows, model)) for model in models]
        if kind == "numbers":  # The ensemble has been changed since this measurement.
            cells[list(models).index("ours: ensemble")] = None
        yield [
            f"{rows:,} {kind}",
            *(f"{c['cpu_seconds']:.3g} s, {c['cost']:.3f}" if c else "-" for c in cells),
        ]


def ablation():
    from benchmarks.common.json_files import from_json

    runs = defaultdict(dict)
    for run in from_json(read("tables_ablation.json"))["runs"]:
        runs[run["method"]][run["set"], run["seed"]] = run
    yield ["without", "cost (s.e.)", "worst set"]
    labels = {
        "no bins": "quantile bins of numbers",
        "ReLU": "SiLU (ReLU instead)",
        "no factors": "factors of the indicators of categories",
        "last weights": "averaged weights (the last weights instead)",
        "no heads": "auxiliary heads",
        "three networks": "two of the five networks",
        "no temperature": "temperature",
    }
    rows = []
    for method in sorted(runs.keys() - {"ours: default"}):
        by_set = defaultdict(list)
        for key, run in runs[method].items():
            default = runs["ours: default"][key]
            by_set[key[0]].append(run["test_cost"] / default["test_cost"])
        logs = np.log([np.mean(ratios) for ratios in by_set.values()])
        worst = max(by_set, key=lambda name: np.mean(by_set[name]))
        label = method.replace("ours: ", "")
        rows.append(
            (
                np.exp(logs.mean()),
                labels.get(label, label),
                logs.std(ddof=1) / len(logs) ** 0.5,
                f"{np.mean(by_set[worst]):.2f} ({worst})",
            )
        )
    for mean, label, error, worst in sorted(rows, reverse=True):
        yield [label, f"{mean:.3f} ({error:.3f})", worst]


def desk():
    from benchmarks.common.json_files import from_json

    found = defaultdict(lambda: defaultdict(list))
    for run in from_json(read("desk.json"))["runs"]:
        found[run["set"]][run["method"]].append(run["cost"])
    methods = list(next(iter(found.values())))
    yield ["data", *methods]
    for name, costs in found.items():
        yield [name, *(f"{np.mean(costs[method]):.4g}" for method in methods)]


def pretrained():
    from benchmarks.common.json_files import from_json

    rivals = ["blind", "Bayes", "Bayes, temperature", "features, logistic", "features, MLP"]
    columns = {
        "default": "default",
        "output": "output alone",
        "gradient, vote": "head_gradient=1",
        "gradient": "head_gradient=1, output alone",
    }
    yield ["data, network", "seeds", "best of five", *columns.values()]
    for name, costs in from_json(read("pretrained.json"))["table"].items():
        best = min(costs[rival]["cost"] for rival in rivals)
        found = [costs.get(c) for c in columns]
        cells = [f"{c['cost'] / best:.2f} ({c['error'] / best:.2f})" if c else "-" for c in found]
        yield [name, costs["default"]["seeds"], f"{best:.3f}", *cells]


def texts():
    header, *lines = rst_table("texts")
    columns = ("clinc150", "clinc150, ask", "banking77", "trec", "CPU s")
    keep = [header.index(name) for name in columns]
    yield ["model", "CLINC150", 'with "ask"', "Banking77", "TREC", "CPU s"]
    for line in lines:
        yield [NAMES.get(line[0], line[0]), *(line[i] for i in keep)]


def encoders():
    """What ours has, divided by what plain torch has: geometric mean, and both seeds."""
    runs = json.loads((RESULTS / "fine_tuned_texts.json").read_text())["runs"]
    measures = ("cost", "cost_ask", "log_loss", "cpu_seconds")
    found = {(r["set"], r["seed"], r["method"]): [r[m] for m in measures] for r in runs}
    yield ["set", "cost", 'cost with "ask"', "log loss", "CPU time"]
    for name, label in (("clinc150", "CLINC150"), ("banking77", "Banking77"), ("trec", "TREC")):
        ours, plain = (
            np.log([values for key, values in found.items() if key[::2] == (name, method)])
            for method in ("ours", "plain")
        )
        ratios = np.exp(ours - plain)
        means = np.exp((ours - plain).mean(axis=0))
        yield [label, *(f"{m:.2f} ({a:.2f} {b:.2f})" for m, a, b in zip(means, *ratios))]


def rivals():
    """The quick start with rivals: mean cost and seconds over the sets."""
    from benchmarks.quick_start import summary

    labels = {
        "boosting, most probable class": "gradient boosting, most probable class",
        "boosting, balanced class weights": "gradient boosting, balanced class weights",
        "boosting, tuned threshold": "gradient boosting, ``TunedThresholdClassifierCV``",
        "boosting, expected cost": "gradient boosting in ``BayesMinimumRiskClassifier``",
        "network": "``CostSensitiveAuxMLP``",
        "network without heads": "``CostSensitiveAuxMLP(alpha=0)``",
        "ensemble": "``CostSensitiveEnsembleClassifier``",
    }
    costs, seconds = summary("payments"), summary("payments", "cpu_seconds")
    yield ["model", "EUR a payment", "s.e.", "CPU s"]
    for method, label in labels.items():
        cost = (f"{value:.2f}" for value in costs[method])
        yield [label, *cost, f"{seconds[method][0]:.1f}"]


def estimators():
    """What each estimator takes, and the CPU seconds of a fit with up to 6,000 samples."""
    found = {
        "tables": [
            ("``BayesMinimumRiskClassifier``", "boosting, isotonic", "all, none learnt", "inner"),
            ("``CostSensitiveAuxMLP``", "ours: default", "all", "yes"),
            ("``CostSensitiveEnsembleClassifier``", "ours: ensemble", "all", "yes"),
        ],
        "others": [
            ("``CostSensitiveAuxCNN``", "images"),
            ("``CostSensitiveAuxNet``", "any module"),
        ],
    }
    seconds = defaultdict(list)
    for run in json.loads(read("tables_wide.json"))["runs"]:
        seconds[NAMES.get(run["method"], run["method"])].append(run["cpu_seconds"])
    images = [
        run["cpu_seconds"]
        for run in json.loads(read("images.json"))["runs"]
        if (run["set"], run["rows"], run["method"]) == ("cifar10", 2000, "ours")
        and run["part"] == "test"
    ]
    yield ["estimator", "data", "costs", "gaps, categories", "sparse", "ONNX", "GPU", "CPU s"]
    sparse = ["inner", "yes", "no"]
    gpu = ["inner", "yes", "network"]
    for (name, run, costs, gaps), thin, device in zip(found["tables"], sparse, gpu):
        mean = np.mean(seconds[NAMES.get(run, run)])
        yield [name, "tables", costs, gaps, thin, "yes", device, f"{mean:.1f}"]
    times = [f"{np.mean(images):.0f}", ""]
    for (name, data), time in zip(found["others"], times):
        yield [name, data, "all", "no", "no", "yes", "yes", time]


def digits():
    """Digits, deep networks with and without heads: means over the seeds."""
    from benchmarks.quick_start import summary

    yield ["network", "mean cost", "s.e."]
    for method, values in summary("digits").items():
        yield [method, *(f"{value:.2f}" for value in values)]


def gpu():
    """Seconds of a fit on a GPU, means of the repeats, beside a plain torch loop."""
    labels = {
        "mlp": "perceptron, 3 layers of 256",
        "cnn": "``CostSensitiveAuxCNN``, 32 x 32",
        "net": "SqueezeNet, 224 x 224",
        "tokens": "transformer, 6 blocks of 384",
    }
    found = json.loads(read("gpu.json"))
    seconds = {
        (run["case"], run["batch_size"], run["precision"], run["method"]): np.mean(run["seconds"])
        for run in found["fits"]
    }
    yield ["network", "samples", "epochs", "batch size", "s", "plain torch", "bf16", "plain, bf16"]
    for case in found["cases"]:
        for size in sorted({key[1] for key in seconds}):
            keys = [
                (case["name"], size, precision, method)
                for precision in ("float32", "bf16")
                for method in ("ours", "raw")
            ]
            times = (f"{seconds[key]:.1f}" if key in seconds else "-" for key in keys)
            yield [labels[case["name"]], f"{case['rows']:,}", case["epochs"], size, *times]


def when():
    """When to use the package: ratios to rivals with their intervals."""
    from benchmarks.first_page import rows

    found = {row.data: row for row in rows()}
    yield ["data", "rival", "ratio (interval)", "CPU s", "use instead"]
    for data, (label, uses) in WHEN.items():
        row = found[data]
        for rival, use in uses.items():
            interval = row.intervals.get(rival)
            shown = f" ({interval[0]:.2f}-{interval[1]:.2f})" if interval else ", one set"
            seconds = f"{row.seconds:.0f}" if rival == next(iter(uses)) else ""
            yield [label, rival, f"{row.ratios[rival]:.2f}{shown}", seconds, use]
            label = ""


def keel():
    """Mean cost of ensemble and network divided by the costs of others, rare classes."""
    lines = read("keel.rst").split("\n\n")[1].splitlines()
    yield ["divided by", "ensemble", "network"]
    for line in lines[3:-1]:
        name, ensemble, _, network, *_ = re.split(r"  +", line)
        yield [
            name.replace("ours: default", "ours: network"),
            f"{float(ensemble):.2f}",
            f"{float(network):.2f}",
        ]


def paper_block(path, title):
    """Lines of a table of the experiments: label and cells with standard errors."""
    block = read(f"paper/{path}").split(f"\n{title}")[1].split("\n\n")[0]
    header, *lines = block.splitlines()[1:]
    ends = [match.end() for match in re.finditer(r"\S+(?: \S+)*", header)]
    starts = [0, *ends[:-1]]
    for line in (header, *lines):
        label = re.match(r"alpha [\d.]+|\S*", line)[0]
        cells = [line[max(a, len(label)) : b].strip() for a, b in zip(starts, ends)]
        cells[0] = label
        cells = [re.sub(r"\bblind", "cost-blind", cell) for cell in cells]
        cells = [re.sub("Bayes", "expected cost", cell) for cell in cells]
        yield [re.sub(r"(-?[\d.]+) \+- ([\d.]+)", shorter, cell) for cell in cells]


def shorter(match):
    return f"{float(match[1]):.3f} ({float(match[2]):.3f})"


def few_samples():
    """Costs of the methods with 4,000 samples, by optimizer, data and depth."""
    costs = {}
    for optimizer, folder in {"SGD": "few_samples_sgd", "AdamW": "few_samples_adamw"}.items():
        found = re.findall(r"^(\S+), by method", read(f"paper/{folder}/compare.txt"), re.M)
        for data in dict.fromkeys(found):
            names, *lines = paper_block(f"{folder}/compare.txt", f"{data}, by method")
            costs[f"{optimizer}: {data}"] = {
                (line[0], name): cell
                for line in lines
                for name, cell in zip(names[1:], line[1:])
                if cell and line[0] != "1"
            }
    yield ["layers", "method", *costs]
    networks = dict.fromkeys(network for of in costs.values() for network in of)
    for depth, name in sorted(networks, key=lambda network: network[0]):
        yield [depth, name, *(of.get((depth, name), "") for of in costs.values())]


def verdicts():
    """What a program says about the claims of the paper."""
    from benchmarks.paper.verdicts import table

    yield from table()


def parts():
    """From the paper's network to the default, one part at a time."""
    from benchmarks.common.ledger import Ledger
    from benchmarks.paper.parts import table

    runs = Ledger(RESULTS / "paper" / "parts" / "runs.jsonl").runs.values()
    yield from table([{**identity, **result} for identity, result in runs])


def deep_tables():
    """Network and ensemble divided by RealMLP, TabM and others."""
    from benchmarks.cost.bench_deep_tables import table

    header, *lines = table(json.loads(read("deep_tables.json"))["runs"])
    yield header
    for name, *cells in lines[3:]:
        yield [NAMES.get(name, name.removeprefix("ours: ")), *cells]


TABLES = {
    "tables": lambda: tables("tables_wide"),
    "tables_held_out": lambda: tables("tables_held_out"),
    **{
        make.__name__: make
        for make in (
            toy,
            losses,
            vectors,
            images,
            heads,
            series_sets,
            growth,
            ablation,
            desk,
            pretrained,
            texts,
            encoders,
            rivals,
            estimators,
            digits,
            gpu,
            when,
            keel,
            few_samples,
            verdicts,
            parts,
            deep_tables,
        )
    },
}


def text(name):
    """The table as CSV; a dash would become the bullet of a list."""
    file = io.StringIO()
    lines = [["" if cell in ("-", "\\-") else cell for cell in line] for line in TABLES[name]()]
    csv.writer(file, lineterminator="\n").writerows(lines)
    return file.getvalue()


def with_tables(page):
    """The text of a page with the tables of the results; GitHub shows no tables of other files."""
    return DIRECTIVE.sub(
        lambda found: found[1] + textwrap.indent(text(found[2].replace("-", "_")), "   "), page
    )


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
