"""Search the weight of the auxiliary heads (alpha) and the number of layers (depth) by cost.

The payments are simulated: an alert costs EUR 5, and a missed fraud its amount, which is known when
deciding. The search fits one network for each setting and fold; the best setting is then fitted
with all networks. ``python examples/search_alpha_depth.py out`` writes the figure to ``out``.
"""

import sys
import time
from pathlib import Path

import joblib
import matplotlib
import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, train_test_split

from auxcst_sklearn import CostSensitiveAuxMLP, CSAEPretrainedMLP
from auxcst_sklearn.costs import binary_cost_matrices

start = time.perf_counter()

# Your own rows, labels and costs take the place of these lines.
X, y = make_classification(12_000, n_informative=8, weights=[0.9], flip_y=0, random_state=0)
amount = np.random.default_rng(0).lognormal(4, 0.6, size=len(y))
X = np.column_stack([X, amount])
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=2000, stratify=y, random_state=0
)


def costs(X):
    """The amount is the last column."""
    return binary_cost_matrices(fp_cost=5, tp_cost=5, fn_cost=X[:, -1], classes=[0, 1], pos_label=1)


network = CostSensitiveAuxMLP(cost_matrix=costs, n_networks=1, batch_size=128, random_state=0)
grid = {"alpha": [0, 0.2, 0.5, 1], "depth": [3, 5, 8]}
search = GridSearchCV(network, grid, cv=3, error_score="raise")
with joblib.parallel_config(n_jobs=2, verbose=1):  # a line of progress
    search.fit(X_train, y_train)

best = clone(search.best_estimator_).set_params(n_networks="auto")
models = {
    "best setting, all networks": best,
    "the same without heads, alpha=0": clone(best).set_params(alpha=0),
    "default setting, all networks": clone(best).set_params(alpha=0.2, depth=3),
    "CSAEPretrainedMLP": CSAEPretrainedMLP(loss="bayes_risk", cost_matrix=costs, random_state=0),
}
folds = -np.array([search.cv_results_[f"split{k}_test_score"] for k in range(3)])
cost = folds.mean(axis=0).reshape(4, 3)  # alpha by depth
# All settings share the folds, so that the error is of differences between settings.
error = (folds - folds.mean(axis=1, keepdims=True)).std(axis=0, ddof=1).reshape(4, 3) / 3**0.5
print("\ncross-validated EUR a payment, one network\nalpha   3 layers  5 layers  8 layers")
for alpha, of_alpha in zip([0, 0.2, 0.5, 1], cost):
    print(f"{alpha:5}" + "".join(f"{value:10.2f}" for value in of_alpha))
print("\nEUR a payment, 10,000 new payments")
print(f"{-search.score(X_test, y_test):.2f}  best setting, one network")
for name, model in models.items():
    model.fit(X_train, y_train)
    print(f"{-model.score(X_test, y_test):.2f}  {name}")

matplotlib.use("agg")  # draws to a file, without a display
from matplotlib import pyplot as plt  # noqa: E402

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for depth, of_depth, errors in zip([3, 5, 8], cost.T, error.T):
    alpha = np.array([0, 0.2, 0.5, 1]) + (depth - 5) / 250  # bars beside each other
    ax.errorbar(alpha, of_depth, errors, fmt="o-", capsize=3, label=f"{depth} layers")
ax.set(xlabel="alpha, weight of the auxiliary heads", ylabel="EUR a payment, 3 folds")
ax.legend(frameon=False)
path = Path(sys.argv[1] if len(sys.argv) > 1 else "out") / "search_alpha_depth.png"
path.parent.mkdir(parents=True, exist_ok=True)
figure.savefig(path, dpi=110)
print(f"Figure: {path}; {time.perf_counter() - start:.0f} seconds.")
