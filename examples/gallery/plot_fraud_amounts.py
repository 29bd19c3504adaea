"""
Fraud: amounts known when deciding
==================================
A missed fraud costs its amount, an alert five euros of work. The amount of a new payment is known,
so each payment has its own cost matrix, in training and in prediction.
"""

# %%
# One payment in thirty is fraud. The data are simulated; the amounts have a long tail, as real
# amounts do.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.metrics import compare_costs
from auxcst_sklearn.plotting import CostComparisonDisplay

ALERT = 5.0
X, y = make_classification(
    12000, n_informative=6, n_redundant=4, weights=[0.97], flip_y=0, class_sep=0.5, random_state=0
)
amount = np.random.default_rng(0).lognormal(4, 1.2, size=len(y))
X = np.column_stack([X, np.log(amount)])
C = binary_cost_matrices(fp_cost=ALERT, tp_cost=ALERT, fn_cost=amount, classes=[0, 1], pos_label=1)
train, test = train_test_split(np.arange(len(y)), train_size=4000, stratify=y, random_state=0)

# %%
# The network decides by these costs itself, and any other classifier by its probabilities. The
# table has the mean cost on 8,000 new payments, the difference to the network with its 95 %
# interval, and the share of alerts; ``n_networks=3`` instead of five keeps this page fast.
boosting = HistGradientBoostingClassifier(early_stopping=True, random_state=0)
models = {
    "network": CostSensitiveAuxMLP(n_networks=3, random_state=0),
    "boosting": boosting,
    "boosting, calibrated": BayesMinimumRiskClassifier(boosting, calibration="isotonic"),
    "logistic regression": LogisticRegression(max_iter=1000),
}
table = compare_costs(models, X, y, cost=C, cv=[(train, test)])
print(table[["cost", "difference", "low", "high", "share of 1"]].round(2))

# %%
# An alert is worthwhile if the probability of fraud times the amount exceeds five euros: the line
# in the left plot. There is no single threshold: large payments are checked at a small
# probability, and payments below five euros never.
network = models["network"].fit(X[train], y[train], cost=C[train])
fraud, amount, p = y[test] == 1, amount[test], network.predict_proba(X[test])[:, 1]
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.scatter(amount[~fraud], p[~fraud], s=3, color="0.6", label="good payment")
left.scatter(amount[fraud], p[fraud], s=10, color="#D55E00", label="fraud")
limit = np.geomspace(ALERT, amount.max(), 50)
left.plot(limit, ALERT / limit, color="#0072B2", label="alert above this line")
left.set(xscale="log", yscale="log", xlabel="amount (EUR)", ylabel="estimated probability of fraud")
left.set(ylim=(max(p.min(), 1e-4), 1.3))
left.legend(fontsize="small", loc="lower left")

shown = table.index.drop("always 1")
CostComparisonDisplay.from_comparison(table, ax=right, rows=shown, unit="EUR")
plt.show()

# %%
# Raising no alert, or predicting the most probable class, costs most: the decision must use the
# amounts. Boosting gains much from calibration, as often with few positives. The network has the
# lowest cost here, and no interval includes zero; on other data the order differs, see
# :doc:`/models`.
