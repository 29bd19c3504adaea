"""
Credit limits: costs known for past rows only
=============================================
A bank grants a limit of 0, 1,000, 3,000 or 10,000 euros. For past customers it is known what each
limit would have earned or lost; for a new customer it is not. The network therefore learns to
estimate the costs from the features.
"""

# %%
# A customer who pays earns the bank 12 % of the amount used; one who defaults costs it 60 % of
# the limit. Every limit costs 1 % of its amount. The cost of a decision is the profit of the best
# limit for this customer minus the profit of the limit granted, in euros.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.metrics import cost_difference, mean_cost

LIMITS = np.array([0, 1000, 3000, 10000])
rng = np.random.default_rng(0)
n = 9000
income = rng.lognormal(10.3, 0.5, n)
debt = rng.gamma(2, 0.2, n)
late = rng.poisson(0.6, n)
years = rng.gamma(2, 4, n)
X = np.column_stack([np.log(income), debt, late, years])
risk = 1 / (1 + np.exp(3.2 - 1.2 * late - 1.5 * debt + 0.1 * years + 0.4 * late * (debt < 0.3)))
defaults = rng.random(n) < risk
demand = 0.15 * income * rng.lognormal(0, 0.4, n)
used = np.minimum(LIMITS, demand[:, np.newaxis])
profit = np.where(defaults[:, np.newaxis], -0.6 * LIMITS, 0.12 * used) - 0.01 * LIMITS
cost = profit.max(axis=1, keepdims=True) - profit  # EUR, a column for each limit
y = LIMITS[cost.argmin(axis=1)]  # the limit that would have been best
train, test = np.arange(3000), np.arange(3000, n)

# %%
# ``cost`` of ``fit`` has a row for each customer and a column for each limit; ``predict`` takes
# no costs. The network is compared with boosting that predicts which limit was best, with the
# mean costs of these classes, and with a boosted regression of the cost of each limit.
network = CostSensitiveAuxMLP(n_networks=3, random_state=0)
network.fit(X[train], y[train], cost=cost[train])
boosting = BayesMinimumRiskClassifier(
    HistGradientBoostingClassifier(early_stopping=True, random_state=0)
)
boosting.fit(X[train], y[train], cost=cost[train])
regressor = HistGradientBoostingRegressor(early_stopping=True, random_state=0)
estimates = [regressor.fit(X[train], c).predict(X[test]) for c in cost[train].T]
choices = {
    "network": network.predict(X[test]),
    "boosting, classes": boosting.predict(X[test]),
    "boosted regressions": LIMITS[np.argmin(estimates, axis=0)],
    "best limit for all": np.full(len(test), LIMITS[cost[train].mean(axis=0).argmin()]),
}
for name, limit in choices.items():
    print(f"{mean_cost(y[test], limit, cost=cost[test], classes=LIMITS):6.1f} EUR: {name}")

# %%
# Left: the loss compared with the best limit in hindsight, which no model can reach. Right: the
# limits that the network grants.
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
paid = {
    name: cost[test][np.arange(len(test)), np.searchsorted(LIMITS, limit)]
    for name, limit in choices.items()
}
mean = [c.mean() for c in paid.values()]
error = [1.96 * c.std(ddof=1) / np.sqrt(len(c)) for c in paid.values()]
left.errorbar(mean, list(paid), xerr=error, fmt="o", capsize=4, color="#0072B2")
left.invert_yaxis()
left.set(xlabel="loss compared with the best limit (EUR per customer)")
left.set_title("6,000 new customers; bars: 95 % intervals, not paired", fontsize="medium")
for limit, color in zip(LIMITS, ["#D55E00", "#E69F00", "#56B4E9", "#0072B2"]):
    rows = choices["network"] == limit
    right.scatter(income[test][rows], risk[test][rows], s=4, color=color, label=f"{limit:,} EUR")
right.set(xscale="log", xlabel="income (EUR per year)", ylabel="true probability of default")
right.legend(title="limit", fontsize="small", markerscale=3)
right.set_title("limits that the network grants", fontsize="medium")
plt.show()

# %%
# The bars overlap, but all policies are applied to the same customers. The paired difference of
# the best two, and its 95 % interval:
print(
    cost_difference(
        y[test], choices["network"], choices["boosted regressions"], cost=cost[test], classes=LIMITS
    )
)

# %%
# The interval is below zero: the network costs less here than a regression for each limit. Both
# cost much less than the same limit for all customers.
