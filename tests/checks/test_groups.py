"""Groups of rows: a gap is an error that names them, and folds of groups are stratified."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from tests.factories import small_stack

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(60, 3)), np.arange(60) % 2
NUMBER = np.arange(60) // 4
GAP = NUMBER % 3 == 0
TEXT = NUMBER.astype(str)
GAPS = {
    "floats": np.where(GAP, np.nan, NUMBER),
    "list of numbers": np.where(GAP, None, NUMBER).tolist(),
    "list of texts": ["g" + text if not gap else float("nan") for text, gap in zip(TEXT, GAP)],
    "Int64": pd.array(np.where(GAP, None, NUMBER), dtype="Int64"),
    "texts": np.where(GAP, None, TEXT),
    "texts and NaN": pd.Series(np.where(GAP, np.nan, TEXT.astype(object))),
    "string": pd.Series(np.where(GAP, None, TEXT), dtype="string"),
    "categories": pd.Series(np.where(GAP, None, TEXT), dtype="category"),
    "days": pd.Series(pd.to_datetime(NUMBER, unit="D")).mask(GAP),
    "spans": pd.to_timedelta(pd.Series(NUMBER), unit="D").mask(GAP).to_numpy(),
    "polars": pl.Series(np.where(GAP, None, TEXT).tolist()),
    "column": pd.DataFrame({"group": np.where(GAP, np.nan, NUMBER)}),
    "masked": np.ma.array(NUMBER, mask=GAP),
}


def ensemble(**parameters):
    members = [("l", LogisticRegression())]
    return CostSensitiveEnsembleClassifier(members, random_state=0, **parameters)


MODELS = {
    "network": lambda: small_stack(n_networks=2),
    "ensemble": ensemble,
    "ensemble with folds": lambda: ensemble(cv=GroupKFold(3)),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("kind", GAPS)
def test_gaps_are_an_error_that_names_groups(make, kind):
    with pytest.raises(ValueError, match="groups"):
        make().fit(X, Y, groups=GAPS[kind])


@pytest.mark.parametrize("kind", ["floats", "Int64", "days"])
def test_gaps_in_the_groups_of_calibration(kind):
    with sklearn.config_context(enable_metadata_routing=True):
        model = BayesMinimumRiskClassifier(calibration="sigmoid", cv=GroupKFold(3))
        model.fit(X, Y, groups=NUMBER)
        with pytest.raises(ValueError, match="Input groups contains NaN .* a group of its own"):
            model.fit(X, Y, groups=GAPS[kind])


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("wrong", [NUMBER[:-1], np.column_stack([NUMBER, NUMBER]), 3])
def test_groups_of_another_shape(make, wrong):
    with pytest.raises((ValueError, TypeError), match="groups"):
        make().fit(X, Y, groups=wrong)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_groups_of_any_type_are_the_same(make):
    expected = make().fit(X, Y, groups=NUMBER).predict_proba(X)
    days = pd.Series(pd.to_datetime(NUMBER, unit="D"))
    for groups in (NUMBER.tolist(), NUMBER.astype(float), days, pd.DataFrame({"g": NUMBER})):
        np.testing.assert_allclose(make().fit(X, Y, groups=groups).predict_proba(X), expected)


class Recorder(GaussianNB):
    """Keeps the labels of each training set."""

    labels = []

    def fit(self, X, y, sample_weight=None):
        self.labels.append(y)
        return super().fit(X, y, sample_weight)


STRATIFIED = {
    "rule": lambda: BayesMinimumRiskClassifier(Recorder(), calibration="sigmoid"),
    "ensemble": lambda: CostSensitiveEnsembleClassifier([("r", Recorder())], cv=5, random_state=0),
}


@pytest.mark.parametrize("kind", STRATIFIED)
def test_folds_of_groups_are_stratified(kind, monkeypatch):
    """Of 60 customers, a few have most of the frauds."""
    rng, group = np.random.default_rng(0), np.arange(600) % 60
    fraud = rng.random(600) < np.repeat([0.9, 0.3, 0.02], [3, 6, 51])[group]
    monkeypatch.setattr(Recorder, "labels", [])
    STRATIFIED[kind]().fit(rng.normal(size=(600, 3)), fraud.astype(int), groups=group)

    rates = [labels.mean() for labels in Recorder.labels if len(labels) < 600]
    assert len(rates) == 5
    np.testing.assert_allclose(rates, fraud.mean(), rtol=0.1)
