"""
Thresholds and alert budgets
============================
What would another threshold cost? And which cases should be checked if their number is limited?
"""

# %%
# Fraud again: an alert costs 5 euros, a missed fraud its amount. See
# :ref:`sphx_glr_gallery_plot_fraud_amounts.py` for the data.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.plotting import CostThresholdDisplay

X, y = make_classification(
    12000, n_informative=6, n_redundant=4, weights=[0.97], flip_y=0, class_sep=0.5, random_state=0
)
amount = np.random.default_rng(0).lognormal(4, 1.2, size=len(y))
X = np.column_stack([X, np.log(amount)])
C = binary_cost_matrices(fp_cost=5, tp_cost=5, fn_cost=amount, classes=[0, 1], pos_label=1)
X, X_test, y, y_test, C, C_test = train_test_split(
    X, y, C, train_size=4000, stratify=y, random_state=0
)
model = CostSensitiveAuxMLP(n_networks=3, random_state=0).fit(X, y, cost=C)

# %%
# ``CostThresholdDisplay`` draws the mean cost of one threshold for all payments. The dashed line
# is the cost of deciding each payment by its own amount: no single threshold costs as little. The
# marked threshold was chosen on the plotted payments, so that its cost is optimistic.
display = CostThresholdDisplay.from_estimator(model, X_test, y_test, cost=C_test, xscale="log")
display.ax_.set_ylabel("mean cost (EUR per payment)")
plt.show()
print(f"one threshold: {display.best_cost:.2f} EUR, {display.best_alert_rate:.1%} alerts")
print(f"by the amounts: {display.bayes_cost:.2f} EUR, {display.bayes_alert_rate:.1%} alerts")

# %%
# With a budget, check the payments for which an alert is expected to save most: the difference of
# the expected costs of both decisions. Ordering by probability alone wastes checks on small
# amounts.
expected = model.predict_cost(X_test, cost=C_test)
amount_test, fraud = C_test.values[:, 1, 0], y_test == 1
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
orders = {
    "by expected saving": expected[:, 0] - expected[:, 1],
    "by probability of fraud": model.predict_proba(X_test)[:, 1],
    "by amount": amount_test,
}
budget = np.arange(1, len(y_test) + 1) / len(y_test)
shown = budget <= 0.3
for name, rank in orders.items():
    order = np.argsort(-rank)
    saved = np.cumsum(np.where(fraud, amount_test, 0)[order] - 5) / len(y_test)
    ax.plot(100 * budget[shown], saved[shown], label=name)
    print(f"saved with 1 % checked: {saved[len(y_test) // 100 - 1]:.2f} EUR per payment, {name}")
ax.axvline(1, color="0.5", linestyle=":")
ax.set(xlabel="payments checked (%)", ylabel="saved (EUR per payment)")
ax.legend(fontsize="small")
plt.show()

# %%
# A curve falls where a further check costs more than it saves: beyond about 10 % of the payments,
# further checks do not pay even in the best order. The dotted line is a budget of 1 %.
