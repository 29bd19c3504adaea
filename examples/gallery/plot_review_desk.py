"""
Review desk: 200 payments a day for a person
============================================
A payment passes, is declined, or is reviewed by a person. Only 200 payments a day can be reviewed.
Which ones, and what would one more place be worth?
"""

# %%
# The decisions are not the classes, legitimate and fraud, so that ``decisions=`` names the columns
# of the costs. Missed fraud costs its amount, a decline of a good customer 10 and a twentieth of
# the amount, and a review 4. The payments are simulated; at the weekend amounts are larger.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.decisions import capacity_prices
from auxcst_sklearn.metrics import cost_difference, mean_cost
from auxcst_sklearn.plotting import CostCapacityDisplay

DAYS, N, DESK = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], 4000, 200
DECISIONS = ["pass", "decline", "review"]
X, fraud = make_classification(
    34000, n_informative=6, n_redundant=4, weights=[0.97], flip_y=0, class_sep=0.6, random_state=0
)
day = (np.arange(len(X)) - 6000) // N  # before Monday there are 6,000 to train on
amount = np.random.default_rng(0).lognormal(4, 1.2, len(X)) * np.where(day >= 5, 2, 1)
X = np.column_stack([X, np.log(amount)])
C = np.zeros((len(X), 2, 3))
C[:, 0, 1], C[:, 1, 0], C[:, :, 2] = 10 + amount / 20, amount, 4

# %%
# Train on 6,000 earlier payments. ``decide`` takes the least expected cost; with ``capacity=`` it
# gives the 200 places of a day to the payments that gain most.
week = np.arange(6000, len(X)).reshape(len(DAYS), N)
model = CostSensitiveAuxMLP(n_networks=2, decisions=DECISIONS, random_state=0)
model.fit(X[:6000], fraud[:6000], cost=C[:6000])
best = [model.decide(X[rows], C[rows], capacity={"review": DESK}) for rows in week]
free = [model.decide(X[rows], C[rows]) for rows in week]
print("reviews a day without a limit:", [int((chosen == "review").sum()) for chosen in free])


# %%
# Two habits fill the same 200 places: review the most probable fraud, or the largest amounts. The
# other payments pass or are declined by their expected costs. A third rule needs no batch: each
# payment is decided alone, as it arrives, with the price of a review from the day before.
def habit(rows, order):
    chosen = np.array(DECISIONS)[model.predict_cost(X[rows], C[rows])[:, :2].argmin(axis=1)]
    chosen = chosen.astype("U7")
    chosen[np.argsort(-order)[:DESK]] = "review"
    return chosen


expected = [model.predict_cost(X[rows], C[rows]) for rows in week]
prices = [capacity_prices(e, {"review": DESK}, decisions=DECISIONS) for e in expected]
singly = [model.decide(X[r], C[r], prices=p) for r, p in zip(week[1:], prices)]
print("reviews a day by the price of the day before:", [int((c == "review").sum()) for c in singly])
ways = {
    "decide": best,
    "most probable": [habit(r, model.predict_proba(X[r])[:, 1]) for r in week],
    "largest amounts": [habit(r, amount[r]) for r in week],
}
of_week = {"cost": C[week.ravel()], "classes": [0, 1], "decisions": DECISIONS}
truth = fraud[week.ravel()]
for name, chosen in ways.items():
    paid = N * mean_cost(truth, np.concatenate(chosen), **of_week)
    print(f"{name}: {paid:,.0f} EUR a day")
for name in ("most probable", "largest amounts"):
    gap = cost_difference(truth, *map(np.concatenate, (best, ways[name])), **of_week)
    low, high = N * gap.low, N * gap.high
    print(f"decide minus {name}: {N * gap.mean:,.0f} ({low:,.0f} to {high:,.0f}) EUR a day")

# %%
# The price of a day is what one more review would save, beyond the 4 EUR that it costs. The slope
# of the right curve is this price. It falls to zero where one more place is worth nothing.
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.bar(DAYS, [p["review"] for p in prices], color="#0072B2")
left.set(ylabel="saved by one more review (EUR)", title="price of a place")
CostCapacityDisplay.from_predictions(
    expected[0], "review", decisions=DECISIONS, ax=right, capacity=DESK, unit="EUR"
)
right.set(title="Monday")
plt.show()

# %%
# A place is worth several times as much at the weekend. Payments that are decided singly keep to
# the budget while days are alike; on Saturday the price of Friday is too low, and they take more
# than twice the places, so a price for weekends is better set by the last weekend.
