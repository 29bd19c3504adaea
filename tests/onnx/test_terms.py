"""Files that compute the costs of a row from its columns, as `cost_matrices` does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.costs import cost_matrices
from auxcst_sklearn.onnx import to_onnx
from tests.factories import small_mlp, small_stack
from tests.onnx.files import as_input

onnxruntime = pytest.importorskip("onnxruntime")

TERMS = {
    "honest": {
        "pay": 0,
        "call": "15 + 2 * (claim_amount > 300)",
        "investigate": "20 + 0.1 * claim_amount",
    },
    "fraud": {
        "pay": "max(claim_amount - deductible, 0)",
        "call": "0.5 * min(claim_amount, 10 * `net-limit`) + 15",
        "investigate": "120 / deductible",
    },
}
READ = ["region", "age", "n_claims", "claim_amount"]


def claims(n=300, seed=0):
    """A table of which the model reads some columns, and the terms others."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "note": ["x"] * n,
            "region": rng.choice(["north", "south"], size=n),
            "age": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(30, 10, n)),
            "deductible": rng.choice([50, 100, 200], size=n),
            "n_claims": rng.integers(9, size=n),
            "claim_amount": rng.lognormal(5, 1, n),
            "net-limit": rng.integers(10, 90, size=n).astype(float),
        }
    )


def labels(X):
    return np.where(X["n_claims"] + X["claim_amount"] / 100 > 6, "fraud", "honest")


def run(file, X):
    """Outputs by their names, for the columns that the file names."""
    session = onnxruntime.InferenceSession(file.SerializeToString())
    given = {i.name: as_input(X[i.name], i.type) for i in session.get_inputs()}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, given)))


def piped():
    return make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["n_claims", "claim_amount"]),
            (OneHotEncoder(sparse_output=False), ["region"]),
        ),
        LogisticRegression(),
    )


MODELS = {
    "network": small_mlp,
    "pipeline": lambda: BayesMinimumRiskClassifier(piped()),
    "ensemble": lambda: CostSensitiveEnsembleClassifier(
        [("network", small_stack(n_networks=2))], cv=2, random_state=0
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_row_is_all_that_a_file_needs(kind):
    X = claims()
    model = MODELS[kind]().fit(X[READ], labels(X), cost=cost_matrices(TERMS, X))
    file = to_onnx(model, X, terms=TERMS)
    assert {i.name for i in file.graph.input} == {*READ, "deductible", "net-limit"}
    new = claims(200, seed=1)
    found, C = run(file, new), cost_matrices(TERMS, new)
    expected = model.predict_cost(new[READ], cost=C)
    np.testing.assert_allclose(found["cost"], expected, rtol=1e-5, atol=1e-5 * expected.max())
    np.testing.assert_allclose(found["probability"], model.predict_proba(new[READ]), atol=1e-6)
    decided = model.decide(new[READ], cost=C)
    np.testing.assert_array_equal(model.decisions_[found["index"]], decided)
    assert len(set(decided)) > 1


def test_at_the_end_of_a_pipeline():
    X = claims()
    rule = BayesMinimumRiskClassifier(LogisticRegression())
    model = make_pipeline(*piped()[:1], rule)
    model.fit(X[READ], labels(X), bayesminimumriskclassifier__cost=cost_matrices(TERMS, X))
    inner = model[0].transform(X[READ])
    expected = model[-1].predict_cost(inner, cost=cost_matrices(TERMS, X))
    np.testing.assert_allclose(run(to_onnx(model, X, terms=TERMS), X)["cost"], expected, rtol=1e-6)


@pytest.mark.parametrize("other", ["polars", "terms as a table"])
def test_other_tables(other):
    X, terms = claims(), TERMS
    model = small_mlp().fit(X[READ], labels(X), cost=cost_matrices(TERMS, X))
    given = X
    if other == "polars":
        polars = pytest.importorskip("polars")
        given = polars.from_pandas(X)
        model = small_mlp().fit(given[READ], labels(X), cost=cost_matrices(TERMS, X))
    else:
        terms = pd.DataFrame.from_dict(TERMS, orient="index").iloc[::-1, [2, 0, 1]]
    C = cost_matrices(TERMS, X)
    found = run(to_onnx(model, given, terms=terms), X)
    np.testing.assert_allclose(found["cost"], model.predict_cost(given[READ], C), rtol=1e-4)


def test_a_missing_amount_is_no_decision():
    X = claims()
    X.loc[::3, "claim_amount"] = np.nan
    full = X.fillna({"claim_amount": 100.0})
    model = small_mlp().fit(X[READ], labels(X), cost=cost_matrices(TERMS, full))
    found = run(to_onnx(model, X, terms=TERMS), X)
    missing = X["claim_amount"].isna().to_numpy()
    assert (found["index"][missing] == -1).all()
    assert (found["index"][~missing] >= 0).all()
    assert np.isnan(found["cost"][missing]).all(axis=1).all()
    assert np.isfinite(found["cost"][~missing]).all()
    one = run(to_onnx(model, X, terms=TERMS), X.assign(deductible=0.0))  # 120 / 0
    assert (one["index"] == -1).all()


def test_a_gap_in_a_comparison_is_no_decision():
    X = claims()
    terms = {k: {"pay": "2 * (deductible < 70)", "stop": 1} for k in ("honest", "fraud")}
    model = small_mlp().fit(X[READ], labels(X), cost=cost_matrices(terms, X))
    file = to_onnx(model, X, terms=terms)
    found = run(file, X.assign(deductible=[50.0, 100.0, np.nan] * 100))
    np.testing.assert_array_equal(found["index"].reshape(-1, 3), [[1, 0, -1]] * 100)


def test_without_costs_of_rows_in_the_training():
    X = claims()
    terms = {k: {d: TERMS[k]["pay"] if d == k else 9 for d in TERMS} for k in TERMS}
    model = BayesMinimumRiskClassifier(piped()).fit(X[READ], labels(X))
    found = run(to_onnx(model, X, terms=terms), X)["index"]
    np.testing.assert_array_equal(
        model.classes_[found], model.predict(X[READ], cost_matrices(terms, X))
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"pay": np.zeros(300)},
            r"terms\['fraud'\]\['pay'\] has a value for each row, which a fil",
        ),
        ({"pay": "amount"}, "names 'amount'; expected columns"),
        ({"pay": "note"}, "reads the column 'note' of X, which holds strings"),
        ({"pay": "region"}, "reads the column 'region' of X, which holds strings"),
        ({"pay": "0 / (deductible - deductible)"}, "In no row of X are all costs finite"),
    ],
)
def test_terms_that_a_file_cannot_compute(change, message):
    X = claims()
    model = small_mlp().fit(X[READ], labels(X), cost=cost_matrices(TERMS, X))
    with pytest.raises(ValueError, match=message):
        to_onnx(model, X, terms={**TERMS, "fraud": {**TERMS["fraud"], **change}})


def test_other_mistakes():
    X = claims()
    model = small_mlp().fit(X[READ], labels(X), cost=cost_matrices(TERMS, X))
    renamed = {k: {"pay": 0, "phone": 1, "investigate": 2} for k in TERMS}
    with pytest.raises(ValueError, match=r"the decisions .*phone.*; expected the decisions of"):
        to_onnx(model, X, terms=renamed)
    with pytest.raises(ValueError, match="the classes .*; expected the classes of the model"):
        to_onnx(model, X, terms={**TERMS, "other": TERMS["fraud"]})
    with pytest.raises(ValueError, match="Got both terms and cost_input=True"):
        to_onnx(model, X, terms=TERMS, cost_input=True)
    with pytest.raises(ValueError, match="X is of type ndarray, and terms are formulas"):
        to_onnx(model, X[READ].to_numpy(), terms=TERMS)
    with pytest.raises(ValueError, match="In no row of X are all costs finite"):
        to_onnx(model, X[:0], terms=TERMS)
    with pytest.raises(ValueError, match="yet now missing"):
        to_onnx(model, X.drop(columns="age"), terms=TERMS)
    without = small_mlp(loss="one_sided").fit(X[READ], labels(X))
    with pytest.raises(ValueError, match="terms needs class probabilities"):
        to_onnx(without, X, terms=TERMS)


def test_dates_are_days():
    X = claims()
    X["closed"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(X["n_claims"], "D")
    X["opened"] = X["closed"] - pd.to_timedelta(X["age"] / 10, "D")
    terms = {k: {"pay": 5, "check": "2 * (closed - opened)"} for k in TERMS}
    days = X.assign(
        **{name: (X[name] - pd.Timestamp(0)) / pd.Timedelta("1D") for name in ("closed", "opened")}
    )
    known = X[X["opened"].notna()]
    C = cost_matrices(terms, known)
    np.testing.assert_allclose(C[:, 0, 1], known["age"] / 5, rtol=1e-6)
    read = [*READ, "closed"]
    model = small_mlp().fit(known[read], labels(known), cost=C)
    file = to_onnx(model, X, terms=terms)
    assert {m.key: m.value for m in file.metadata_props}["dates"] == '["closed", "opened"]'
    found = run(file, days)
    decided = np.array([*model.decisions_, "unknown"])[found["index"]]
    cheapest = np.where(X["age"] < 25, "check", "pay")
    np.testing.assert_array_equal(decided, np.where(X["age"].isna(), "unknown", cheapest))
    np.testing.assert_allclose(
        found["probability"], model.predict_proba(X[read]), rtol=1e-4, atol=1e-6
    )
