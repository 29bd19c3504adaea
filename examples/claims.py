"""Claims of an insurer, from a CSV file to next month: pay, call the customer, or investigate.

20 claims a day can be investigated. The steps: read, compare models, plot, search, fit, explain one
decision, write a file for a service, ask it, decide the next month, and see whether to refit.

    pip install ".[plot,onnx,serve]" pandas
    python examples/claims.py --out out
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("agg")  # draws to a file, without a display
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import sklearn
from serve import Decider  # examples/serve.py
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from auxcst_sklearn import (
    BayesMinimumRiskClassifier,
    CostSensitiveAuxMLP,
    CostSensitiveEnsembleClassifier,
)
from auxcst_sklearn.costs import cost_matrices
from auxcst_sklearn.decisions import shadow_prices
from auxcst_sklearn.metrics import compare_costs, cost_difference, cost_scorer, mean_cost
from auxcst_sklearn.onnx import to_onnx
from auxcst_sklearn.plotting import CostComparisonDisplay

A_DAY = 200  # claims; those of the last fifth of the days are the next month
LIMIT = {"investigate": 20}  # a day


def costs_of(claims):
    """The costs of a table of claims, or of one claim."""
    lost = np.maximum(claims["claim_amount"] - claims["deductible"], 0)
    honest = {"pay": 0, "call": 15, "investigate": 120}
    fraud = {"pay": lost, "call": 15 + 0.6 * lost, "investigate": 120}
    return cost_matrices({"honest": honest, "fraud": fraud})


def simulate(n, path, seed=0):
    """Write claims with strings, gaps and dates: in place of your file."""
    rng = np.random.default_rng(seed)
    opened = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n) // A_DAY, "D")
    table = pd.DataFrame({"opened": opened})
    table["region"] = rng.choice(["north", "east", "south", "west"], n, p=[0.4, 0.3, 0.2, 0.1])
    table["channel"] = rng.choice(["agent", "phone", "web"], n)
    table["garage"] = [f"G{i:03d}" for i in rng.zipf(1.5, n) % 150]
    table["age"] = rng.integers(18, 90, n).astype(float)
    table["years_insured"] = rng.gamma(1.5, 4, n).round(1)
    table["n_claims"] = rng.poisson(1.2, n)
    table["deductible"] = rng.choice([0, 150, 300], n)
    table["claim_amount"] = rng.lognormal(7, 1, n).round(2)
    suspicious = (table["garage"].str[1:].astype(int) % 9 == 0) & (table["region"] != "east")
    logit = -3.4 + 2.4 * suspicious + 1.2 * (table["channel"] == "web") + 0.5 * table["n_claims"]
    logit += 1.5 * ((table["years_insured"] < 2) & (table["n_claims"] > 1)) - 0.02 * table["age"]
    logit += 0.9 * (table["opened"].dt.day_of_week >= 5) + 0.4 * np.log(
        table["claim_amount"] / 1100
    )
    is_fraud = rng.random(n) < 1 / (1 + np.exp(-logit))
    table["outcome"] = np.where(is_fraud, "fraud", "honest")
    for name in ("garage", "age", "years_insured"):
        table.loc[rng.random(n) < 0.08, name] = None
    table.to_csv(path, index=False)


def main(n=30_000, out=Path("out")):
    out.mkdir(parents=True, exist_ok=True)
    simulate(n, out / "claims.csv")
    sklearn.set_config(enable_metadata_routing=True)  # passes cost= on in the search

    # Read. Rows are sorted by date, of which the weekday, a string, is a feature.
    X = pd.read_csv(out / "claims.csv", parse_dates=["opened"])
    y, C, opened = X.pop("outcome"), costs_of(X), X.pop("opened")
    X["weekday"], days = opened.dt.day_name(), opened.unique()
    past = np.flatnonzero(opened < days[int(0.8 * len(days))])
    month = np.arange(len(past), len(X))
    old, recent = np.split(past, [int(0.8 * len(past))])

    # Compare on the most recent fifth of the past.
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, max_categories=250)
    strings = make_column_selector(dtype_include=["object", "string"])
    boosting = make_pipeline(
        make_column_transformer((codes, strings), remainder="passthrough"),
        HistGradientBoostingClassifier(early_stopping=True, random_state=0),
    )
    models = {
        "boosting": BayesMinimumRiskClassifier(boosting, calibration="isotonic"),
        "network": CostSensitiveAuxMLP(random_state=0),
        "ensemble": CostSensitiveEnsembleClassifier(random_state=0),
    }
    result = compare_costs(models, X, y, cost=C, cv=[(old, recent)])
    print(result.drop(columns="predict_seconds").round(2).to_string())
    fig, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
    CostComparisonDisplay.from_comparison(result, ax=ax, rows=[*models], unit="EUR")
    fig.savefig(out / "claims.png", dpi=110)

    # Search with one network, then fit the best with all.
    search = GridSearchCV(
        CostSensitiveAuxMLP(n_networks=1, random_state=0),
        {"width": [64, 128], "alpha": [0, 0.2]},
        scoring=cost_scorer,
        cv=TimeSeriesSplit(2),
        error_score="raise",
    ).fit(X.iloc[past], y[past], cost=C[past])
    print("best:", search.best_params_)
    best = clone(search.best_estimator_).set_params(n_networks="auto")
    best.fit(X.iloc[past], y[past], cost=C[past])

    # Decide the next month, 20 investigations a day; or singly, by the shadow prices of the day
    # before.
    X_new, y_new, C_new = X.iloc[month], y[month], C[month]
    day, expected = opened[month], best.predict_cost(X_new, C_new)
    days = [(day == today).to_numpy() for today in day.unique()]
    chosen = np.concatenate([best.decide(X_new[d], C_new[d], capacity=LIMIT) for d in days])
    prices = [shadow_prices(expected[d], LIMIT, decisions=best.decisions_) for d in days]
    singly = [best.decide(X_new[d], C_new[d], shadow_prices=p) for d, p in zip(days[1:], prices)]
    n_first = len(X_new) - sum(map(len, singly))  # the first day has no day before
    ways = {
        "without a limit": best.decide(X_new, C_new),
        "20 a day": chosen,
        "by shadow prices": np.concatenate([chosen[:n_first], *singly]),
    }
    for name, decided in ways.items():
        a_day = (decided == "investigate").sum() / day.nunique()
        cost = mean_cost(y_new, decided, cost=C_new)
        print(f"{name}: {cost:.2f} EUR a claim, {a_day:.1f} investigations a day")
    print(cost_difference(y_new, chosen, ways["by shadow prices"], cost=C_new))

    # Explain one decision: the costs by outcome, and the amount from which it is taken.
    i = list(chosen).index("investigate")
    row, parts = (
        X_new.iloc[[i]],
        best.predict_proba(X_new.iloc[[i]])[0][:, np.newaxis] * C_new[i].values,
    )
    print(pd.DataFrame(parts, best.classes_, best.decisions_).round(1))
    amounts = np.geomspace(50, 20_000, 200)
    offers = row.loc[row.index.repeat(len(amounts))].assign(claim_amount=amounts)
    decided = best.decide(offers, costs_of(offers))
    print("investigated from", amounts[decided == "investigate"].min().round())

    # Serve: rows as the CSV has them. The service computes the costs, and the file decides.
    to_onnx(best, X[:500], out / "claims.onnx")
    rows = json.loads(X_new[day == day.iloc[0]].to_json(orient="records"))
    answer = Decider(out / "claims.onnx", costs_of).answer({"rows": rows, "capacity": LIMIT})
    served = np.array([claim["decision"] for claim in answer["answers"]])
    print(
        f"{np.mean(served == chosen[: len(served)]):.1%} the same in the service",
        answer["shadow_prices"],
    )

    # Refit where that pays: without the last third of the month, which tests.
    print(f"expected without a limit: {expected.min(axis=1).mean():.2f} EUR a claim")
    fold = np.split(np.arange(len(X)), [len(X) - len(month) // 3])
    both = {"now": FrozenEstimator(best), "next": best}
    print(compare_costs(both, X, y, cost=C, cv=[fold])[["cost", "difference", "low", "high"]][:2])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    main(options.rows, options.out)
