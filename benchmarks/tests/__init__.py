"""Tests of the benchmarks and of the experiments, at sizes of no interest."""
