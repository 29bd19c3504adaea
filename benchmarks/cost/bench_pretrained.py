"""Fine-tuned networks with and without cost heads, against what a user would do instead.

``python -m benchmarks.cost.bench_pretrained fit --set caltech101-39 --method plain`` trains one
network and saves what its layers put out for held-out and test images; runs that exist are left
out, so that a long series resumes. ``pretrained_table`` judges them. ``... time`` compares the CPU
time of an epoch with that of a plain loop. Run with ``--help`` for options.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from auxcst_sklearn import CostSensitiveAuxNet
from auxcst_sklearn.costs import tree_distance_cost_matrix
from auxcst_sklearn.modules import RandomFlipShift
from benchmarks.common.image_sets import load_cifar10, load_cifar100
from benchmarks.paper.caltech101 import load_caltech101
from benchmarks.paper.images import CIFAR10_BRANCHES
from benchmarks.paper.pretrained import SqueezeNet, efficientnet_lite0

SETS = ("caltech101-39", "caltech101", "cifar100", "cifar10")
NETWORKS = ("squeezenet", "efficientnet")
CIFAR_ROWS = 5000, 3000  # to train on, and to test on
HELD_OUT = 0.1  # of the training images: for rates, temperatures and weights of the heads
FROZEN = ["network._conv_stem", "network._bn0", *(f"network._blocks.{i}" for i in range(9))]
RATE, FACTOR, EPOCHS, BATCH = 3e-3, 0.1, 5, 32
# Convolutions within a channel are slower in bfloat16 on processors.
PRECISION = {"squeezenet": "bf16", "efficientnet": "float32"}


class Data(NamedTuple):
    """Images, their classes, rows of each part, and the costs of mistakes."""

    images: NDArray[np.uint8]
    target: NDArray[np.int64]
    train: NDArray[np.int64]
    held_out: NDArray[np.int64]
    test: NDArray[np.int64]
    cost_matrix: NDArray[np.float64]


def load(name: str, data_home: Path, size: int, seed: int, cache: Path) -> Data:
    """Images of one size, read once; the seed draws the held-out ones."""
    file = cache / f"{name}_{size}.npz"
    if not file.exists():
        images, target, paths, n_train = read(name, data_home, size)
        np.savez(file, images=images, target=target, paths=np.array(paths), n_train=n_train)
    with np.load(file) as arrays:
        images, target, n_train = arrays["images"], arrays["target"], int(arrays["n_train"])
        cost_matrix = tree_distance_cost_matrix(arrays["paths"].tolist()).astype(float)
    rows = np.arange(n_train)
    train, held_out = train_test_split(
        rows, test_size=HELD_OUT, stratify=target[rows], random_state=100 + seed
    )
    test = np.arange(n_train, len(target))
    return Data(images, target, np.sort(train), np.sort(held_out), test, cost_matrix)


def read(name: str, data_home: Path, size: int) -> tuple[Any, Any, list[str], int]:
    """All images of Caltech-101, or some thousands of CIFAR, enlarged."""
    if name.startswith("caltech101"):
        found = load_caltech101(name, data_home, image_size=size)
        return found.images, found.target, found.paths, found.n_train
    ten = name == "cifar10"
    cifar = load_cifar10(data_home) if ten else load_cifar100(data_home)
    if ten:
        paths = [f"{CIFAR10_BRANCHES[label]}/{label}" for label in cifar.names]
    else:
        paths = cifar100_paths(data_home, cifar.names)
    parts = np.split(np.arange(len(cifar.target)), [cifar.n_train])
    rows = np.concatenate(
        [
            train_test_split(part, train_size=n, stratify=cifar.target[part], random_state=0)[0]
            for part, n in zip(parts, CIFAR_ROWS)
        ]
    )
    large = [
        F.interpolate(torch.from_numpy(cifar.images[some]), size=(size, size), mode="bilinear")
        for some in np.array_split(rows, 16)
    ]
    return torch.cat(large).numpy(), cifar.target[rows], paths, CIFAR_ROWS[0]


def cifar100_paths(data_home: Path, names: list[str]) -> list[str]:
    """Superclass and class, from ``cifar100_classes.csv``."""
    lines = (data_home / "cifar100_classes.csv").read_text().splitlines()[1:]
    of_class = {name: above for _, name, above in (line.split(",")[:3] for line in lines)}
    return [f"{of_class[name]}/{name}" for name in names]


def make_network(name: str, weights: Path) -> nn.Module:
    return SqueezeNet.from_npz(weights) if name == "squeezenet" else efficientnet_lite0()


class Outputs(NamedTuple):
    """What layers put out, (n_layers, n_rows, n_classes), and the input of the last one."""

    layers: NDArray[np.float32]
    features: NDArray[np.float32]


Predict = Callable[[Tensor], tuple[list[Tensor], Tensor]]


@torch.no_grad()
def outputs_of(predict: Predict, images: NDArray[np.uint8]) -> Outputs:
    parts = [predict(torch.from_numpy(images[i : i + 200])) for i in range(0, len(images), 200)]
    layers = torch.cat([torch.stack(of_part).float() for of_part, _ in parts], dim=1)
    return Outputs(layers.numpy(), torch.cat([x.float().flatten(1) for _, x in parts]).numpy())


def fit_plain(data: Data, options: argparse.Namespace) -> Predict:
    """Fine-tuning as in a loop of one's own: cross-entropy, no costs, the same steps as ours."""
    torch.manual_seed(options.seed)
    network = make_network(options.network, options.weights)
    linear = nn.Linear(512 if options.network == "squeezenet" else 1280, len(data.cost_matrix))
    nn.init.zeros_(linear.bias)
    if options.network == "squeezenet":
        network.classifier[1] = nn.Identity()
    else:
        network.network._fc = nn.Identity()
        for path in FROZEN:
            network.get_submodule(path).requires_grad_(False)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    bf16 = PRECISION[options.network] == "bf16"
    trained = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": trained, "lr": options.factor * options.rate},
        {"params": linear.parameters(), "lr": options.rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=1e-2)
    x, y = torch.from_numpy(data.images[data.train]), torch.from_numpy(data.target[data.train])
    n_steps = -(-len(y) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [group["lr"] for group in groups], total_steps=options.epochs * n_steps
    )
    augment = RandomFlipShift(max_shift=options.size // 8)
    augment.generator = torch.Generator().manual_seed(options.seed)
    for _ in range(options.epochs):
        network.train()
        for path in FROZEN if options.network == "efficientnet" else []:
            network.get_submodule(path).eval()
        for rows in torch.randperm(len(y)).split(BATCH):
            batch = augment(x[rows].float().div_(255))
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                features = network(batch)
            loss = F.cross_entropy(linear(features.float()), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()

    def predict(images: Tensor) -> tuple[list[Tensor], Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            features = network(images.float().div_(255)).float()
        return [linear(features)], features

    return predict


def fit_ours(data: Data, options: argparse.Namespace) -> Predict:
    """A CostSensitiveAuxNet, with the parameters that the method names."""
    train, held_out = data.train, data.held_out
    network = make_network(options.network, options.weights)
    for path in FROZEN if options.network == "efficientnet" else []:
        network.get_submodule(path).requires_grad_(False)
    model = CostSensitiveAuxNet(
        network,
        pretrained=True,
        cost_matrix=data.cost_matrix,
        augmentation=RandomFlipShift(max_shift=options.size // 8),
        pretrained_lr_factor=options.factor,
        learning_rate=options.rate,
        max_epochs=options.epochs,
        batch_size=BATCH,
        precision=PRECISION[options.network],
        early_stopping=True,
        random_state=options.seed,
        device="cpu",
        **OURS[options.method],
    ).fit(
        data.images[train],
        data.target[train],
        X_val=data.images[held_out],
        y_val=data.target[held_out],
    )
    network = model.net_.module_.networks[0]

    def predict(images: Tensor) -> tuple[list[Tensor], Tensor]:
        features: list[Tensor] = []
        hook = network.output.register_forward_pre_hook(lambda _, x: features.append(x[0]))
        layers = network.forward_heads(images)
        hook.remove()
        return layers, features[0]

    return predict


OURS: dict[str, dict[str, Any]] = {
    "default": {},
    "no_heads": {"alpha": 0.0},
    "heads": {"head_gradient": 1.0},
    "labels": {"loss": "cross_entropy"},
    "heads_alpha_1": {"head_gradient": 1.0, "alpha": 1.0},
    "heads_third": {"head_gradient": 0.3},
    "one_sided": {"loss": "one_sided", "head_gradient": 0.0},
    "one_sided_heads": {"loss": "one_sided", "head_gradient": 1.0},
    "one_sided_plain": {"loss": "one_sided", "alpha": 0.0},
}


def fit(options: argparse.Namespace) -> None:
    """Train, and save the outputs for held-out and test images."""
    size, folder = options.size, options.out
    name = f"{options.set}_{options.network}_{options.method}_{options.rate}_{options.seed}"
    file = folder / f"{name}.npz"
    if file.exists():
        return
    data = load(options.set, options.data_home, size, options.seed, folder)
    start, cpu = time.perf_counter(), time.process_time()
    if options.method == "frozen":  # features of the given network
        network = make_network(options.network, options.weights)
        linear = [m for m in network.modules() if isinstance(m, nn.Linear)][-1]
        features: list[Tensor] = []
        linear.register_forward_pre_hook(lambda _, x: features.append(x[0]))

        def predict(images: Tensor) -> tuple[list[Tensor], Tensor]:
            features.clear()
            return [network.eval()(images.float().div_(255))[:, :1]], features[0]

    else:
        predict = (fit_plain if options.method == "plain" else fit_ours)(data, options)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    parts = {p: getattr(data, p) for p in ("held_out", "test")}
    if options.method in ("frozen", "default"):
        parts["train"] = data.train
    arrays: dict[str, Any] = {"cost_matrix": data.cost_matrix}
    for part, rows in parts.items():
        found = outputs_of(predict, data.images[rows])
        arrays |= {f"{part}_layers": found.layers, f"{part}_features": found.features}
        arrays[f"{part}_target"] = data.target[rows]
    np.savez(file, **arrays, seconds=seconds, cpu=cpu)
    record = {
        "run": name,
        "held_out": top(arrays, "held_out"),
        "test": top(arrays, "test"),
        "seconds": round(seconds, 1),
        "cpu": round(cpu, 1),
    }
    print(json.dumps(record), flush=True)


def top(arrays: dict[str, Any], part: str) -> float:
    """Accuracy of the last layer's largest output."""
    return float((arrays[f"{part}_layers"][-1].argmax(1) == arrays[f"{part}_target"]).mean())


def compare_epochs(options: argparse.Namespace, *, n_images: int = 1200, turns: int = 3) -> None:
    """CPU time of an epoch relative to the plain loop, in turns: two epochs more, less one."""
    data = load(options.set, options.data_home, options.size, options.seed, options.out)
    data = data._replace(train=np.random.default_rng(0).permutation(data.train)[:n_images])
    seconds: dict[str, list[float]] = {}
    for _ in range(turns):
        for method in ("plain", "no_heads", "default", "heads"):
            of_fits = []
            for options.epochs in (1, 3):
                options.method, start = method, time.process_time()
                (fit_plain if method == "plain" else fit_ours)(data, options)
                of_fits.append(time.process_time() - start)
            seconds.setdefault(method, []).append((of_fits[1] - of_fits[0]) / 2)
    plain = np.array(seconds["plain"])
    ratios = {name: round(float(np.median(values / plain)), 3) for name, values in seconds.items()}
    print(json.dumps({"n_images": n_images, "plain_seconds": plain.tolist(), "ratios": ratios}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("command", choices=["fit", "time"])
    add("--set", choices=SETS, default=SETS[0])
    add("--network", choices=NETWORKS, default=NETWORKS[0])
    add("--method", choices=["plain", "frozen", *OURS], default="plain")
    add("--rate", type=float, default=RATE)
    add("--factor", type=float, default=FACTOR)
    add("--seed", type=int, default=0)
    add("--epochs", type=int, default=EPOCHS)
    add("--size", type=int, default=96)
    add("--data-home", type=Path, required=True)
    add("--weights", type=Path, help="arrays of SqueezeNet 1.1's ImageNet weights")
    add("--out", type=Path, default=Path("out/pretrained"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    {"fit": fit, "time": compare_epochs}[options.command](options)


if __name__ == "__main__":
    main()
