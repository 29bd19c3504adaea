"""The options that the experiments share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from auxcst_sklearn.losses import LOSSES
from benchmarks.common import options
from benchmarks.paper.dense import DATASETS


def make_parser(doc: str) -> argparse.ArgumentParser:
    """The options that all experiments have."""
    parser = options.make_parser(
        doc, data_home=None, seeds=[0, 1, 2], n_jobs=os.cpu_count(), out=Path("out")
    )
    add = parser.add_argument
    add("--epochs", type=int, default=20, help="passes over the training set, at most")
    add("--loss", choices=list(LOSSES), default="one_sided", help="of the cost-sensitive networks")
    add("--device", default="auto", help="cpu, cuda ...; auto takes a GPU if there is one")
    return parser


def make_dense_parser(doc: str) -> argparse.ArgumentParser:
    """The options of all experiments on fully connected networks."""
    parser = make_parser(doc)
    add = parser.add_argument
    add("--datasets", nargs="+", choices=DATASETS, default=DATASETS, metavar="NAME", help="names")
    add("--train-size", type=int, help="training examples, before thinning out; None for all")
    add("--width", type=int, default=1024, help="neurons of each hidden layer")
    return parser


def add_grid_options(parser: argparse.ArgumentParser) -> None:
    """The options of experiments over a grid of networks."""
    parser.add_argument("--depths", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument(
        "--early-stopping",
        action="store_true",
        help="keep the epoch that costs least on a fifth of the training set",
    )
