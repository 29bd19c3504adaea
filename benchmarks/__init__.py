"""What the estimators cost and how fast they are, and the experiments of the paper.

Run a module from the root of the repository: ``python -m benchmarks.cost.bench_cost --help``.
"""
