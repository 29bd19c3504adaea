"""The temperature of the rule: learnt from rows that the classifier has not seen."""

import numpy as np
import pytest
import sklearn
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn._training.temperature import HEATS

X, Y = load_digits(return_X_y=True)
X, Y = X[:900] / 16, Y[:900]
ASK = np.c_[1.0 - np.eye(10), np.full(10, 0.3)]
DECISIONS = [*range(10), 10]


def rule(inner, **parameters):
    return BayesMinimumRiskClassifier(inner, **parameters)


def cautious(C=0.02):
    return LogisticRegression(C=C, max_iter=500)


class Counting(LogisticRegression):
    """Counts its fits, and their rows."""

    fits: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.fits.append(len(y))
        return super().fit(X, y, sample_weight)


class Distracted(ClassifierMixin, BaseEstimator):
    """Its most probable class is right, by a little; the other probabilities mean nothing."""

    def fit(self, X, y):
        self.classes_, self.model_ = np.unique(y), GaussianNB().fit(X, y)
        return self

    def predict_proba(self, X):
        p = np.full((len(X), len(self.classes_)), 1e-6)
        best = self.model_.predict_proba(X).argmax(axis=1)
        p[np.arange(len(X)), best] = 0.51
        p[np.arange(len(X)), (best + 1) % len(self.classes_)] += 0.49
        return p / p.sum(axis=1, keepdims=True)


def numpy_temperature(p, label):
    """The best of the temperatures that are tried."""
    logs = np.log(np.clip(p, 1e-6, 1))

    def loss(heat):
        log_p = log_softmax(logs / np.exp(heat), axis=1)[np.arange(len(p)), label]
        return 10 / len(p) * heat**2 - log_p.mean()

    return np.exp(min(HEATS, key=loss))


def test_probabilities_are_those_of_all_rows_at_the_temperature_of_out_of_fold_ones():
    model = rule(GaussianNB(), calibration="temperature").fit(X, Y)

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    unseen = cross_val_predict(GaussianNB(), X, Y, cv=folds, method="predict_proba")
    assert model.temperature_ == pytest.approx(numpy_temperature(unseen, Y))
    logs = np.log(np.clip(GaussianNB().fit(X, Y).predict_proba(X), 1e-6, 1))
    expected = np.exp(log_softmax(logs / model.temperature_, axis=1))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-6, atol=1e-12)


def test_many_classes_have_one_by_default_for_one_more_fit():
    Counting.fits.clear()
    model = rule(Counting(C=0.02, max_iter=500), cost_matrix=ASK, decisions=DECISIONS).fit(X, Y)

    assert sorted(Counting.fits) == [720, 900]
    assert model.temperature_ < 0.7
    plain = rule(cautious(), cost_matrix=ASK, decisions=DECISIONS, calibration=None).fit(X, Y)
    assert plain.temperature_ == 1
    assert (plain.decide(X) == 10).mean() > 2 * (model.decide(X) == 10).mean()


@pytest.mark.parametrize(
    "inner",
    [
        make_pipeline(StandardScaler(), CostSensitiveAuxMLP(1, 8, max_epochs=1, random_state=0)),
        CalibratedClassifierCV(GaussianNB(), cv=2),
        FrozenEstimator(GaussianNB().fit(X[:90], Y[:90])),
    ],
)
def test_what_calibrates_itself_or_has_few_rows_has_none(inner):
    assert rule(inner).fit(X[:95], Y[:95]).temperature_ == 1


def test_few_classes_or_few_rows_have_none_by_default():
    Counting.fits.clear()
    assert rule(Counting(max_iter=500)).fit(X[Y < 9], Y[Y < 9]).temperature_ == 1
    assert rule(Counting(max_iter=500)).fit(X[:100], Y[:100]).temperature_ == 1
    assert len(Counting.fits) == 2


def test_the_rows_of_fit_determine_that_of_a_frozen_classifier():
    frozen = FrozenEstimator(cautious().fit(X[:300], Y[:300]))
    model = rule(frozen).fit(X[300:], Y[300:])

    expected = numpy_temperature(frozen.predict_proba(X[300:]), Y[300:])
    assert model.temperature_ == pytest.approx(expected)


def test_rows_of_classes_that_a_fold_does_not_know_are_left_out():
    rare = np.r_[np.arange(600), np.flatnonzero(Y == 9)[:2]]
    y = Y[rare].copy()
    y[-2:] = 11  # two rows, for five folds
    model = rule(GaussianNB(var_smoothing=0.1), calibration="temperature").fit(X[rare], y)
    assert 0.2 < model.temperature_ < 9


def test_a_class_without_rows_stays_impossible():
    keep = Y != 3
    model = rule(GaussianNB(), calibration="temperature", classes=np.arange(10))
    p = model.fit(X[keep], Y[keep]).predict_proba(X)

    assert model.temperature_ > 1
    assert not p[:, 3].any()
    np.testing.assert_allclose(p.sum(axis=1), 1)


CYCLIC = 1.0 - np.eye(10)
CYCLIC[np.arange(10), np.arange(10) - 1] = 1.2  # a little more for the class before
PAYS_MORE = "expected cost costs .* a row, the most probable class"


def test_a_warning_says_where_the_rule_costs_more_than_the_most_probable_class():
    with pytest.warns(UserWarning, match=PAYS_MORE):
        rule(Distracted(), cost_matrix=CYCLIC, calibration="temperature").fit(X, Y)


@pytest.mark.parametrize("cost", [None, ASK])
def test_no_warning_where_the_rule_pays(cost, recwarn):
    parameters = {} if cost is None else {"cost_matrix": cost, "decisions": DECISIONS}
    rule(cautious(), calibration="temperature", **parameters).fit(X, Y)
    assert not recwarn


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_calibration_for_few_classes_warns_of_many(calibration):
    y = Y.copy()
    y[Y == 0] = 10 + (X[Y == 0, 20] > 0.5)
    with pytest.warns(UserWarning, match=f"calibration='{calibration}' .* 11 classes alone"):
        rule(GaussianNB(), calibration=calibration, cv=2).fit(X, y)


def is_in(rows):
    return np.isin(np.arange(900), rows)


FOLDS = list(StratifiedKFold(3).split(X, Y))


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedKFold(3),
        [(list(seen), list(unseen)) for seen, unseen in FOLDS],
        [(is_in(seen), is_in(unseen)) for seen, unseen in FOLDS],
        [(seen, is_in(unseen)) for seen, unseen in FOLDS],
    ],
    ids=["splitter", "lists", "masks", "positions and masks"],
)
def test_folds_are_those_of_the_caller(cv):
    model = rule(cautious(), calibration="temperature", cv=cv).fit(X, Y)
    unseen = cross_val_predict(cautious(), X, Y, cv=3, method="predict_proba")
    assert model.temperature_ == pytest.approx(numpy_temperature(unseen, Y))


def test_rows_of_weight_zero_are_no_evidence():
    weight = np.zeros(900)
    for k in range(10):
        weight[np.flatnonzero(k == Y)[:5]] = 1.0
    inner, kept = LogisticRegression(C=100, max_iter=500), weight > 0
    with_them = rule(inner).fit(X, Y, sample_weight=weight)
    assert with_them.temperature_ == rule(inner).fit(X[kept], Y[kept]).temperature_ == 1

    ever_less = [
        rule(cautious(), calibration="temperature").fit(X, Y, sample_weight=w).temperature_
        for w in (np.ones(900), np.where(kept, 1.0, 1e-9), weight)
    ]
    assert ever_less[1] == pytest.approx(ever_less[2], rel=0.1)  # the prior of ten rows counts
    assert ever_less[0] < ever_less[1]


def test_a_row_of_weight_zero_does_not_change_the_warning_of_the_rule():
    rng = np.random.default_rng(0)
    noise, random = rng.uniform(size=(2000, X.shape[1])), rng.integers(10, size=2000)
    known = {"calibration": "temperature", "train_prior": dict.fromkeys(range(10), 0.1)}
    model = rule(FrozenEstimator(Distracted().fit(X, Y)), cost_matrix=CYCLIC, **known)
    weight = np.repeat([1.0, 0.0], [900, 2000])
    with pytest.warns(UserWarning, match=PAYS_MORE):
        model.fit(np.r_[X, noise], np.r_[Y, random], sample_weight=weight)


@pytest.mark.parametrize("calibration", ["temperature", "auto"])
@pytest.mark.parametrize("inner", [GaussianNB(), make_pipeline(StandardScaler(), GaussianNB())])
@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_folds(calibration, inner, routing, monkeypatch):
    groups, seen = np.arange(900) // 6, []
    split = StratifiedGroupKFold.split

    def listen(self, X, y=None, groups=None):
        folds = list(split(self, X, y, groups))
        seen.extend(folds)
        return folds

    monkeypatch.setattr(StratifiedGroupKFold, "split", listen)
    with sklearn.config_context(enable_metadata_routing=routing):
        rule(inner, calibration=calibration).fit(X, Y, groups=groups)
        model = rule(inner, calibration="temperature", cv=GroupKFold(3)).fit(X, Y, groups=groups)
    assert model.temperature_ != 1
    assert seen
    for training, held_out in seen:
        assert not set(groups[training]) & set(groups[held_out])


def test_groups_reach_a_classifier_that_takes_them():
    network = CostSensitiveAuxMLP(1, 8, max_epochs=1, random_state=0)
    with pytest.raises(ValueError, match="2 different values of groups, but 5 folds"):
        rule(network).fit(X, Y, groups=np.arange(900) % 2)


class Remembering(ClassifierMixin, BaseEstimator):
    """Returns an array that it keeps."""

    def fit(self, X, y):
        self.classes_, self.kept_ = np.unique(y), GaussianNB().fit(X, y).predict_proba(X)
        return self

    def predict_proba(self, X):
        return self.kept_


def test_the_array_of_a_frozen_classifier_is_not_changed():
    inner = Remembering().fit(X, Y)
    before, weight = inner.kept_.copy(), np.where(np.arange(900) % 3, 1.0, 0.0)
    rule(FrozenEstimator(inner), calibration="temperature").fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(inner.kept_, before)


def test_folds_without_common_classes_are_an_error():
    with pytest.raises(ValueError, match="no rows for calibration.*pass other folds as cv"):
        rule(cautious(), calibration="temperature", cv=GroupKFold(10)).fit(X, Y, groups=Y)
