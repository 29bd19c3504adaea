"""
What every hidden layer estimates
=================================
Each hidden layer has a head of its own that estimates the costs. Its losses show how training
went, and its decisions from which layer on the answer is clear.
"""

# %%
# Digits, and a wrong digit costs as many euros as it is off. A network of four layers, deeper
# than the task needs, so that there is something to see; one network in place of five, which
# keeps the losses of one training.
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
# ``part="both"`` draws the loss of the training rows and, dashed, that of the rows held out.
# Held-out curves that rise while the others fall would mean overfitting.
display = LayerLossDisplay.from_estimator(model, part="both")
display.ax_.set_yscale("log")
plt.show()

# %%
# ``staged_predict_cost`` yields the estimates of each head. The error bars are standard errors
# over the test digits; they are those of the same digits, so that differences between layers are
# more certain than the bars suggest.
rows = np.arange(len(y_test))
paid = np.array([M[y_test, digit] for digit in model.staged_predict(X_test)])
expected = [np.mean(cost.min(axis=1)) for cost in model.staged_predict_cost(X_test)]
names = [*(f"hidden {k}" for k in range(1, len(paid))), "output"]
error = paid.std(axis=1, ddof=1) / np.sqrt(len(rows))
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.errorbar(names, paid.mean(axis=1), error, fmt="o-", capsize=4, label="paid")
ax.plot(names, expected, "s--", label="expected by the head itself")
ax.set(ylabel="EUR a digit, test digits", ylim=(0, None))
ax.legend(fontsize="small")
plt.show()
for name, cost, guess in zip(names, paid.mean(axis=1), expected):
    print(f"{name}: paid {cost:.3f} EUR a digit, expected {guess:.3f}")

# %%
# On this task the first layer decides about as cheaply as the output: the bars overlap. Its
# estimates are less sure: the first head expects to pay far more than it does. The deeper the
# head, the closer its estimate comes.
