"""Models inside of others: what a rule, an ensemble, a comparison and a file see of them."""

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.metrics import compare_costs

rng = np.random.default_rng(0)
N = 300
X = rng.normal(size=(N, 3))
y = (X[:, 0] + rng.normal(size=N) > 1.2).astype(int)
late = (np.arange(N) > 0.7 * N) & (rng.random(N) < 0.3)
LATE = np.where(late, 2, y)  # a class that begins late
WEIGHT = np.where(y == 1, 10.0, 1.0)
COSTS = [[0, 1], [2, 0]]


def test_a_frozen_member_that_does_not_know_a_class_is_refused():
    old = FrozenEstimator(LogisticRegression().fit(X, y))
    members = [("old", old), ("new", GaussianNB())]
    with pytest.raises(ValueError, match=r"member 'old'.*does not know the classes \[2\]"):
        CostSensitiveEnsembleClassifier(members, random_state=0).fit(X, LATE)


def test_weights_of_the_classifier_alone_are_in_no_frequency():
    model = BayesMinimumRiskClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
    model.fit(X, y, logisticregression__sample_weight=WEIGHT)
    assert np.isnan(model.class_prior_).all()
    with pytest.raises(ValueError, match="logisticregression__sample_weight changes them"):
        model.predict_cost(X, prior={0: 0.5, 1: 0.5})


def test_weights_with_another_route_are_in_no_frequency():
    with sklearn.config_context(enable_metadata_routing=True):
        named = LogisticRegression().set_fit_request(sample_weight="ww")
        for model in (BayesMinimumRiskClassifier(named), ensemble_of(named)):
            assert np.isnan(model.fit(X, y, ww=WEIGHT).class_prior_).all()
        without = LogisticRegression().set_fit_request(sample_weight=False)
        model = ensemble_of(without).fit(X, y, sample_weight=WEIGHT)
        assert np.isnan(model.class_prior_).all()


def ensemble_of(member):
    return CostSensitiveEnsembleClassifier([("only", member)], random_state=0)


@pytest.mark.parametrize("kind", ["csr", "coo", "bsr", "dia"])
def test_a_temperature_is_learnt_from_sparse_rows_of_all_formats(kind):
    dense = rng.poisson(0.5, size=(60, 8)) * 1.0
    model = BayesMinimumRiskClassifier(LogisticRegression(), calibration="temperature")
    label = dense[:, 0] > 0
    expected = model.fit(sparse.csr_array(dense), label).temperature_
    rows = sparse.csr_matrix(dense).asformat(kind)
    assert model.fit(rows, label).temperature_ == pytest.approx(expected)


def search(model, grid):
    return GridSearchCV(model, grid, cv=GroupKFold(3))


@pytest.mark.parametrize(
    "model",
    [
        search(LogisticRegression(), {"C": [0.1, 1]}),
        BayesMinimumRiskClassifier(search(LogisticRegression(), {"C": [0.1, 1]})),
        search(BayesMinimumRiskClassifier(), {"calibration": [None]}),
    ],
)
def test_groups_of_a_comparison_reach_searches_with_folds_of_groups(model):
    groups = np.arange(N) // 10
    table = compare_costs({"m": model}, X, y, cost_matrix=COSTS, groups=groups, cv=3)
    assert 0 < table.loc["m", "cost"] < 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_costs_of_rows_beside_a_search_over_cost_matrices_are_an_error():
    model = GridSearchCV(BayesMinimumRiskClassifier(), {"cost_matrix": [COSTS]}, cv=3)
    cost = np.tile(COSTS, (N, 1, 1))
    with pytest.raises(ValueError, match="(?s)models.*Got both cost and cost_matrix; expected one"):
        compare_costs({"m": model}, X, y, cost=cost, cv=3)


def test_files_of_searches_over_texts():
    pytest.importorskip("onnxscript", reason="the extra onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime")
    from auxcst_sklearn.onnx import to_onnx

    texts = ["pay my bill", "lost card", "card stolen", "bill payment"] * 5
    label = ["bill", "card", "card", "bill"] * 5
    words = make_pipeline(TfidfVectorizer(), LogisticRegression())
    model = BayesMinimumRiskClassifier(GridSearchCV(words, {"logisticregression__C": [1]}, cv=2))
    file = to_onnx(model.fit(texts, label), texts)
    session = onnxruntime.InferenceSession(file.SerializeToString())
    (index,) = session.run(["index"], {"X": np.array(texts, object)})
    assert model.decisions_[index].tolist() == model.predict(texts).tolist()
