"""
Review desk: 200 payments a day for a person
============================================
A payment passes, is declined, or is reviewed by a person. Only 200 payments a day can be reviewed.
Which ones, and what would a unit of extra capacity be worth?
"""

# %%
# The decisions are not the classes, legitimate and fraud, so that ``decisions=`` names the columns
# of the costs. Missed fraud costs its amount, a decline of a good customer 10 and a twentieth of
# the amount, and a review 4. The payments are simulated; at the weekend amounts are larger.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.decisions import shadow_prices
from auxcst_sklearn.metrics import cost_difference, mean_cost

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
# gives the capacity of 200 to the payments of a day that save most.
model = CostSensitiveAuxMLP(n_networks=2, decisions=DECISIONS, random_state=0)
model.fit(X[:6000], fraud[:6000], cost=C[:6000])
X, fraud, C, amount, day = (rows[6000:] for rows in (X, fraud, C, amount, day))
days = [day == d for d in range(7)]
best = np.concatenate([model.decide(X[d], C[d], capacity={"review": DESK}) for d in days])
free = model.decide(X, C)
print("reviews a day without a limit:", np.bincount(day[free == "review"]))


# %%
# Two habits use the same capacity: review the most probable fraud, or the largest amounts. The
# other payments pass or are declined by their expected costs. A third rule needs no batch: each
# payment is decided alone, as it arrives, with the shadow price of a review from the day before.
def habit(order):
    chosen = np.array(DECISIONS)[expected[:, :2].argmin(axis=1)].astype("U7").reshape(-1, N)
    first = np.argsort(-order.reshape(-1, N), axis=1)[:, :DESK]
    np.put_along_axis(chosen, first, "review", axis=1)
    return chosen.ravel()


expected = model.predict_cost(X, C)
prices = [shadow_prices(expected[d], {"review": DESK}, decisions=DECISIONS) for d in days]
singly = [model.decide(X[d], C[d], shadow_prices=before) for d, before in zip(days[1:], prices)]
print(
    "reviews a day by the shadow price of the day before:",
    [int((c == "review").sum()) for c in singly],
)
ways = {"most probable": habit(model.predict_proba(X)[:, 1]), "largest amounts": habit(amount)}
costs = {"cost": C, "classes": [0, 1], "decisions": DECISIONS}
print(f"decide: {N * mean_cost(fraud, best, **costs):,.0f} EUR a day")
for name, chosen in ways.items():
    print(f"{name}: {N * mean_cost(fraud, chosen, **costs):,.0f} EUR a day")
    gap = cost_difference(fraud, best, chosen, **costs)
    low, high = N * gap.low, N * gap.high
    print(f"decide minus {name}: {N * gap.mean:,.0f} ({low:,.0f} to {high:,.0f}) EUR a day")

# %%
# The shadow price of a day is what one more review would save, beyond the 4 EUR that it costs. The
# slope of the right curve is this shadow price. It falls to zero where one more review is worth
# nothing.
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.bar(DAYS, [price["review"] for price in prices], color="#0072B2")
left.set(ylabel="saved by one more review (EUR)", title="shadow price")
monday = expected[day == 0]
without = monday[:, :2].min(axis=1)
gain = np.sort(without - monday[:, 2])[::-1].clip(0)  # of each review, the best first
total = without.sum() - np.append(0, gain.cumsum())
right.plot(total[:1000])
right.plot(DESK, total[DESK], "o", label=f"{DESK}: one more saves {gain[DESK]:.2f} EUR")
right.set(title="Monday", xlabel="capacity of review", ylabel="expected cost (EUR)")
right.legend()
plt.show()

# %%
# One more review is worth several times as much at the weekend. Payments that are decided singly
# keep to the budget while days are alike; on Saturday the shadow price of Friday is too low, and
# they take more than twice the capacity, so the shadow price for weekends is better set by the last
# weekend.
