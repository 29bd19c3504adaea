"""Short texts of many classes: a pretrained encoder that is fine-tuned, by us and by plain torch.

MiniLM with a new output layer on the mean over tokens, for the sets and costs of
:mod:`benchmarks.common.text_sets`, each also with the decision to ask a person at cost 1. A tenth
of the training rows is held out: both methods stop, learn a temperature (we also weights of the
heads) and choose their rates by its log loss. Plain torch minimises the cross-entropy with AdamW,
warm-up, linear decay and clipped gradients, on batches that are padded to their longest text, or
with fixed padding to 64 tokens. Beside them: logistic regression on counts of words and on
embeddings of the frozen encoder, with a temperature. All decide by least expected cost. Finished
runs are kept in ``--out``/fine_tuned_texts.json, and not repeated.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxNet
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import from_json, write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.common.text_sets import ASK, NAMES, TextSet, embed, encoder_folder, load_texts
from benchmarks.cost.bench_texts import logistic

# Learning rates of the output layer, and of the encoder as a fraction of it.
RATES = {"1e-3, 1e-4": (1e-3, 0.1), "5e-3, 1e-4": (5e-3, 0.02)}
BATCH, LENGTH = 32, 64
Arrays = dict[str, NDArray[np.int64]]


class Encoder(nn.Module):
    """MiniLM, the mean over its tokens, and a new output layer."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        from transformers import AutoModel

        self.body = AutoModel.from_pretrained(encoder_folder())
        self.out = nn.Linear(self.body.config.hidden_size, n_classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weight = attention_mask.unsqueeze(-1).to(x.dtype)
        return self.out((x * weight).sum(1) / weight.sum(1))


def tokenized(texts: Sequence[str]) -> Arrays:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(encoder_folder())
    found = tokenizer(list(texts), padding=True, truncation=True, max_length=LENGTH)
    return {name: np.array(found[name]) for name in ("input_ids", "attention_mask")}


def rows_of(arrays: Arrays, index: NDArray[np.intp]) -> Arrays:
    return {name: values[index] for name, values in arrays.items()}


class Ours:
    """A CostSensitiveAuxNet with its defaults but for the rates."""

    def __init__(self, n_epochs: int, rates: tuple[float, float], seed: int) -> None:
        self.settings: Any = {"max_epochs": n_epochs, "random_state": seed, "batch_size": BATCH}
        self.settings |= {"learning_rate": rates[0], "pretrained_lr_factor": rates[1]}

    def fit(self, X: Arrays, label: Any, held_out: Arrays, held_label: Any, costs: Any) -> Ours:
        known = {"pretrained": True, "module__n_classes": len(costs), "classes": range(len(costs))}
        self.model = CostSensitiveAuxNet(Encoder, cost_matrix=costs, **known, **self.settings)
        self.model.fit(X, label, X_val=held_out, y_val=held_label)
        return self

    def predict_proba(self, X: Arrays) -> NDArray[np.float64]:
        return np.asarray(self.model.predict_proba(X), np.float64)


class Plain:
    """The same network by a loop of plain torch, with a temperature."""

    def __init__(
        self, n_epochs: int, rates: tuple[float, float], seed: int, *, fixed: bool = False
    ) -> None:
        self.n_epochs, self.rates, self.seed, self.fixed = n_epochs, rates, seed, fixed

    def fit(self, X: Arrays, label: Any, held_out: Arrays, held_label: Any, costs: Any) -> Plain:
        torch.manual_seed(self.seed)
        self.net, self.heat = Encoder(len(costs)), 1.0
        rate, factor = self.rates
        parts = [{"params": self.net.body.parameters(), "lr": rate * factor}]
        optimizer = torch.optim.AdamW([*parts, {"params": self.net.out.parameters()}], lr=rate)
        n_steps = self.n_epochs * -(-len(label) // BATCH)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda s: min((s + 1) / (0.1 * n_steps), 1) * max(0.0, 1 - s / n_steps)
        )
        tensors = {name: torch.from_numpy(values) for name, values in X.items()}
        target, best = torch.as_tensor(label), (np.inf, {}, 1.0)
        for _ in range(self.n_epochs):
            self.net.train()
            for batch in torch.randperm(len(label)).split(BATCH):
                rows = {name: values[batch] for name, values in tensors.items()}
                longest = LENGTH if self.fixed else int(rows["attention_mask"].sum(1).max())
                output = self.net(**{name: values[:, :longest] for name, values in rows.items()})
                optimizer.zero_grad()
                F.cross_entropy(output, target[batch]).backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
                optimizer.step()
                schedule.step()
            loss, heat = self._tempered(self._logits(held_out), torch.as_tensor(held_label))
            if loss < best[0]:
                best = loss, {k: v.clone() for k, v in self.net.state_dict().items()}, heat
        self.net.load_state_dict(best[1])
        self.heat = best[2]
        return self

    def _tempered(self, logits: Tensor, label: Tensor) -> tuple[float, float]:
        found = minimize_scalar(
            lambda log: F.cross_entropy(logits / np.exp(log), label).item(), bounds=(-1.6, 2.2)
        )
        return float(found.fun), float(np.exp(found.x))

    @torch.no_grad()
    def _logits(self, X: Arrays) -> Tensor:
        self.net.eval()
        parts = zip(
            *(torch.from_numpy(X[name]).split(256) for name in ("input_ids", "attention_mask"))
        )
        return torch.cat([self.net(*part) for part in parts])

    def predict_proba(self, X: Arrays) -> NDArray[np.float64]:
        return (self._logits(X).double() / self.heat).softmax(1).numpy()


METHODS: dict[str, Callable[..., Any]] = {
    "ours": Ours,
    "plain": Plain,
    "plain, fixed padding": lambda *given: Plain(*given, fixed=True),
}


def judged(p: NDArray[np.float64], label: NDArray[np.intp], costs: NDArray) -> dict[str, float]:
    """Costs of decisions by least expected cost, without and with asking, and the log loss."""
    asks = np.c_[costs, np.full(len(costs), ASK)]
    found = {"log_loss": float(-np.log(p[np.arange(len(p)), label].clip(1e-6)).mean())}
    for name, given in (("cost", costs), ("cost_ask", asks)):
        found[name] = float(given[label, (p @ given).argmin(axis=1)].mean())
    return {**found, "most_probable": float(costs[label, p.argmax(axis=1)].mean())}


def fine_tuned(texts: TextSet, method: str, rates: str, seed: int, n_epochs: int) -> dict[str, Any]:
    """A run with held-out and test results."""
    X, test = tokenized(texts.texts), tokenized(texts.test_texts)
    order, n = np.random.RandomState(seed).permutation(len(texts.label)), len(texts.label) // 10
    held, train = order[:n], order[n:]
    model = METHODS[method](n_epochs, RATES[rates], seed)
    start = time.process_time()
    given = rows_of(X, train), texts.label[train], rows_of(X, held), texts.label[held]
    model.fit(*given, texts.costs)
    seconds = time.process_time() - start
    unseen = judged(model.predict_proba(rows_of(X, held)), texts.label[held], texts.costs)
    found = judged(model.predict_proba(test), texts.test_label, texts.costs)
    return {**found, "held_out_log_loss": unseen["log_loss"], "cpu_seconds": seconds}


def simple(texts: TextSet, kind: str) -> dict[str, Any]:
    """Logistic regression on counts of words, or on frozen embeddings, with a temperature."""
    start = time.process_time()
    if kind == "TF-IDF":
        rows: Any = texts.texts, texts.test_texts
        inner: Any = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), logistic())
    else:
        rows, inner = (embed(texts.texts), embed(texts.test_texts)), logistic()
    known: Any = {"calibration": "temperature", "cost_matrix": texts.costs}
    model = BayesMinimumRiskClassifier(inner, **known).fit(rows[0], texts.label)
    seconds = time.process_time() - start
    return {
        **judged(model.predict_proba(rows[1]), texts.test_label, texts.costs),
        "cpu_seconds": seconds,
    }


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    file = options.out / "fine_tuned_texts.json"
    runs = from_json(file.read_text())["runs"] if file.exists() else []
    done = {(r["set"], r["seed"], r["method"], r["rates"]) for r in runs}
    planned = [(m, rates) for rates, m in product(options.rates, options.methods)]
    planned += [(m, "") for m in ("TF-IDF", "frozen")]
    for name, seed in product(options.sets, options.seeds):
        texts = load_texts(name, options.data_home, seed, options.rows)
        for method, rates in planned:
            if (name, seed, method, rates) in done:
                continue
            if rates:
                found = fine_tuned(texts, method, rates, seed, options.epochs)
            else:
                found = simple(texts, method)
            runs.append({"set": name, "seed": seed, "method": method, "rates": rates, **found})
            print(runs[-1], flush=True)
            settings = {"rows": options.rows, "epochs": options.epochs}
            write_json(file, provenance("transformers") | settings | {"runs": runs})
    return runs


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Test results of each set and method, with the rates of least held-out log loss."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in runs:
        key = one["set"], one["method"], one["seed"]
        held_out = one.get("held_out_log_loss", 0)
        if key not in best or held_out < best[key].get("held_out_log_loss", 0):
            best[key] = one
    names = ("cost", "cost_ask", "most_probable", "log_loss", "cpu_seconds")
    lines = [["set", "method", "seed", "rates", *names]]
    for (name, method, seed), one in sorted(best.items()):
        values = [f"{one[key]:.3f}" for key in names[:-1]] + [f"{one['cpu_seconds']:.0f}"]
        lines.append([name, method, str(seed), one["rates"] or "\\-", *values])
    widths = [max(map(len, column)) for column in zip(*lines)]
    border = "  ".join("=" * width for width in widths)
    body = ["  ".join(f"{c:<{w}}" for c, w in zip(line, widths)).rstrip() for line in lines]
    return "\n".join([border, body[0], border, *body[1:], border]) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, seeds=[0], out=RESULTS, data_home=Path("data"))
    parser.add_argument("--sets", nargs="+", default=list(NAMES), choices=NAMES, help="texts")
    parser.add_argument("--methods", nargs="+", default=["ours", "plain"], choices=[*METHODS])
    parser.add_argument("--rates", nargs="+", default=list(RATES), choices=[*RATES])
    parser.add_argument("--rows", type=int, default=2000, help="training rows")
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    text = table(run(options))
    (options.out / "fine_tuned_texts.rst").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
