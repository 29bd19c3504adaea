"""The verdicts on nine claims of the paper, computed from the raw runs with one criterion.

A comparison is of one data set: for each seed, the mean cost that the claim says is lower, less the
one that it says is higher. It is judged by

- *not learnt*, if the savings over the best constant prediction of a network that takes part are
  not two standard errors above zero, or one of its runs diverged;
- *holds* or *the opposite holds*, if a t-test of the differences over the seeds, with Holm's
  correction for the comparisons of the claim that have learnt, has a p-value below 0.05;
- *within the errors* otherwise.

``python -m benchmarks.paper.verdicts`` writes the means, errors and p-values of all comparisons to
``results/paper/verdicts.txt``; the page of the experiments has what they come to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.common.engine import Result
from benchmarks.common.folders import RESULTS
from benchmarks.common.ledger import Ledger
from benchmarks.common.statistics import standard_error
from benchmarks.paper.runs import RUNS

FOLDER = RESULTS / "paper"
LEVEL = 0.05
VERDICTS = ["holds", "the opposite holds", "within the errors", "not learnt"]
OfSeeds = dict[int, Result]

SAMPLES = {
    "all samples": "relu_sgd",
    "4,000, SGD": "few_samples_sgd",
    "4,000, AdamW": "few_samples_adamw",
}
LAYERS = {
    "ReLU": "relu_sgd",
    "ReLU, AdamW": "relu_adamw_rates",
    "sigmoid": "sigmoid_sgd",
    "sigmoid, authors' start": "sigmoid_authors",
}
ALEXNETS = {
    "pretrained, 8 epochs": "fine_tuning",
    "pretrained, 24 epochs": "fine_tuning_24_epochs",
    "not pretrained": "closeness_64px_30_epochs",
}
DEPTHS = {"2-4 layers": range(2, 5), "5-8 layers": range(5, 9)}


class Comparison(NamedTuple):
    """A claim says that the sum of its terms, each a weight and the runs of a network, is below 0.

    `value` reads from a run what is compared.
    """

    where: str
    data: str
    terms: Sequence[tuple[float, OfSeeds]]
    value: Callable[[Result], float] = lambda run: run["test_cost"]

    @property
    def learnt(self) -> bool:
        return all(has_learnt(runs) for _, runs in self.terms)

    @property
    def differences(self) -> NDArray[np.float64]:
        """What the terms come to, for each seed in which all of them ended."""
        ended = ({s for s, run in runs.items() if "diverged" not in run} for _, runs in self.terms)
        seeds = sorted(set.intersection(*ended))
        return np.array([sum(w * self.value(runs[s]) for w, runs in self.terms) for s in seeds])


def has_learnt(runs: OfSeeds) -> bool:
    """Whether a network is clearly cheaper than the best constant prediction."""
    if any("diverged" in run for run in runs.values()):
        return False
    savings = [run["savings"] for run in runs.values()]
    return bool(np.mean(savings) > 2 * standard_error(savings))


class Experiment:
    """The runs of a folder by data set, method, depth and alpha, at the rates that were chosen.

    Rates, and of the AuxDNN alpha, are those of the least held-out cost, as in `compare`.
    """

    def __init__(self, folder: str) -> None:
        self._trials: dict[tuple, dict[tuple, float]] = defaultdict(dict)
        self._runs: dict[tuple, dict[tuple, OfSeeds]] = defaultdict(lambda: defaultdict(dict))
        for identity, result in Ledger(FOLDER / folder / RUNS).runs.values():
            method = identity["method"]
            if method == "aux" and identity["loss"] == "cross_entropy":
                method = "Bayes"
            network = identity["dataset"], method, identity["depth"], identity.get("alpha")
            rates = identity["learning_rate"], identity.get("pretrain_learning_rate")
            if identity["tuning"]:
                self._trials[network][rates] = result.get("held_out_cost", inf)
            elif not identity.get("curves"):
                self._runs[network][rates][identity["seed"]] = result
        self.data = list(dict.fromkeys(network[0] for network in self._runs))

    def __call__(self, data: str, method: str, depth: int, alpha: float | None = None) -> OfSeeds:
        """The runs of a network, none if there are none."""
        network = data, method, depth, alpha
        runs, trials = self._runs.get(network, {}), self._trials.get(network, {})
        return runs.get(min(runs, key=lambda rates: trials.get(rates, 0)), {}) if runs else {}

    def alphas(self, data: str, depth: int) -> list[float]:
        """The weights of the heads that were run, above 0."""
        return sorted(a for d, m, h, a in self._runs if (d, m, h) == (data, "aux", depth) and a)

    def naive(self, data: str, depth: int) -> OfSeeds:
        return self(data, "aux", depth, 0.0 if depth > 1 else None)

    def csdnn(self, data: str, depth: int) -> OfSeeds:
        return self(data, "csae", depth)

    def aux(self, data: str, depth: int) -> OfSeeds:
        """AuxDNN with the alpha of the least held-out cost; with one layer it has no heads."""
        if depth == 1:
            return self.naive(data, depth)

        def held_out(alpha: float) -> float:
            return min(self._trials[data, "aux", depth, alpha].values(), default=0)

        alphas = self.alphas(data, depth)
        return self(data, "aux", depth, min(alphas, key=held_out)) if alphas else {}


def cheaper(
    where: str, data: str, less: Sequence[OfSeeds], more: Sequence[OfSeeds]
) -> Iterator[Comparison]:
    """The mean of some networks is below that of others; nothing where one was not run."""
    if less and more and all([*less, *more]):
        terms = [(1 / len(less), runs) for runs in less] + [(-1 / len(more), runs) for runs in more]
        yield Comparison(where, data, terms)


# --- the claims -------------------------------------------------------------------------------


def experiments(folders: dict[str, str]) -> Iterator[tuple[str, Experiment, str]]:
    """Name and runs of each experiment, with each of its data sets."""
    for name, folder in folders.items():
        runs = Experiment(folder)
        yield from ((name, runs, data) for data in runs.data)


def u_shape() -> Iterator[Comparison]:
    """Alphas from 0.2 to 0.5 are cheaper than 0, and than those above, over all depths."""
    for name, runs, data in experiments(LAYERS):
        there = [(d, a) for d in range(2, 9) for a in runs.alphas(data, d)]
        middle = [runs(data, "aux", d, a) for d, a in there if 0.2 <= a <= 0.5]
        high = [runs(data, "aux", d, a) for d, a in there if a > 0.5]
        none = [runs.naive(data, depth) for depth in dict(there)]
        yield from cheaper(f"{name}, than alpha 0", data, middle, none)
        yield from cheaper(f"{name}, than above 0.5", data, middle, high)


def aux_and_naive() -> Iterator[Comparison]:
    for name, runs, data in experiments(LAYERS):
        for layers, depths in DEPTHS.items():
            there = [depth for depth in depths if runs.alphas(data, depth)]
            aux, naive = ([of(data, d) for d in there] for of in (runs.aux, runs.naive))
            yield from cheaper(f"{name}, {layers}", data, aux, naive)


def aux_and_csdnn() -> Iterator[Comparison]:
    for name, runs, data in experiments(SAMPLES):
        for layers, depths in {"1 layer": (1,), "3 and 5 layers": (3, 5)}.items():
            aux, csdnn = ([of(data, d) for d in depths] for of in (runs.aux, runs.csdnn))
            yield from cheaper(f"{name}, {layers}", data, aux, csdnn)


def csdnn_and_naive() -> Iterator[Comparison]:
    for name, runs, data in experiments(SAMPLES):
        csdnn, naive = ([of(data, d) for d in (1, 3)] for of in (runs.csdnn, runs.naive))
        yield from cheaper(name, data, csdnn, naive)


def depth_of_naive() -> Iterator[Comparison]:
    for name, runs, data in experiments(SAMPLES):
        one, three, five = ([runs.naive(data, depth)] for depth in (1, 3, 5))
        yield from cheaper(f"{name}, gains", data, three, one)
        yield from cheaper(f"{name}, loses", data, three, five)


def csdnn_with_depth() -> Iterator[Comparison]:
    """From three to five layers NaiveDNN loses less than CSDNN."""
    for name, runs, data in experiments(SAMPLES):
        changes = [of(data, depth) for of in (runs.naive, runs.csdnn) for depth in (5, 3)]
        if all(changes):
            yield Comparison(name, data, list(zip((1, -1, -1, 1), changes)))


def curves() -> Iterator[tuple[str, str, OfSeeds]]:
    """The networks of which the losses of the layers were recorded."""
    for folder in ("layer_losses", "relu_sgd"):
        found: dict[tuple, OfSeeds] = defaultdict(dict)
        for identity, result in Ledger(FOLDER / folder / RUNS).runs.values():
            if identity.get("curves"):
                found[identity["dataset"], identity["depth"]][identity["seed"]] = result
        yield from ((f"{depth} layers", data, runs) for (data, depth), runs in found.items())


def output_less_first(run: Result, epoch: int) -> float:
    return run["layer_losses"]["output"][epoch] - run["layer_losses"]["hidden1"][epoch]


def first_less_output_fall(run: Result) -> float:
    first, output = (np.log(run["layer_losses"][layer]) for layer in ("hidden1", "output"))
    return (first[0] - first[-1]) - (output[0] - output[-1])


def early_layers_fall() -> Iterator[Comparison]:
    for where, data, runs in curves():
        yield Comparison(where, data, [(1, runs)], first_less_output_fall)


def layers_differ() -> Iterator[Comparison]:
    for where, data, runs in curves():
        for name, epoch in (("first", 0), ("last", -1)):
            value = partial(output_less_first, epoch=epoch)
            yield Comparison(f"{where}, {name} epoch", data, [(1, runs)], value)


def alexnet() -> Iterator[Comparison]:
    """Heads of weight 0.3 and the cost-blind network, with pretraining and without."""
    for where, folder in ALEXNETS.items():
        found: dict[float | None, OfSeeds] = defaultdict(dict)
        for identity, result in Ledger(FOLDER / folder / RUNS).runs.values():
            if not identity.get("tuning"):
                data = identity["dataset"]
                found[identity.get("alpha")][identity["seed"]] = result["results"][0]
        if len(found[0.3]) > 1:
            yield from cheaper(where, data, [found[0.3]], [found[None]])


CLAIMS: dict[str, Callable[[], Iterator[Comparison]]] = {
    "Cost against alpha is U-shaped, best at 0.2 to 0.5": u_shape,
    "AuxDNN is cheaper than NaiveDNN at every depth": aux_and_naive,
    "AuxDNN is cheaper than CSDNN at every depth": aux_and_csdnn,
    "CSDNN is cheaper than NaiveDNN for up to three layers": csdnn_and_naive,
    "NaiveDNN gains from one to three layers, and loses from three to five": depth_of_naive,
    "CSDNN worsens fastest with depth": csdnn_with_depth,
    "Losses of early layers fall more slowly": early_layers_fall,
    "The first layer has the largest loss, the output the smallest": layers_differ,
    "AuxAlexNet is cheaper than the cost-blind AlexNet": alexnet,
}


# --- the criterion ----------------------------------------------------------------------------


class Judged(NamedTuple):
    comparison: Comparison
    verdict: str
    p_value: float  # corrected; NaN where a network has not learnt


def judge(comparisons: Sequence[Comparison]) -> list[Judged]:
    """The verdict on each comparison of a claim."""
    learnt = [c for c in comparisons if c.learnt]
    p = dict(zip(map(id, learnt), holm([t_test(c.differences) for c in learnt])))
    return [Judged(c, _verdict(c, p.get(id(c))), p.get(id(c), np.nan)) for c in comparisons]


def _verdict(comparison: Comparison, p_value: float | None) -> str:
    holds, opposite, within, not_learnt = VERDICTS
    if p_value is None:
        return not_learnt
    if not p_value < LEVEL:
        return within
    return holds if comparison.differences.mean() < 0 else opposite


def t_test(differences: NDArray) -> float:
    """Two-sided p-value of a mean of zero; 1 where all differences are zero."""
    return float(stats.ttest_1samp(differences, 0).pvalue) if differences.any() else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction."""
    order, corrected, largest = np.argsort(p_values), np.empty(len(p_values)), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected.tolist()


def verdicts() -> dict[str, list[Judged]]:
    return {claim: judge(list(make())) for claim, make in CLAIMS.items()}


# --- what it comes to -------------------------------------------------------------------------


def table() -> Iterator[list[str]]:
    """A line for each claim: where it holds, where the opposite does, and how many are open."""
    yield ["the paper", *VERDICTS]
    for claim, judged in verdicts().items():
        where: dict[str, dict[str, list[str]]] = {verdict: {} for verdict in VERDICTS}
        for comparison, verdict, _ in judged:
            where[verdict].setdefault(comparison.where, []).append(comparison.data)
        clear, others = [*where.values()][:2], [*where.values()][2:]
        places = ["; ".join(f"{w}: {', '.join(names)}" for w, names in of.items()) for of in clear]
        yield [claim, *places, *(str(sum(map(len, of.values()))) for of in others)]


def report() -> str:
    """All comparisons with mean, standard error, seeds and corrected p-value."""
    lines = [(__doc__ or "").split("``python")[0].strip()]
    for claim, judged in verdicts().items():
        lines += ["", claim, "-" * len(claim)]
        for comparison, verdict, p_value in judged:
            where, data, found = comparison.where, comparison.data, comparison.differences
            mean = f"{np.mean(found) if len(found) else np.nan:+.4f} +- {standard_error(found):.4f}"
            lines.append(
                f"{where:40} {data:14} {mean:18}  n={len(found)}  p={p_value:.4f}  {verdict}"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    text = report()
    (FOLDER / "verdicts.txt").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
