"""
Why was this customer refused?
==============================
A store decides about applications for its credit card, and one customer asks why the answer was
no. This page explains the decision in money: of one customer, then of all.
"""

# %%
# The applications are real: the PAKDD 2009 set of the package ``empulse``. The costs are ours, in
# reais: a default loses three quarters of the credit line, and the refusal of a customer who would
# have paid 15 % of it and 20 reais. This page needs the extra ``examples``.
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import shap
from empulse.datasets import load_credit_scoring_pakdd
from sklearn.inspection import permutation_importance

from auxcst_sklearn import CostSensitiveEnsembleClassifier
from auxcst_sklearn.costs import cost_matrices
from auxcst_sklearn.metrics import cost_scorer


def costs_of(line):
    """The costs of customers with these credit lines."""
    pays = {"approve": 0, "refuse": 0.15 * line + 20}
    return cost_matrices({"pays": pays, "defaults": {"approve": 0.75 * line, "refuse": 0}})


data = load_credit_scoring_pakdd(backend=pd)
table = data.data.assign(line=data.instance_costs["cl"], defaults=data.target)
table = table.loc[:, table.nunique() > 1].sample(5000, random_state=0, ignore_index=True)
y, line = table.pop("defaults").map({0: "pays", 1: "defaults"}), table.pop("line")
C = costs_of(line)
X, X_test, y_test, C_test, line = table[:4000], table[4000:], y[4000:], C[4000:], line[4000:]
model = CostSensitiveEnsembleClassifier(random_state=0)
model.fit(X, y[:4000], cost=C[:4000])

# %%
# Of those who were narrowly refused, take the one who asked for most. The table has the expected
# cost of each decision, probability times cost, for each way the customer may turn out. Its sums
# are those of ``predict_cost``; the lower one decides.


def excess(rows, cost):
    """What approval is expected to cost more than refusal."""
    approve, refuse = model.predict_cost(rows, cost=cost).T
    return approve - refuse


narrow = (excess(X_test, C_test) > 0) & (excess(X_test, C_test) < 40)
i = np.argmax(np.where(narrow, line, 0))
row, asked, C = X_test.iloc[[i]], line.iloc[i], C_test[[i]]
parts = pd.DataFrame(model.predict_proba(row).T * C.values[0], model.classes_, model.decisions_)
parts.loc["expected cost (BRL)"] = model.predict_cost(row, cost=C)[0]
print(parts.round(1), f"\ncredit line: {asked:.0f} BRL, {model.decide(row, cost=C)[0]}")

# %%
# Left: the same customer with other credit lines. Where the curves cross, the decision turns; that
# is the smallest change of the amount that was needed. Right: SHAP values, the reais that each
# answer adds to the cost of approval minus refusal, compared with 25 other customers.
lines = np.arange(10, 1.2 * asked, 5)
offers = row.loc[row.index.repeat(len(lines))]
approve, refuse = model.predict_cost(offers, cost=costs_of(lines)).T
limit = lines[approve < refuse].max()
explainer = shap.KernelExplainer(
    lambda rows: excess(pd.DataFrame(rows, columns=X.columns), np.repeat(C, len(rows), axis=0)),
    X[:25],
)
values = explainer.shap_values(row, nsamples=420, l1_reg=0, silent=True)[0]
most = np.argsort(np.abs(values))[-8:]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(lines, approve, label="approve")
left.plot(lines, refuse, label="refuse")
left.axvline(asked, color="0.5", linestyle=":", label=f"asked for: {asked:.0f}")
left.axvline(limit, color="0.2", label=f"approved up to {limit:.0f}")
left.set(xlabel="credit line (BRL)", ylabel="expected cost (BRL)")
left.legend()
right.barh([f"{X.columns[j]} = {row.iat[0, j]}" for j in most], values[most])
right.set(xlabel="adds to approve minus refuse (BRL)", title="SHAP values")
plt.show()

# %%
# For all customers. Left: how much more the decisions cost if a column is shuffled (mean of three
# shuffles, with its standard error). Right: the mean cost if all had the same marital status
# (partial dependence). scikit-learn's ``partial_dependence`` takes strings too, but explains
# probabilities. If a column should not count, as perhaps this one, drop it and fit again.
score = partial(cost_scorer, cost=C_test)  # the rows keep their order, so they keep their costs
found = permutation_importance(model, X_test, y_test, scoring=score, n_repeats=3, random_state=0)
most = np.argsort(found.importances_mean)[-8:]
statuses = sorted(X["marital_status"].unique())
dependence = [excess(X_test.assign(marital_status=s), C_test).mean() for s in statuses]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.barh(X.columns[most], found.importances_mean[most], xerr=found.importances_std[most] / 3**0.5)
left.set(xlabel="costs more if shuffled (BRL per customer)", title="permutation importance")
right.barh(statuses, dependence)
right.set(xlabel="cost of approval minus refusal (BRL)", title="marital status")
plt.show()
