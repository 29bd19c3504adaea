"""
The same model under five different prices
==========================================
Prices change more often than data. With the default loss, costs are used only in the decision, so
that a new price needs no new training.
"""

# %%
# A pump is fine, worn or failing, and we leave it, service it, or replace it. A service costs 100
# euros, a new pump 1,000. A breakdown costs between 2,000 and 40,000 euros, depending on where
# the pump is.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.metrics import mean_cost

PRICES = np.array([2000, 4000, 10000, 20000, 40000])


def cost_matrix(breakdown):
    """Row: fine, worn, failing; column: leave it, service it, replace it."""
    return np.array([[0, 100, 1000], [0.1 * breakdown, 100, 1000], [breakdown, breakdown, 1000]])


X, y = make_classification(
    8000, n_informative=8, n_classes=3, weights=[0.8, 0.15, 0.05], class_sep=0.8, random_state=0
)
X, X_test, y, y_test = train_test_split(X, y, train_size=3000, stratify=y, random_state=0)

# %%
# The models are fitted once, without costs. The product of probabilities and cost matrix gives
# the expected costs of the three decisions; a new price changes only the matrix.
network = CostSensitiveAuxMLP(n_networks=3, random_state=0).fit(X, y)
boosting = HistGradientBoostingClassifier(early_stopping=True, random_state=0).fit(X, y)
chances = {"network": network.predict_proba(X_test), "boosting": boosting.predict_proba(X_test)}
paid = {name: [] for name in [*chances, "network, most probable"]}
for price in PRICES:
    M = cost_matrix(price)
    choices = {name: (p @ M).argmin(axis=1) for name, p in chances.items()}
    choices["network, most probable"] = chances["network"].argmax(axis=1)
    for name, choice in choices.items():
        paid[name].append(mean_cost(y_test, choice, cost_matrix=M))
for name, costs in paid.items():
    print(f"{name:24s}", *(f"{cost:8.1f}" for cost in costs))

# %%
# Training again with a price gives the same decisions:
anew = CostSensitiveAuxMLP(cost_matrix=M, n_networks=3, random_state=0).fit(X, y)
print(np.array_equal(anew.predict(X_test), choices["network"]))

# %%
# The decisions follow the price: the more expensive a breakdown, the fewer pumps are left alone.
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for (name, costs), style in zip(paid.items(), ["o-", "s-", "^--"]):
    left.plot(PRICES, costs, style, label=name)
left.set(xscale="log", xlabel="cost of a breakdown (EUR)", ylabel="mean cost (EUR per pump)")
left.set(ylim=(0, None), title="cost of the decisions")
left.set_xticks(PRICES, [f"{price:,}" for price in PRICES])
left.minorticks_off()
left.legend(fontsize="small")
bottom = np.zeros(len(PRICES))
for k, (decision, color) in enumerate(zip(["leave", "service", "replace"], ["C0", "C1", "C3"])):
    share = [
        100 * np.mean((chances["network"] @ cost_matrix(p)).argmin(axis=1) == k) for p in PRICES
    ]
    right.bar([f"{p:,}" for p in PRICES], share, bottom=bottom, color=color, label=decision)
    bottom += share
right.set(xlabel="cost of a breakdown (EUR)", ylabel="pumps (%)", title="decisions of one network")
right.legend(fontsize="small", loc="lower left")
plt.show()

# %%
# The network costs less than boosting at each of the five prices. The most probable class is
# hardly worse at the lowest price, and costs more than twice as much at the highest.
