"""What the speed benchmark compares: our estimators, the loop by hand, and peers.

A method is a function of a case and its cost matrix that gives an object with `fit(X, y)` and
`predict(X)`. Each imports what it needs when it is called, so that a process holds no other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.recipes import ONE_NETWORK


@dataclass(frozen=True)
class Case:
    """Rows and a network: `shape` of an example, images if it has three dimensions.

    `predict_rows` are the batches whose prediction is timed. With `all_threads` the case is also
    run on all threads.
    """

    rows: int
    shape: tuple[int, ...]
    n_classes: int
    epochs: int
    methods: tuple[str, ...]
    width: int = 256
    depth: int = 3
    predict_rows: tuple[int, ...] = ()
    all_threads: bool = False
    device: str = "cpu"

    @property
    def images(self) -> bool:
        return len(self.shape) == 3

    @property
    def batch_size(self) -> int:
        return batch_size(self.rows)


def batch_size(rows: int) -> int:
    """What our estimators choose by default."""
    return min(max(rows // 32, 16), 128)


def draw(case: Case) -> tuple[NDArray, NDArray[np.int64], NDArray[np.float64]]:
    """Examples around one centre per class, classes in turn, and a random cost matrix."""
    rng = np.random.default_rng(0)
    y = np.arange(case.rows) % case.n_classes
    if case.images:
        X = rng.integers(200, size=(case.rows, *case.shape), dtype=np.uint8)
        X += (y * 55 // case.n_classes).astype(np.uint8)[:, None, None, None]
    else:
        X = rng.standard_normal((case.rows, *case.shape), dtype=np.float32)
        centres = rng.standard_normal((case.n_classes, *case.shape), dtype=np.float32) / 2
        for rows in np.array_split(np.arange(case.rows), max(1, case.rows // 1000)):
            X[rows] += centres[y[rows]]  # in parts: a copy of X would be the peak of memory
    cost_matrix = rng.uniform(0.1, 10, (case.n_classes, case.n_classes))
    np.fill_diagonal(cost_matrix, 0)
    return X, y, cost_matrix


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: by `ONE_NETWORK`, or simply by a loss.

    Simply means without dropout and at a constant learning rate.
    """

    loss: str | None = None
    heads: bool = True

    @property
    def smoothing(self) -> float:
        """Our default, for the loop by hand."""
        return 0.0 if self.loss else 0.05

    @property
    def dropout(self) -> float:
        """That of `ONE_NETWORK`, for the loop by hand."""
        return 0.0 if self.loss else ONE_NETWORK["dropout"]


def ours(case: Case, cost_matrix: NDArray, *, recipe: Recipe) -> Any:
    """All defaults of one network but what the case and the recipe say."""
    import auxcst_sklearn.losses

    parameters: dict[str, Any] = dict(ONE_NETWORK)
    if case.images:
        rates = {"learning_rate": 3e-3, "weight_decay": 1e-2, "alpha": 0.2}
        loss = auxcst_sklearn.losses.BayesRisk()  # by its name, it has no smoothing for images
        parameters = {"n_networks": 1, "temperature": 1.0, "loss": loss, **rates}
    if not recipe.heads:
        parameters["alpha"] = 0
    if recipe.loss:
        parameters.update(loss=recipe.loss, schedule="constant")
    if not case.images:
        dropout = {"dropout": 0.0} if recipe.loss else {}
        parameters.update(depth=case.depth, width=case.width, **dropout)
    network = "CostSensitiveAuxCNN" if case.images else "CostSensitiveAuxMLP"
    parameters |= {"max_epochs": case.epochs, "device": case.device}
    return getattr(auxcst_sklearn, network)(cost_matrix=cost_matrix, random_state=0, **parameters)


class Raw:
    """The loop by hand behind `fit` and `predict`."""

    def __init__(self, case: Case, cost_matrix: NDArray, *, recipe: Recipe) -> None:
        import torch

        from benchmarks.speed import raw_loop

        self.torch, self.loop = torch, raw_loop
        self.case, self.recipe = case, recipe
        self.loss = recipe.loss or "cross_entropy"
        self.cost_matrix = self._on_device(cost_matrix.astype(np.float32))

    def _on_device(self, array: NDArray) -> Any:
        return self.torch.from_numpy(array).to(self.case.device)

    def fit(self, X: NDArray, y: NDArray) -> Raw:
        self.torch.manual_seed(0)
        self._train(self._on_device(X), self._on_device(y))
        return self

    def _train(self, x: Any, label: Any) -> None:
        network = make_network(self.case, self.recipe)
        self.network = network.to(self.case.device)
        self.history = self.loop.train(
            self.network,
            x,
            label,
            self.loop.make_loss(self.loss, self.cost_matrix, self.recipe.smoothing),
            epochs=self.case.epochs,
            batch_size=batch_size(len(x)),
            one_cycle=self.recipe.loss is None,
        )

    def predict(self, X: NDArray) -> NDArray:
        choice = self.loop.predict(
            self.network, self._on_device(X), self.cost_matrix, loss=self.loss
        )
        return choice.cpu().numpy()


def make_network(case: Case, recipe: Recipe) -> Any:
    """The module of the loop by hand."""
    from benchmarks.speed.raw_loop import CNN, MLP

    if case.images:
        return CNN(case.shape, case.n_classes, heads=recipe.heads)
    return MLP(
        *case.shape,
        case.n_classes,
        width=case.width,
        depth=case.depth,
        heads=recipe.heads,
        dropout=recipe.dropout,
    )


def skorch(case: Case, cost_matrix: NDArray) -> Any:
    """skorch as it comes, without its held-out fifth of the rows and its table of epochs."""
    import torch
    from skorch import NeuralNetClassifier

    return NeuralNetClassifier(
        make_network(case, RECIPES["-ce-plain"]),
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.AdamW,
        lr=1e-3,
        optimizer__weight_decay=1e-2,
        max_epochs=case.epochs,
        batch_size=case.batch_size,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
        device=case.device,
    )


def mlp(case: Case, cost_matrix: NDArray) -> Any:
    """scikit-learn's network, with Adam, for all epochs."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    warnings.simplefilter("ignore", ConvergenceWarning)
    return MLPClassifier(
        [case.width] * case.depth,
        batch_size=case.batch_size,
        max_iter=case.epochs,
        n_iter_no_change=case.epochs + 1,
        random_state=0,
    )


def boosting(case: Case, cost_matrix: NDArray) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(early_stopping=False, random_state=0)


def logistic(case: Case, cost_matrix: NDArray) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


class AllPairs:
    """costsensitive.WeightedAllPairs, which needs three classes, behind `fit(X, y)`."""

    def __init__(self, case: Case, cost_matrix: NDArray, *, base: Callable) -> None:
        from costsensitive import WeightedAllPairs

        self.cost_matrix = cost_matrix
        self.model = WeightedAllPairs(base(case, cost_matrix), njobs=1)

    def fit(self, X: NDArray, y: NDArray) -> AllPairs:
        self.model.fit(X, self.cost_matrix[y])
        return self

    def predict(self, X: NDArray) -> NDArray:
        return self.model.predict(X)


RECIPES = {
    "": Recipe(),
    "-plain": Recipe(heads=False),
    "-one-sided": Recipe("one_sided"),
    "-one-sided-plain": Recipe("one_sided", heads=False),
    "-ce-plain": Recipe("cross_entropy", heads=False),
}

METHODS: dict[str, Callable[[Case, NDArray], Any]] = {
    **{f"ours{name}": partial(ours, recipe=recipe) for name, recipe in RECIPES.items()},
    **{f"raw{name}": partial(Raw, recipe=recipe) for name, recipe in RECIPES.items()},
    "skorch": skorch,
    "mlp": mlp,
    "boosting": boosting,
    "allpairs-logistic": partial(AllPairs, base=logistic),
    "allpairs-boosting": partial(AllPairs, base=boosting),
}

if find_spec("costsensitive") is None:
    METHODS = {name: method for name, method in METHODS.items() if "allpairs" not in name}


def is_network(method: str) -> bool:
    """Whether a method trains a network; of the others only the fit on one thread is timed."""
    return not method.startswith(("boosting", "allpairs"))


def reference(method: str) -> str:
    """The loop by hand that a method is compared with; peers have neither heads nor costs."""
    return method.replace("ours", "raw") if method.startswith(("ours", "raw")) else "raw-ce-plain"
