"""Distributed training of one model; to be run by torchrun.

torchrun --standalone --nproc-per-node 2 examples/torchrun_fit.py

On several machines, pass --nnodes and --rdzv-endpoint to torchrun; this file need not change.
"""

from __future__ import annotations

import argparse

import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.costs import randomized_proportional_cost_matrix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    n_rows = parser.parse_args().rows
    torch.distributed.init_process_group()  # gloo on CPUs, nccl on GPUs
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()

    # Every process has the whole data, and takes its part of each batch.
    X, y = make_classification(n_rows, 30, n_informative=12, n_classes=5, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    costs = randomized_proportional_cost_matrix(y_train, random_state=0)
    model = CostSensitiveAuxMLP(
        cost_matrix=costs, batch_size=256, max_epochs=10, random_state=0, verbose=1
    ).fit(X_train, y_train)

    if rank == 0:  # all have the same model now
        print(f"{size} processes: mean cost {-model.score(X_test, y_test):.4f}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
