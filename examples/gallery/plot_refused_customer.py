"""
Why was this customer refused?
==============================
A store's card gets thousands of applications, and one customer asks why the answer was no. This
page answers in money: for one customer, and for all of them.
"""

# %%
# The applications are real: the PAKDD 2009 set of the package ``empulse``. The costs are ours, in
# reais: a default loses three quarters of the credit line, and whoever is refused but would have
# paid costs 15 % of it and 20 reais. This page needs ``empulse`` and the extra ``explain``.
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import shap
from empulse.datasets import load_credit_scoring_pakdd
from sklearn.inspection import permutation_importance

from auxcst_sklearn import CostSensitivePoolClassifier
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.metrics import cost_scorer

data = load_credit_scoring_pakdd(backend=pd)
table = data.data.assign(line=data.instance_costs["cl"], defaults=data.target)
table = table.loc[:, table.nunique() > 1].sample(5000, random_state=0, ignore_index=True)
y, line = table.pop("defaults").map({0: "pays", 1: "defaults"}), table.pop("line")


def costs(line):
    """A cost matrix for each credit line; the decision "defaults" refuses."""
    lost = {"fn_cost": 0.75 * line, "fp_cost": 0.15 * line + 20}
    return binary_cost_matrices(**lost, classes=["defaults", "pays"], pos_label="defaults")


train, test = slice(0, 4000), slice(4000, 5000)
X, X_test, y_test, C_test = table[train], table[test], y[test], costs(line[test])
model = CostSensitivePoolClassifier(random_state=0).fit(X, y[train], cost=costs(line[train]))

# %%
# The customer with the highest credit line among those who were narrowly refused. The table
# splits the expected cost of each decision by what the customer will turn out to do: probability
# times cost. Its sums are those of ``predict_cost``, and the lower one is the decision. At the end
# of a pipeline, that is ``model[-1].predict_cost(model[:-1].transform(row), cost=...)``.


def excess(rows, cost):
    """What approval is expected to cost more than refusal, in reais."""
    expected = model.predict_cost(rows, cost=cost)
    return expected[:, 1] - expected[:, 0]


narrow = (excess(X_test, C_test) > 0) & (excess(X_test, C_test) < 40)
i = np.argmax(np.where(narrow, line[test], 0))
row, asked, C = X_test.iloc[[i]], line[test].iloc[i], C_test[[i]]
parts = model.predict_proba(row).T * C[0]
parts = pd.DataFrame(parts, ["if the customer defaults", "if not"], ["refuse", "approve"])
parts.loc["expected cost (BRL)"] = model.predict_cost(row, cost=C)[0]
print(parts.round(1), f"\ncredit line: {asked:.0f} BRL")

# %%
# What if the customer had asked for less? The same row with other credit lines: where the curves
# cross, the decision turns. That is the smallest change of the amount that was needed.
lines = np.arange(10, 1.2 * asked, 5)
offers = model.predict_cost(row.loc[row.index.repeat(len(lines))], cost=costs(lines))
approved = lines[offers[:, 1] < offers[:, 0]].max()


# SHAP values say how much each answer adds, in reais, compared with 25 other customers.
# ``KernelExplainer`` takes strings; shap's other explainers subtract values, and fail.
def excess_of(values):
    return excess(pd.DataFrame(values, columns=X.columns), np.repeat(C, len(values), axis=0))


explainer = shap.KernelExplainer(excess_of, X[:25])
values = explainer.shap_values(row, nsamples=420, l1_reg=0, silent=True)[0]
most = np.argsort(np.abs(values))[-8:]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(lines, offers[:, 1], color="#0072B2", label="approve")
left.plot(lines, offers[:, 0], color="#D55E00", label="refuse")
left.axvline(asked, color="0.5", linestyle=":", label=f"asked for: {asked:.0f}")
left.axvline(approved, color="0.2", label=f"approved up to {approved:.0f}")
left.set(xlabel="credit line (BRL)", ylabel="expected cost (BRL)")
left.legend()
right.barh([f"{X.columns[j]} = {row.iat[0, j]}" for j in most], values[most], color="#0072B2")
right.axvline(0, color="0.5", linewidth=0.8)
right.set(xlabel="speaks for refusal (BRL)", title="SHAP: approval compared with refusal")
plt.show()

# %%
# For all customers: what costs more if the answers of a column are shuffled (permutation
# importance), and how approval of the average customer changes with a category (partial
# dependence: each customer gets each value in turn, with costs of their own).
# scikit-learn's ``partial_dependence`` takes strings as well, but returns probabilities.
score = partial(cost_scorer, cost=C_test)  # the rows keep their order, so they keep their costs
found = permutation_importance(model, X_test, y_test, scoring=score, n_repeats=3, random_state=0)
most = np.argsort(found.importances_mean)[-8:]
statuses = sorted(X["marital_status"].unique())
dependence = [excess(X_test.assign(marital_status=s), C_test).mean() for s in statuses]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
error = found.importances_std[most] / np.sqrt(3)
left.barh(X.columns[most], found.importances_mean[most], xerr=error, color="#0072B2")
left.set(xlabel="costs more if shuffled (BRL per customer)", title="bars: standard errors")
right.barh(statuses, dependence, color="#0072B2")
right.set(xlabel="approval costs more than refusal (BRL per customer)", title="marital status")
plt.show()
