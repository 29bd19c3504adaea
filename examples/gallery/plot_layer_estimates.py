"""
What each hidden layer estimates
================================
Each hidden layer has its own head that estimates the costs. The losses of the heads show the
progress of training, and their decisions show at which layer the answer becomes clear.
"""

# %%
# A wrong digit costs its distance from the true one in euros. The network has four layers, more
# than the task needs, to show differences between layers. With one network instead of five, the
# losses are those of a single training.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.costs import ordinal_cost_matrix
from auxcst_sklearn.plotting import LayerLossDisplay

X, y = load_digits(return_X_y=True)
M = ordinal_cost_matrix(10)
X, X_test, y, y_test = train_test_split(X, y, train_size=0.6, stratify=y, random_state=0)
model = CostSensitiveAuxMLP(
    depth=4, width=64, alpha=0.3, cost_matrix=M, n_networks=1, max_epochs=30, random_state=0
).fit(X, y)

# %%
# Solid curves are training losses, dashed ones validation losses. Validation losses that rise while
# training losses fall would mean overfitting.
display = LayerLossDisplay.from_estimator(model)
display.ax_.set_yscale("log")
display.ax_.yaxis.set_major_formatter("{x:g}")
display.ax_.yaxis.set_minor_formatter("{x:g}")
plt.show()

# %%
# ``staged_predict_cost`` yields the estimates of each head. The error bars are standard errors
# over the test digits. All layers are evaluated on the same digits, so that differences between
# them are more certain than the bars suggest.
rows = np.arange(len(y_test))
paid = np.array([M[y_test, digit] for digit in model.staged_predict(X_test)])
expected = [np.mean(cost.min(axis=1)) for cost in model.staged_predict_cost(X_test)]
names = [*(f"hidden {k}" for k in range(1, len(paid))), "output"]
error = paid.std(axis=1, ddof=1) / np.sqrt(len(rows))
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.errorbar(names, paid.mean(axis=1), error, fmt="o-", capsize=4, label="paid")
ax.plot(names, expected, "s--", label="expected by the head itself")
ax.set(ylabel="EUR per digit, test digits", ylim=(0, None))
ax.legend(fontsize="small")
plt.show()
for name, cost, guess in zip(names, paid.mean(axis=1), expected):
    print(f"{name}: paid {cost:.3f} EUR per digit, expected {guess:.3f}")

# %%
# On this task the decisions of the first layer cost about as much as those of the output: the
# bars overlap. Its estimates are less accurate: the expected cost of the first head is far above
# its actual cost. Deeper heads have more accurate estimates.
