"""
Grades: the cost grows with the distance
========================================
The classes have an order: a mistake of three grades is worse than one of one grade. A cost matrix
of absolute or squared distances expresses this.
"""

# %%
# Progression of diabetes in 442 patients, cut into five grades of equal size. With so few rows,
# all predictions are cross-validated: each patient is graded by a model that was not trained on
# this patient. Routing is not needed, because the costs are one matrix, not one row per sample.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.costs import ordinal_cost_matrix
from auxcst_sklearn.metrics import cost_difference, mean_cost

X, progression = load_diabetes(return_X_y=True)
y = np.searchsorted(np.quantile(progression, [0.2, 0.4, 0.6, 0.8]), progression)
M = ordinal_cost_matrix(5, power=2)
print(M)

# %%
# With ``cost_matrix=None`` every mistake costs 1. ``early_stopping`` keeps boosting from becoming
# overconfident on few rows.
boosting = HistGradientBoostingClassifier(early_stopping=True, random_state=0)
logistic = make_pipeline(StandardScaler(), LogisticRegression())
models = {
    "logistic, any mistake costs 1": BayesMinimumRiskClassifier(logistic),
    "logistic": BayesMinimumRiskClassifier(logistic, cost_matrix=M),
    "boosting": BayesMinimumRiskClassifier(boosting, cost_matrix=M),
    "network": CostSensitiveAuxMLP(cost_matrix=M, random_state=0),
}
grades = {name: cross_val_predict(model, X, y, cv=5) for name, model in models.items()}
for name, grade in grades.items():
    print(
        f"{name:30s} squared distance {mean_cost(y, grade, cost_matrix=M):.2f}, "
        f"right {np.mean(grade == y):.0%}, off by two or more {np.mean(abs(grade - y) > 1):.0%}"
    )
print(cost_difference(y, grades["network"], grades["logistic"], cost_matrix=M))

# %%
# Squared costs trade some exact hits for fewer grave mistakes.
fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
left = np.zeros(len(models))
colors = plt.get_cmap("viridis_r")(np.linspace(0.1, 0.9, 5))
for off, color in enumerate(colors):
    width = [100 * np.mean(abs(grade - y) == off) for grade in grades.values()]
    ax.barh(list(grades), width, left=left, color=color, label=f"{off}")
    left += width
ax.invert_yaxis()
ax.set(xlabel="patients (%), cross-validated", xlim=(0, 100))
ax.legend(
    title="grades off", ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1), fontsize="small"
)
plt.show()

# %%
# The decision by squared costs makes grave mistakes rarer. On so few rows the network does not
# cost less than logistic regression: the interval of their difference includes zero, and logistic
# regression is the sensible choice.
