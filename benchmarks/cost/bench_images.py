"""Small sets of images: the default CNN, and what a user would write instead.

A residual network and its training in forty lines of plain torch (one cycle, smoothed labels,
predictions averaged with mirrored images, a temperature from a tenth of the rows); the network of
`CostSensitiveAuxCNN` in the same loop; logistic regression on random patches; and, as a reference
that uses other data, logistic regression on features of a pretrained SqueezeNet. All decide based
on expected cost. ``--part validation`` compares on other samples of the training part, by which
defaults were chosen; the test part chooses nothing. Finished runs are kept in ``--runs``.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.metadata import version
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxCNN
from auxcst_sklearn.costs import randomized_proportional_cost_matrix, tree_distance_cost_matrix
from auxcst_sklearn.modules import ResidualCNN
from benchmarks.common import engine
from benchmarks.common.engine import Run
from benchmarks.common.folders import RESULTS
from benchmarks.common.image_sets import load_cifar10, load_cifar100, load_mnist
from benchmarks.common.json_files import from_json, write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost.bench_pretrained import cifar100_paths
from benchmarks.paper.caltech101 import load_caltech101
from benchmarks.paper.pretrained import SqueezeNet

REVISION = 1  # to be raised where a change of our code changes results
CELL = ("set", "part", "rows", "seed", "method")  # what a run is about
# Training rows of each set; only natural images are mirrored.
ROWS = {"cifar10": 2000, "mnist": 1000, "digits": 500, "cifar100": 5000, "caltech101-39": 1200}
NATURAL = ("cifar10", "cifar100", "caltech101-39")
N_TEST, CALTECH_SIZE = 2000, 64
EPOCHS, RATE, DECAY, BATCH, SMOOTHING = 50, 0.01, 0.05, 64, 0.1
Images = NDArray[np.uint8]


class Draw(NamedTuple):
    """Images (n, C, H, W) to train and judge on, their classes, costs, and how to augment."""

    X: Images
    y: NDArray[np.intp]
    X_test: Images
    y_test: NDArray[np.intp]
    costs: NDArray[np.float64]
    augmentation: str
    seed: int
    data_home: Path


@cache
def images_of(name: str, data_home: Path) -> tuple[Images, NDArray[np.intp], int, list[str]]:
    """Images and classes, the number of training images, and paths in a tree of classes, if any."""
    if name == "digits":
        digits = load_digits()
        order = np.random.RandomState(0).permutation(len(digits.target))
        pixels = np.uint8(digits.images * 15.9375)[:, np.newaxis]
        return pixels[order], digits.target[order], 1200, []
    kept = Path(tempfile.gettempdir()) / f"auxcst-{name}.npz"
    if kept.exists():
        with np.load(kept) as found:
            return found["X"], found["y"], int(found["n"]), found["paths"].tolist()
    paths: list[str] = []
    if name == "caltech101-39":
        found = load_caltech101(name, data_home, image_size=CALTECH_SIZE)
        X, y, n, paths = found.images, found.target, found.n_train, found.paths
    else:
        load = {"mnist": load_mnist, "cifar10": load_cifar10, "cifar100": load_cifar100}[name]
        X, y, names, n = load(data_home)
        paths = cifar100_paths(data_home, names) if name == "cifar100" else []
    np.savez(kept, X=X, y=y, n=n, paths=np.array(paths, str))
    return X, y, n, paths


def draw(name: str, part: str, rows: int, seed: int, data_home: Path) -> Draw:
    """Training rows of the training part, and others of it or of the test part."""
    X, y, n_train, paths = images_of(name, data_home)
    rng = np.random.RandomState(seed)
    known, other = rng.permutation(n_train), n_train + rng.permutation(len(y) - n_train)
    train = known[:rows]
    judged = known[rows : rows + N_TEST] if part == "validation" else other[:N_TEST]
    if paths:
        costs: Any = tree_distance_cost_matrix(paths).astype(float)
    else:
        costs = randomized_proportional_cost_matrix(y[train], random_state=seed)
    augmentation = "flip_shift" if name in NATURAL else "shift"
    costs = np.asarray(costs)
    return Draw(X[train], y[train], X[judged], y[judged], costs, augmentation, seed, data_home)


# ------------------------------------------------------------------------------ plain torch


class Residual(nn.Module):
    def __init__(self, n_maps: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(convolution(n_maps, n_maps), convolution(n_maps, n_maps))

    def forward(self, x: Tensor) -> Any:
        return x + self.layers(x)


class PlainCNN(nn.Module):
    def __init__(self, n_channels: int, n_classes: int, n: int = 16) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.BatchNorm2d(n_channels, affine=False), convolution(n_channels, n)),
            *(convolution(n, 2 * n), nn.MaxPool2d(2), Residual(2 * n)),
            *(convolution(2 * n, 4 * n), nn.MaxPool2d(2)),
            *(convolution(4 * n, 8 * n), nn.MaxPool2d(2), Residual(8 * n)),
        )
        self.output = nn.Linear(8 * n, n_classes)

    def forward(self, x: Tensor) -> Any:
        return self.output(self.layers(x).amax((2, 3)) / 4)


def convolution(n_inputs: int, n_maps: int) -> nn.Sequential:
    layer = nn.Conv2d(n_inputs, n_maps, 3, 1, 1, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(n_maps), nn.ReLU())


def moved(x: Tensor, *, flips: bool) -> Tensor:
    """Images that are mirrored and shifted at random."""
    size, most = x.shape[-1], x.shape[-1] // 8
    if flips:
        x = torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)
    padded = F.pad(x, (most,) * 4, mode="reflect")
    places = torch.randint(0, 2 * most + 1, (len(x), 2)).tolist()
    return torch.stack([one[:, i : i + size, j : j + size] for one, (i, j) in zip(padded, places)])


def plain(given: Draw, *, same_module: bool = False) -> NDArray[np.float64]:
    """Probabilities of test images by the loop of plain torch."""
    torch.manual_seed(given.seed)
    rng, flips = np.random.RandomState(given.seed), given.augmentation == "flip_shift"
    n_classes = len(given.costs)
    network: nn.Module = PlainCNN(given.X.shape[1], n_classes)
    if same_module:
        network = ResidualCNN(given.X.shape[1:], n_classes)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    X, X_test = (torch.from_numpy(some).float() / 255 for some in (given.X, given.X_test))
    y = torch.from_numpy(given.y).long()
    held, train = np.split(rng.permutation(len(y)), [len(y) // 10])
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    n_steps = EPOCHS * -(-len(train) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=n_steps, pct_start=0.2
    )
    network.train()
    for _ in range(EPOCHS):
        for batch in torch.from_numpy(rng.permutation(train)).split(BATCH):
            outputs = network(moved(X[batch], flips=flips))
            loss = F.cross_entropy(outputs, y[batch], label_smoothing=SMOOTHING)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()

    @torch.no_grad()
    def logits(x: Tensor) -> Tensor:
        parts = x.split(250)
        means = [(network(p) + network(p.flip(3))) / 2 if flips else network(p) for p in parts]
        return torch.cat(means)

    unseen = logits(X[held])
    heat = minimize_scalar(
        lambda log: F.cross_entropy(unseen / np.exp(log), y[held]).item(), bounds=(-1.6, 1.6)
    )
    tempered: Any = (logits(X_test).double() / np.exp(heat.x)).softmax(1).numpy()
    return tempered


# ------------------------------------------------------------------------------ other methods


def patches(given: Draw, n_filters: int = 400, size: int = 6) -> NDArray[np.float64]:
    """Logistic regression on products with random, whitened patches, pooled in quarters."""
    size = min(size, given.X.shape[-1] // 2)
    rng, X = np.random.RandomState(given.seed), torch.from_numpy(given.X).float() / 255
    n, n_channels, height, width = X.shape
    corners = [rng.randint(high, size=20_000) for high in (n, height - size, width - size)]
    some = torch.stack([X[i, :, a : a + size, b : b + size] for i, a, b in zip(*corners)])
    flat = some.flatten(1).double()
    flat = flat - flat.mean(1, keepdim=True)
    values, axes = torch.linalg.eigh(flat.T.cov())
    whiten = axes @ torch.diag((values + 0.01).rsqrt()) @ axes.T
    chosen = flat[rng.choice(len(flat), n_filters, replace=False)] @ whiten
    filters = (F.normalize(chosen) @ whiten).view(-1, n_channels, size, size).float()
    filters -= filters.mean((1, 2, 3), keepdim=True)

    def features(images: Images) -> NDArray[np.float32]:
        parts = (torch.from_numpy(images).float() / 255).split(100)
        maps = (F.conv2d(part, filters) for part in parts)
        pooled = (F.adaptive_avg_pool2d(torch.cat([m.relu(), (-m).relu()], 1), 2) for m in maps)
        return torch.cat([part.flatten(1) for part in pooled]).numpy()

    return of_features(given, features, C=0.01)


def squeezenet(given: Draw, size: int = 128) -> NDArray[np.float64]:
    """Logistic regression on features of SqueezeNet with ImageNet weights, of enlarged images."""
    network = SqueezeNet.from_npz(given.data_home / "squeezenet1_1_imagenet_caffe.npz").eval()
    network.classifier = nn.Identity()

    @torch.no_grad()
    def features(images: Images) -> NDArray[np.float32]:
        parts = (torch.from_numpy(images).float() / 255).split(100)
        large = (F.interpolate(part, (size, size), mode="bilinear") for part in parts)
        return torch.cat([network(part) for part in large]).numpy()

    return of_features(given, features, C=0.1)


def of_features(
    given: Draw, features: Callable[[Images], NDArray[np.float32]], C: float
) -> NDArray[np.float64]:
    """Probabilities by logistic regression on features, with a temperature of five folds."""
    model = BayesMinimumRiskClassifier(
        make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=300)),
        cost_matrix=given.costs,
        classes=range(len(given.costs)),
        calibration="temperature",
    )
    found: Any = model.fit(features(given.X), given.y).predict_proba(features(given.X_test))
    return found


def ours(given: Draw, **parameters: Any) -> NDArray[np.float64]:
    settings: Any = {"augmentation": given.augmentation, "random_state": given.seed, **parameters}
    model = CostSensitiveAuxCNN(
        cost_matrix=given.costs, classes=range(len(given.costs)), **settings
    )
    found: Any = model.fit(given.X, given.y).predict_proba(given.X_test)
    return found


METHODS: dict[str, Callable[[Draw], NDArray[np.float64]]] = {
    "ours": ours,
    "plain": plain,
    "ours, plain loop": partial(plain, same_module=True),
    "patches": patches,
    "ours, alpha 0": partial(ours, alpha=0),
    "ours, two networks": partial(ours, n_networks=2),
    "squeezenet": squeezenet,  # natural images only
}


def judged(p: NDArray[np.float64], given: Draw) -> dict[str, float]:
    """Cost of the decisions by least expected cost, log loss and accuracy."""
    y, costs = given.y_test, given.costs
    paid = costs[y, (p @ costs).argmin(axis=1)]
    return {
        "cost": float(paid.mean()),
        "error": float(paid.std() / len(y) ** 0.5),
        "log_loss": float(-np.log(p[np.arange(len(p)), y].clip(1e-6)).mean()),
        "accuracy": float((p.argmax(axis=1) == y).mean()),
    }


def fit_and_judge(
    name: str, part: str, rows: int, seed: int, method: str, *, data_home: Path
) -> dict[str, float]:
    """Train and judge one model; CPU time without that of reading the images."""
    given = draw(name, part, rows, seed, data_home)
    torch.set_num_threads(1)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = METHODS[method](given)
    return {**judged(p, given), "cpu_seconds": round(time.process_time() - start, 1)}


def table(runs: Sequence[dict[str, Any]], part: str) -> str:
    """Results of each set, number of rows and method: means over seeds."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in runs:
        if one["part"] == part:
            groups.setdefault((one["set"], one["rows"], one["method"]), []).append(one)
    names = ("cost", "log_loss", "accuracy", "cpu_seconds")
    lines = [["set", "images", "method", "seeds", *(name.replace("_", " ") for name in names)]]
    for (name, rows, method), found in groups.items():
        means = [np.mean([one[key] for one in found]) for key in names]
        digits = [f"{mean:.3f}" for mean in means[:-1]] + [f"{means[-1]:.0f}"]
        lines.append([name, str(rows), method, str(len(found)), *digits])
    widths = [max(map(len, column)) for column in zip(*lines)]
    border = "  ".join("=" * width for width in widths)
    body = ["  ".join(f"{c:<{w}}" for c, w in zip(line, widths)).rstrip() for line in lines]
    return "\n".join([border, body[0], border, *body[1:], border]) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, seeds=[0], n_jobs=1, out=RESULTS, data_home=Path("data"))
    parser.add_argument("--sets", nargs="+", default=list(ROWS), choices=ROWS, help="images")
    parser.add_argument("--methods", nargs="+", default=["ours", "plain"], choices=METHODS)
    parser.add_argument("--part", default="test", choices=("test", "validation"))
    parser.add_argument(
        "--rows", type=int, nargs="+", help="training images, if not those of the set"
    )
    parser.add_argument("--runs", type=Path, default=Path("out/image_runs"), help="finished runs")
    options = parser.parse_args(arguments)
    cells = [
        (name, options.part, rows, seed, method)
        for name, seed, method in product(options.sets, options.seeds, options.methods)
        for rows in options.rows or [ROWS[name]]
        if method != "squeezenet" or name in NATURAL
    ]
    names = ("torch", "numpy", "scikit-learn")
    common = {"revision": REVISION, **{name: version(name) for name in names}}
    fits = [partial(fit_and_judge, *cell, data_home=options.data_home) for cell in cells]
    jobs = [
        [Run("images", {**dict(zip(CELL, cell)), **common}, fit)] for cell, fit in zip(cells, fits)
    ]
    engine.run_all(jobs, folder=options.runs, n_jobs=options.n_jobs)
    # Sets differ in rows and seeds, so that the table collects the runs of several calls.
    found = [from_json(file.read_text()) for file in options.runs.glob("images_*.json")]
    runs = [
        {**{name: one["identity"][name] for name in CELL}, **one["result"]}
        for one in found
        if common.items() <= one["identity"].items()
    ]
    runs.sort(key=itemgetter(*CELL))
    write_json(options.out / "images.json", provenance() | {"runs": runs})
    (options.out / "images.rst").write_text(table(runs, "test"))
    print(table(runs, options.part))


if __name__ == "__main__":
    main()
