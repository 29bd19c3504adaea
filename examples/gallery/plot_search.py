"""
Reading a search over alpha and depth
=====================================
How much weight should the auxiliary heads have, and how many layers does the network need? A search
compares the cost on held-out rows.
"""

# %%
# Costs differ from payment to payment, and are a function of the amount, the last column. With this
# function as ``cost_matrix``, the search scores by minus the mean cost.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.costs import binary_cost_matrices

X, y = make_classification(
    1500, n_informative=8, weights=[0.9], flip_y=0, class_sep=0.7, random_state=0
)
X = np.column_stack([X, np.random.default_rng(0).lognormal(4, 1, size=len(y))])


def costs(X):
    terms = {"fp_cost": 5, "tp_cost": 5, "fn_cost": X[:, -1]}
    return binary_cost_matrices(**terms, classes=[0, 1], pos_label=1)


# %%
# One small network instead of five, and twelve epochs, keep this page fast.
quick = {"width": 64, "n_networks": 1, "max_epochs": 12, "early_stopping": False}
network = CostSensitiveAuxMLP(cost_matrix=costs, random_state=0, **quick)
grid = {"alpha": [0, 0.2, 0.5], "depth": [2, 5]}
search = GridSearchCV(network, grid, cv=3, error_score="raise").fit(X, y)
scaled = make_pipeline(StandardScaler(), LogisticRegression())
logistic = BayesMinimumRiskClassifier(scaled, cost_matrix=costs)
rival = -cross_val_score(logistic, X, y, cv=3).mean()
print(f"best: {-search.best_score_:.2f} EUR with {search.best_params_}")
print(f"logistic regression with Bayes decision: {rival:.2f} EUR")

# %%
# ``cv_results_`` has the scores, minus the costs. All candidates are evaluated on the same folds,
# so the mean of a fold over the candidates is subtracted before the standard errors: they apply to
# differences between candidates. If bars overlap, the choice hardly matters. The cost of the best
# candidate is optimistic, because it was chosen on these folds.
results = search.cv_results_
cost = -np.array([results[f"split{k}_test_score"] for k in range(search.n_splits_)])
error = (cost - cost.mean(axis=1, keepdims=True)).std(axis=0, ddof=1) / np.sqrt(len(cost))
fig, ax = plt.subplots(layout="constrained")
for depth in grid["depth"]:
    of_depth, alpha = results["param_depth"] == depth, results["param_alpha"]
    bars = {"fmt": "o-", "capsize": 4, "label": f"{depth} layers"}
    ax.errorbar(alpha[of_depth], cost.mean(axis=0)[of_depth], error[of_depth], **bars)
ax.axhline(rival, color="0.5", linestyle=":", label="logistic regression")
ax.set(xlabel="alpha", ylabel="cross-validated cost (EUR per payment)")
fig.legend(loc="outside upper center", ncols=3)
plt.show()

# %%
# Two layers are cheaper than five here, but the bars of different alphas overlap: three folds show
# no effect of the weight of the heads. All of these networks cost less than logistic regression.
