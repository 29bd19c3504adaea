"""
Triage: four findings, three decisions
======================================
A patient has one of four findings, and is sent home, seen again tomorrow, or admitted. The
decisions are not the classes; a table of costs connects them, and beds are limited.
"""

# %%
# There are two vital signs, so that the decisions can be plotted; the patients are simulated.
# Costs are points of harm, agreed on by doctors. The index of the table contains the findings, its
# columns are the decisions.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.decisions import shadow_prices
from auxcst_sklearn.metrics import mean_cost

HARM = pd.DataFrame(
    {"home": [0, 2, 15, 60], "tomorrow": [1, 0, 5, 30], "admit": [5, 4, 1, 0]},
    index=["well", "cold", "pneumonia", "sepsis"],
)
rng = np.random.default_rng(0)
finding = rng.choice(4, size=4000, p=[0.6, 0.25, 0.11, 0.04])
pulse = np.array([76, 84, 98, 114])[finding] + rng.normal(0, 11, len(finding))
oxygen = 100 - rng.gamma(2, np.array([0.8, 1.1, 2.8, 3.2])[finding])
X = np.column_stack([pulse, oxygen])
X, X_test, y, y_test = train_test_split(
    X, HARM.index.to_numpy()[finding], train_size=2000, stratify=finding, random_state=0
)

# %%
# ``decide`` takes the decision of least expected harm. The habit is to treat patients for the most
# probable finding, with the best decision for it.
network = CostSensitiveAuxMLP(cost_matrix=HARM, n_networks=3, random_state=0).fit(X, y)
logistic = make_pipeline(StandardScaler(), LogisticRegression())
logistic = BayesMinimumRiskClassifier(logistic, cost_matrix=HARM).fit(X, y)
treat = HARM.idxmin(axis=1)  # the best decision for each finding


def most_probable(rows):
    return treat[network.classes_[network.predict_proba(rows).argmax(axis=1)]].to_numpy()


for name, decided in {
    "network": network.decide(X_test),
    "logistic regression": logistic.decide(X_test),
    "network, most probable finding": most_probable(X_test),
}.items():
    home = np.mean(decided[y_test == "pneumonia"] == "home")
    harm = mean_cost(y_test, decided, cost_matrix=HARM)
    print(f"{name}: {harm:.2f} points per patient, {home:.0%} of those with pneumonia sent home")

# %%
# If there are beds for 150 of these 2,000 patients, those get one who gain most, and the next best
# decision is taken for the others. The shadow price is the harm that one more bed would prevent.
beds = {"admit": 150}
print("admitted without a limit:", np.count_nonzero(network.decide(X_test) == "admit"))
limited = network.decide(X_test, capacity=beds)
print(f"with 150 beds: {mean_cost(y_test, limited, cost_matrix=HARM):.2f} points per patient")
print(shadow_prices(network.predict_cost(X_test), beds, decisions=network.decisions_))

# %%
# The plots show two decision rules for the same network.
grid = np.stack(np.meshgrid(np.linspace(40, 150, 200), np.linspace(86, 100, 200)), axis=-1)
flat = grid.reshape(-1, 2)
maps = {"most probable finding": most_probable(flat), "least expected harm": network.decide(flat)}
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
colors = ["#56B4E9", "#E69F00", "#D55E00"]
for ax, (title, decided) in zip(axes, maps.items()):
    place = pd.Index(HARM.columns).get_indexer(decided).reshape(200, 200)
    levels = [-0.5, 0.5, 1.5, 2.5]
    ax.contourf(*np.moveaxis(grid, -1, 0), place, levels=levels, colors=colors, alpha=0.4)
    for name, marker in zip(HARM.index, "o^sD"):
        shown = X_test[y_test == name][:80]
        ax.scatter(*shown.T, s=12, marker=marker, color="k", alpha=0.5, lw=0, label=name)
    ax.set(title=title, xlabel="pulse (beats per minute)", xlim=(40, 150), ylim=(86, 100))
areas = [plt.Rectangle((0, 0), 1, 1, color=color, alpha=0.4) for color in colors]
axes[0].legend(areas, HARM.columns, fontsize="small", loc="lower left")
axes[1].legend(fontsize="small", loc="lower left")
axes[0].set(ylabel="oxygen saturation (%)")
plt.show()

# %%
# With least expected harm, fewer patients go home and more are seen again: a visit is cheap beside
# pneumonia that is missed. Logistic regression with the same decisions costs about as much as the
# network here; treating the most probable finding costs a quarter more.
