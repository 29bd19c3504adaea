"""
A class tree: near mistakes are cheap
=====================================
A warehouse stores articles. An article on the wrong shelf of the right aisle is found in a minute;
in the wrong hall, it takes much longer. The class tree gives the costs.
"""

# %%
# Twelve shelves in six aisles in three halls. ``tree_distance_cost_matrix`` counts the edges
# between two shelves (2, 4 or 6); the costs are 1, 5 and 30 minutes of search. The features are
# simulated: articles of the same shelf are similar, those of the same aisle a little less.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.costs import tree_distance_cost_matrix
from auxcst_sklearn.metrics import cost_difference, mean_cost

paths = [f"hall {h}/aisle {a}/shelf {s}" for h in "ABC" for a in "12" for s in "12"]
edges = tree_distance_cost_matrix(paths).astype(int)
MINUTES = np.select([edges == 2, edges == 4, edges == 6], [1.0, 5.0, 30.0])
rng = np.random.default_rng(0)
halls, aisles, shelves = (rng.normal(size=(n, 15)) for n in (3, 6, 12))
centre = 0.5 * halls[np.arange(12) // 4] + 0.6 * aisles[np.arange(12) // 2] + 0.6 * shelves
y = rng.integers(12, size=5000)
X = centre[y] + rng.normal(0, 1.1, size=(len(y), 15))
X, X_test, y, y_test = train_test_split(X, y, train_size=1500, stratify=y, random_state=0)

# %%
# A hundred rounds of boosting for twelve classes would take most of the time of this page, so
# there are only twenty; ``n_networks=3`` is also for speed.
boosting = HistGradientBoostingClassifier(max_iter=20, random_state=0)
logistic = LogisticRegression(max_iter=500)
network = CostSensitiveAuxMLP(cost_matrix=MINUTES, n_networks=3, random_state=0).fit(X, y)
shelf = {
    "logistic regression, most probable": logistic.fit(X, y).predict(X_test),
    "logistic regression": BayesMinimumRiskClassifier(logistic, cost_matrix=MINUTES)
    .fit(X, y)
    .predict(X_test),
    "boosting": BayesMinimumRiskClassifier(boosting, cost_matrix=MINUTES).fit(X, y).predict(X_test),
    "network": network.predict(X_test),
}
for name, found in shelf.items():
    minutes = mean_cost(y_test, found, cost_matrix=MINUTES)
    print(f"{minutes:.2f} minutes per article, {np.mean(found == y_test):.0%} right: {name}")
print(cost_difference(y_test, shelf["network"], shelf["logistic regression"], cost_matrix=MINUTES))

# %%
# Where the minutes go: mistakes across halls are rare, but they cause most of the lost time.
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
start, spent = np.zeros(len(shelf)), np.zeros(len(shelf))
colors = ["#56B4E9", "#E69F00", "#D55E00"]
for n_edges, place, color in zip([2, 4, 6], ["shelf", "aisle", "hall"], colors):
    wrong = [edges[y_test, found] == n_edges for found in shelf.values()]
    share = np.array([100 * w.mean() for w in wrong])
    minutes = share / 100 * MINUTES[edges == n_edges][0]
    left.barh(list(shelf), share, left=start, color=color, label=f"wrong {place}")
    right.barh(list(shelf), minutes, left=spent, color=color)
    start, spent = start + share, spent + minutes
left.invert_yaxis()
left.set(xlabel="articles in a wrong place (%)")
right.set(xlabel="time of search (minutes per article)")
fig.legend(loc="outside upper center", ncols=3)
plt.show()

# %%
# The tree changes few decisions of logistic regression here. The network costs a little less, but
# the interval of the difference, printed above, includes zero, so these data do not show which of
# the two is better.
