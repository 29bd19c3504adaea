"""A small experiment on fully connected networks, for the tests of the paper's experiments."""

from benchmarks.common.ledger import Ledger
from benchmarks.paper.dense import DenseConfiguration
from benchmarks.paper.runs import RUNS

TINY = DenseConfiguration(
    "mnist",
    100,
    0,
    "aux",
    depth=2,
    width=4,
    epochs=2,
    loss="squared",
    activation="relu",
    optimizer="sgd",
    learning_rate=0.1,
    alpha=0.2,
)


def lines(folder):
    """The finished runs, as they stand in the file."""
    return (folder / RUNS).read_text().splitlines()


def finished(folder):
    """Identity and result of the finished runs."""
    return list(Ledger(folder / RUNS).runs.values())
