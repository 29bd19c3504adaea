"""Data for `bench_heads`: images, series, points, graphs, tables and texts."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.nn import functional as F  # noqa: N812

from benchmarks.common.text_sets import load_texts
from benchmarks.cost import series_data
from benchmarks.cost.bench_images import draw
from benchmarks.cost.costs import lognormal

DISTANCE = np.abs(np.subtract.outer(range(10), range(10))).astype(float)
N_TOKENS, LENGTH = 2048, 20


class Split(NamedTuple):
    """Samples to train and judge on, their classes from 0 on, costs (K, K), an augmentation."""

    X: Any
    y: NDArray[np.intp]
    X_test: Any
    y_test: NDArray[np.intp]
    costs: NDArray[np.float64]
    augmentation: str | None = None


def images(name: str, rows: int, halved: bool, part: str, seed: int, data_home: Path) -> Split:
    """Digits of 8 x 8 pixels, where the cost is the distance; images of another set, halved."""
    X, y, X_test, y_test, costs, augmentation, *_ = draw(name, part, rows, seed, data_home)
    if name == "digits":
        return Split(*(np.float32(X) / 255, y, np.float32(X_test) / 255, y_test), DISTANCE)
    parts = [torch.from_numpy(a).float() / 255 - 0.5 for a in (X, X_test)]
    train, test = (F.avg_pool2d(part, 1 + halved).numpy() for part in parts)
    return Split(train, y, test, y_test, costs, augmentation)


def series(name: str, part: str, seed: int, data_home: Path) -> Split:
    return Split(*series_data.draw(name, seed))


def points(part: str, seed: int, data_home: Path) -> Split:
    """The pixels of digits that have ink: column, row, ink, and whether there is a point."""
    nodes, _, exists, y = ink()
    return drawn(np.concatenate([nodes, np.float32(exists[..., np.newaxis])], axis=2), y, seed)


def graphs(part: str, seed: int, data_home: Path) -> Split:
    """The same points, joined with their neighbours."""
    nodes, adjacency, exists, y = ink()
    return drawn({"nodes": nodes, "adjacency": adjacency, "exists": exists}, y, seed)


def ink() -> tuple[NDArray, NDArray, NDArray, NDArray]:
    digits = load_digits()
    pixels, n = digits.images / 16, len(digits.target)
    most = int((pixels > 0.2).sum(axis=(1, 2)).max())
    nodes, adjacency = np.zeros((n, most, 3), np.float32), np.zeros((n, most, most), np.float32)
    exists = np.zeros((n, most), bool)
    for i, image in enumerate(pixels):
        rows, columns = np.nonzero(image > 0.2)
        m = len(rows)
        nodes[i, :m] = np.stack([rows / 7, columns / 7, image[rows, columns]], axis=1)
        distances = [np.abs(np.subtract.outer(at, at)) for at in (rows, columns)]
        adjacency[i, :m, :m] = np.maximum(*distances) == 1
        exists[i, :m] = True
    return nodes, adjacency, exists, digits.target


def parcels(part: str, seed: int, data_home: Path) -> Split:
    """A noisy digit beside six columns, of which five know something about it."""
    digits, rng = load_digits(), np.random.RandomState(0)
    y, n = digits.target, len(digits.target)
    columns = [y + rng.normal(0, 3, n), y % 2 + rng.normal(0, 0.8, n)]
    columns += [(y > 4) + rng.normal(0, 0.8, n), rng.normal(size=n), rng.lognormal(size=n)]
    columns += [y * rng.normal(1, 0.5, n)]
    table = np.stack(columns, axis=1)
    image = digits.images[:, np.newaxis] / 16 + rng.normal(0, 0.35, (n, 1, 8, 8))
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    return drawn({"image": np.float32(image), "table": np.float32(table)}, y, seed)


def beans(part: str, seed: int, data_home: Path) -> Split:
    """1,500 samples of dry_bean, 16 numbers and seven classes, with lognormal costs."""
    with gzip.open(data_home / "tables" / "dry_bean.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    X = np.array([[float(v) for k, v in row.items() if k != "Class"] for row in rows])
    y = np.unique([row["Class"] for row in rows], return_inverse=True)[1]
    X = np.float32((X - X.mean(axis=0)) / X.std(axis=0))
    costs = lognormal(y, y, np.random.RandomState(seed)).cost_matrix
    return drawn(X, y, seed, n=1500, costs=costs)


def texts(part: str, seed: int, data_home: Path) -> Split:
    """Banking77; the number of a word is a hash, and texts end after twenty words."""
    found = load_texts("banking77", data_home, seed, 2500)

    def tokens(of: list[str]) -> dict[str, NDArray]:
        ids = np.zeros((len(of), LENGTH), np.int64)
        for row, text in zip(ids, of):
            words = text.lower().replace("?", " ?").split()[:LENGTH]
            row[: len(words)] = [1 + zlib.crc32(w.encode()) % (N_TOKENS - 1) for w in words]
        return {"input_ids": ids, "attention_mask": (ids > 0).astype(np.int64)}

    X, X_test = tokens(found.texts), tokens(found.test_texts)
    return Split(X, found.label, X_test, found.test_label, found.costs)


def drawn(X: Any, y: NDArray, seed: int, n: int = 600, costs: NDArray = DISTANCE) -> Split:
    """Random training samples, and up to 2,000 others."""
    n_test = min(2000, len(y) - n)
    train, test = train_test_split(
        np.arange(len(y)), train_size=n, test_size=n_test, stratify=y, random_state=seed
    )
    parts = [
        {name: a[i] for name, a in X.items()} if isinstance(X, dict) else X[i]
        for i in (train, test)
    ]
    return Split(parts[0], y[train], parts[1], y[test], costs)


Read = Callable[[str, int, Path], Split]
