"""The options that the experiments share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from auxcst_sklearn import PAPER
from auxcst_sklearn.losses import LOSSES
from benchmarks.common import options
from benchmarks.paper.draws import DATASETS


def make_parser(doc: str) -> argparse.ArgumentParser:
    """The options that all experiments have."""
    parser = options.make_parser(
        doc,
        data_home=options.DATA_HOME,
        seeds=[0, 1, 2, 3, 4],
        n_jobs=os.cpu_count(),
        out=Path("out"),
    )
    add = parser.add_argument
    add("--epochs", type=int, default=20, help="passes over the training set, at most")
    add(
        "--loss", choices=list(LOSSES), default=PAPER["loss"], help="of the cost-sensitive networks"
    )
    add("--finished", action="store_true", help="report what is finished, and run nothing")
    add("--device", default="auto", help="cpu, cuda ...; auto takes a GPU if there is one")
    return parser


def make_dense_parser(doc: str) -> argparse.ArgumentParser:
    """The options of all experiments on fully connected networks."""
    parser = make_parser(doc)
    add = parser.add_argument
    add("--datasets", nargs="+", choices=DATASETS, default=DATASETS, metavar="NAME", help="names")
    add("--train-size", type=int, help="training examples, before thinning out; None for all")
    add("--width", type=int, default=1024, help="neurons of each hidden layer")
    add("--activation", default=PAPER["activation"], help="of hidden layers: relu, sigmoid ...")
    add("--start", choices=["authors"], help="of sigmoid layers; None as an nn.Linear")
    add("--optimizer", default=PAPER["optimizer"], help="of all networks: sgd, adamw ...")
    add(
        "--learning-rates",
        nargs="+",
        type=float,
        default=[PAPER["learning_rate"]],
        help="of several, each network gets the one that costs least on held-out training rows",
    )
    add("--tuning-seed", type=int, default=100, help="draws what rates are chosen on")
    add("--early-stopping", action="store_true", help="keep the epoch of least held-out cost")
    return parser


def add_depths(parser: argparse.ArgumentParser) -> None:
    """The option of experiments with networks of several depths."""
    add = parser.add_argument
    add("--depths", nargs="+", type=int, default=[1, 2, 3, 4, 5, 6, 7, 8], help="hidden layers")
