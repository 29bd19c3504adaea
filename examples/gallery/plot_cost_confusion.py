"""
Which mistakes cost most
========================
Counts of mistakes do not show what the mistakes cost. ``CostConfusionDisplay`` shows the cost of
each kind of mistake.
"""

# %%
# Digits are read from forms, and a wrong digit costs its distance from the true one in euros: 9
# for 0 costs nine, 8 for 9 costs one. Half of the images are used for training.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.costs import ordinal_cost_matrix
from auxcst_sklearn.metrics import cost_difference
from auxcst_sklearn.plotting import CostConfusionDisplay

X, y = load_digits(return_X_y=True)
M = ordinal_cost_matrix(10)
X, X_test, y, y_test = train_test_split(X, y, train_size=0.5, stratify=y, random_state=0)
logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
models = {
    "logistic regression": BayesMinimumRiskClassifier(logistic, cost_matrix=M),
    "network": CostSensitiveAuxMLP(cost_matrix=M, random_state=0),
}

# %%
# Each cell shows the cost in euros. Correct digits are on the diagonal and cost nothing. Colours
# are relative to the most expensive cell of each model.
fig, axes = plt.subplots(1, 2, figsize=(12, 5.6), layout="constrained")
read = {}
for ax, (name, model) in zip(axes, models.items()):
    read[name] = model.fit(X, y).predict(X_test)
    display = CostConfusionDisplay.from_predictions(
        y_test, read[name], cost_matrix=M, colorbar=False, ax=ax
    )
    paid = display.confusion_matrix
    ax.set_title(f"{name}: {paid.sum():.0f} EUR", fontsize="medium")
    print(f"{name}: {np.mean(read[name] != y_test):.1%} wrong, {paid.sum():.0f} EUR in all")
    worst = np.unravel_index(paid.argmax(), M.shape)
    n = paid[worst] / M[worst]
    print(f"  most expensive: {worst[0]} read as {worst[1]}, {n:.0f} times {M[worst]:.0f} EUR")
plt.show()

# %%
# The difference between the two models on the same digits, with its 95 % interval:
print(cost_difference(y_test, read["network"], read["logistic regression"], cost_matrix=M))

# %%
# The interval is below zero: the network costs less. For both models the most expensive cell is
# an 8 that is read as 1. Two such digits cause a quarter of the network's total cost.
