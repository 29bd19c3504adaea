"""
Triage: costs move the decision boundaries
==========================================
Which patients go home, to a ward, or to intensive care? Sending home a patient in danger is worse
than occupying a bed needlessly, and a cost matrix states how much worse.
"""

# %%
# There are two vital signs, so that the decisions can be plotted; the patients are simulated.
# Costs are points of harm, agreed on by doctors: row = what the patient needs, column = where we
# send them.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.metrics import mean_cost

NAMES = ["home", "ward", "intensive care"]
HARM = np.array([[0, 1, 4], [6, 0, 2], [60, 15, 0]])
rng = np.random.default_rng(0)
y = rng.choice(3, size=4000, p=[0.7, 0.24, 0.06])
pulse = np.array([78, 95, 112])[y] + rng.normal(0, 12, len(y))
oxygen = 100 - rng.gamma(2, np.array([0.9, 1.9, 3.4])[y])
X = np.column_stack([pulse, oxygen])
X, X_test, y, y_test = train_test_split(X, y, train_size=2000, stratify=y, random_state=0)

# %%
# Pass the matrix to the constructor. ``n_networks=3`` instead of five keeps this page fast.
network = CostSensitiveAuxMLP(cost_matrix=HARM, n_networks=3, random_state=0).fit(X, y)
logistic = make_pipeline(StandardScaler(), LogisticRegression())
logistic = BayesMinimumRiskClassifier(logistic, cost_matrix=HARM).fit(X, y)
for name, send in {
    "network, least cost": network.predict(X_test),
    "logistic regression, least cost": logistic.predict(X_test),
    "network, most probable": network.predict_proba(X_test).argmax(axis=1),
}.items():
    sent_home = np.mean(send[y_test == 2] == 0)
    print(
        f"{name}: {mean_cost(y_test, send, cost_matrix=HARM):.2f} points per patient, "
        f"{sent_home:.0%} of those in danger sent home"
    )

# %%
# The plots show two decision rules for the same network. With least expected harm, fewer patients
# go home and more go to intensive care: if danger is possible, an unneeded bed is the cheaper
# mistake.
grid = np.stack(np.meshgrid(np.linspace(40, 150, 200), np.linspace(82, 100, 200)), axis=-1)
flat = grid.reshape(-1, 2)
maps = {
    "most probable": network.predict_proba(flat).argmax(axis=1),
    "least expected harm": network.predict(flat),
}
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
colors = ["#56B4E9", "#E69F00", "#D55E00"]
for ax, (title, decision) in zip(axes, maps.items()):
    ax.contourf(
        *np.moveaxis(grid, -1, 0),
        decision.reshape(200, 200),
        levels=[-0.5, 0.5, 1.5, 2.5],
        colors=colors,
        alpha=0.35,
    )
    for k, (name, color) in enumerate(zip(NAMES, colors)):
        ax.scatter(*X_test[y_test == k][:150].T, s=8, color=color, label=f"needs: {name}")
    ax.set(title=title, xlabel="pulse (beats per minute)", xlim=(40, 150), ylim=(82, 100))
axes[0].set(ylabel="oxygen saturation (%)")
axes[0].legend(fontsize="small", loc="lower left")
plt.show()

# %%
# With two signs and smooth boundaries, logistic regression with the same decision rule costs as
# little as the network. What matters here is the decision rule: predicting the most probable
# class costs nearly twice as much.
