"""A small experiment on fully connected networks, for the tests of the paper's experiments."""

from benchmarks.paper.dense import DenseConfiguration
from benchmarks.paper.runs import RUNS

TINY = DenseConfiguration(
    *("mnist", 100, 0, "aux"),
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
    """The finished runs."""
    return (folder / RUNS).read_text().splitlines()
