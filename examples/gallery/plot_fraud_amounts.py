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
from auxcst_sklearn.metrics import cost_difference, mean_cost

ALERT = 5.0
X, y = make_classification(
    12000, n_informative=6, n_redundant=4, weights=[0.97], flip_y=0, class_sep=0.5, random_state=0
)
amount = np.random.default_rng(0).lognormal(4, 1.2, size=len(y))
X = np.column_stack([X, np.log(amount)])
C = binary_cost_matrices(fp_cost=ALERT, tp_cost=ALERT, fn_cost=amount, classes=[0, 1], pos_label=1)
X, X_test, y, y_test, C, C_test = train_test_split(
    X, y, C, train_size=4000, stratify=y, random_state=0
)

# %%
# Any classifier with probabilities can decide by these costs: ``BayesMinimumRiskClassifier``
# takes the cheaper decision for each payment. The network does so without a wrapper;
# ``n_networks=3`` instead of five keeps this page fast.
boosting = HistGradientBoostingClassifier(early_stopping=True, random_state=0)
models = {
    "network": CostSensitiveAuxMLP(n_networks=3, random_state=0),
    "boosting": BayesMinimumRiskClassifier(boosting),
    "boosting, calibrated": BayesMinimumRiskClassifier(boosting, calibration="isotonic"),
    "logistic regression": BayesMinimumRiskClassifier(LogisticRegression(max_iter=1000)),
}
decisions = {name: m.fit(X, y, cost=C).predict(X_test, cost=C_test) for name, m in models.items()}
decisions["boosting, most probable"] = models["boosting"].predict_proba(X_test).argmax(axis=1)
decisions["no alert"] = np.zeros(len(y_test), dtype=int)
for name, alert in decisions.items():
    print(f"{mean_cost(y_test, alert, cost=C_test):.2f} EUR per payment: {name}")

# %%
# An alert is worthwhile if the probability of fraud times the amount exceeds five euros: the line
# in the left plot. There is no single threshold: large payments are checked at a small
# probability, and payments below five euros never.
fraud = y_test == 1
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
amount_test, p = C_test[:, 1, 0], models["network"].predict_proba(X_test)[:, 1]
left.scatter(amount_test[~fraud], p[~fraud], s=3, color="0.6", label="good payment")
left.scatter(amount_test[fraud], p[fraud], s=10, color="#D55E00", label="fraud")
limit = np.geomspace(ALERT, amount_test.max(), 50)
left.plot(limit, ALERT / limit, color="#0072B2", label="alert above this line")
left.set(xscale="log", yscale="log", xlabel="amount (EUR)", ylabel="estimated probability of fraud")
left.set(ylim=(max(p.min(), 1e-4), 1.3))
left.legend(fontsize="small", loc="lower left")

others = [name for name in decisions if name != "network"]
found = [
    cost_difference(y_test, decisions[name], decisions["network"], cost=C_test) for name in others
]
mean, low, high = np.array(found).T
right.errorbar(mean, others, xerr=[mean - low, high - mean], fmt="o", capsize=4, color="#0072B2")
right.axvline(0, color="0.5", linewidth=0.8)
right.invert_yaxis()
right.set(xlabel="costs more than the network (EUR per payment)")
fig.suptitle("8,000 new payments; bars: 95 % intervals of paired differences", fontsize="medium")
plt.show()

# %%
# Raising no alert, or predicting the most probable class, costs most: the decision must use the
# amounts. Boosting gains much from calibration, as often with few positives. The network has the
# lowest cost here, and no interval includes zero; on other data the order differs, see
# :doc:`/models`.
