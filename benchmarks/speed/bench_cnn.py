"""What `CostSensitiveAuxCNN` adds to its module: an epoch, a prediction, and a single image.

The same `ResidualCNN` by a loop of plain torch, in turns, CPU seconds of one thread; medians of the
ratios go to ``--out``/cnn_speed.json. 2,000 images of 32 x 32 pixels; no augmentation, no heads.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

from auxcst_sklearn import CostSensitiveAuxCNN
from auxcst_sklearn.modules import ResidualCNN
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance

N, N_CLASSES, SHAPE, BATCH = 2000, 10, (3, 32, 32), 60


def seconds(do: Callable[[], Any]) -> float:
    start = time.process_time()
    do()
    return time.process_time() - start


def plain_epochs(module: Any, X: torch.Tensor, y: torch.Tensor, n_epochs: int) -> None:
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01, weight_decay=0.5, fused=True)
    module.train()
    for _ in range(n_epochs):
        for rows in torch.randperm(len(X)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(module(X[rows]), y[rows]).backward()
            optimizer.step()
    module.eval()


def measured(seed: int) -> dict[str, float]:
    """Ratios of an epoch and of a prediction, and what a single image takes in addition."""
    rng = np.random.RandomState(seed)
    X = rng.rand(N, *SHAPE).astype(np.float32)
    y = rng.randint(N_CLASSES, size=N)
    x, label = torch.from_numpy(X), torch.from_numpy(y)
    module: Any = ResidualCNN(SHAPE, N_CLASSES).to(memory_format=torch.channels_last)
    known: dict[str, Any] = {"alpha": 0, "temperature": 1.0, "batch_size": BATCH}

    def fit(n_epochs: int) -> CostSensitiveAuxCNN:
        return CostSensitiveAuxCNN(max_epochs=n_epochs, random_state=seed, **known).fit(X, y)

    plain_epochs(module, x[:BATCH], label[:BATCH], 1)  # what the first use takes
    model = fit(1)
    ours = seconds(lambda: fit(3)) - seconds(lambda: fit(1))
    plain = seconds(lambda: plain_epochs(module, x, label, 2))
    with torch.inference_mode():
        by_module = seconds(lambda: [module(part) for part in x.split(BATCH)])
        by_model = seconds(lambda: model.predict_proba(X))
        one_of_module = seconds(lambda: [module(x[:1]) for _ in range(100)]) / 100
        one_of_model = seconds(lambda: [model.predict_proba(X[:1]) for _ in range(100)]) / 100
    return {
        "epoch": ours / plain,
        "prediction": by_model / by_module,
        "one_image_ms": 1000 * (one_of_model - one_of_module),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, seeds=[0, 1, 2, 3, 4], out=RESULTS)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rounds = [measured(seed) for seed in options.seeds]
    medians = {key: float(np.median([one[key] for one in rounds])) for key in rounds[0]}
    print(medians)
    write_json(
        options.out / "cnn_speed.json", provenance() | {"medians": medians, "rounds": rounds}
    )


if __name__ == "__main__":
    main()
