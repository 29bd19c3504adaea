"""Classifiers of other libraries: their probabilities, labels, folds and class frequencies."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.decisions import adjust_prior, estimate_prior
from auxcst_sklearn.metrics import compare_costs
from auxcst_sklearn.plotting import CostThresholdDisplay

SKLEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))
MATRIX = np.array([[0, 1, 4], [2, 0, 1], [9, 3, 0]])
NAMES = np.array(["ant", "bee", "cat"])


def draw(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X[:, 0] + rng.normal(0, 0.7, n), [-0.5, 1])


X, Y = draw()


def rule(inner, **parameters):
    return BayesMinimumRiskClassifier(inner, **{"cost_matrix": MATRIX, **parameters})


def ensemble(inner, **parameters):
    parameters = {"cost_matrix": MATRIX, "cv": 3, "random_state": 0, **parameters}
    return CostSensitiveEnsembleClassifier([("inner", inner)], **parameters)


class Foreign(ClassifierMixin, BaseEstimator):
    """Returns what `form` makes of probabilities and of the labels."""

    def __init__(self, form=None):
        self.form = form

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        if self.form in LABELS:
            self.classes_ = LABELS[self.form](self.classes_)
        return self

    def predict_proba(self, X):
        p = self.model_.predict_proba(X)
        return FORMS[self.form](p) if self.form in FORMS else p


LABELS = {
    "list": lambda labels: labels.tolist(),
    "tuple": lambda labels: tuple(labels.tolist()),
    "index": pd.Index,
    "objects": lambda labels: labels.astype(object),
}
SAME = {
    "frame": lambda p: pd.DataFrame(p, columns=[0, 1, 2]),
    "frame in another order": lambda p: pd.DataFrame(p, columns=[0, 1, 2])[[2, 0, 1]],
    "frame of other names": lambda p: pd.DataFrame(p, columns=["p2", "p0", "p1"]),
    "lists": lambda p: p.tolist(),
}
ROUNDED = {"float32": lambda p: p.astype("f4"), "float16": lambda p: p.astype("f2")}
NOT_PROBABILITIES = {
    "logits": (lambda p: np.log(p) - np.log(p[:, :1]), "not logits"),
    "logarithms": (np.log, r"such as \[-.* expected probabilities from 0 to 1"),
    "percent": (lambda p: 100 * p, "expected probabilities from 0 to 1"),
    "votes": (lambda p: np.rint(50 * p), "expected probabilities from 0 to 1"),
    "rows of zeros": (lambda p: p * (p[:, :1] > 0.3), r"such as \[0.0, 0.0, 0.0\]; expected"),
    "not normalised": (lambda p: p / p.max(1, keepdims=True), "whose rows sum to 1"),
    "one against the rest": (lambda p: 0.9 * p, "whose rows sum to 1"),
    "a negative one": (lambda p: p + [0.1, 0, -0.1], r"such as \[.*, -0"),
    "NaN": (lambda p: np.where(p < 0.01, np.nan, p), r"such as \[.*nan"),
    "too few columns": (lambda p: p[:, :2], r"has shape \(\d+, 2\); expected \(\d+, 3\)"),
    "the positive class": (lambda p: p[:, 1], r"has shape \(\d+,\); expected"),
    "too few rows": (lambda p: p[1:], r"has shape \(\d+, 3\); expected"),
}
FORMS = {**SAME, **ROUNDED, **{name: form for name, (form, _) in NOT_PROBABILITIES.items()}}


@pytest.mark.parametrize("make", [rule, ensemble])
@pytest.mark.parametrize("form", NOT_PROBABILITIES)
def test_what_is_no_probability_is_refused(make, form):
    message = NOT_PROBABILITIES[form][1]
    with pytest.raises((ValueError, TypeError), match=f"predict_proba of Foreign.*{message}"):
        make(Foreign(form)).fit(X, Y).predict(X)


@pytest.mark.parametrize("make", [rule, ensemble])
@pytest.mark.parametrize("form", [*SAME, *LABELS])
def test_other_forms_of_probabilities_and_labels_decide_the_same(make, form):
    found = make(Foreign(form)).fit(X, Y).predict_cost(X)
    np.testing.assert_allclose(found, make(Foreign()).fit(X, Y).predict_cost(X))


class Unnamed(Foreign):
    """The repr of a classifier takes longer than its estimates for a row."""

    def __repr__(self, N_CHAR_MAX=700):  # noqa: N803
        raise AssertionError("predictions need no name")


@pytest.mark.parametrize("make", [rule, ensemble])
def test_predictions_need_no_name_of_the_classifier(make):
    make(Unnamed()).fit(X, Y).predict(X)


@pytest.mark.parametrize("form", ROUNDED)
def test_rounded_probabilities_are_probabilities(form):
    found = rule(Foreign(form)).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(found, FORMS[form](Foreign().fit(X, Y).predict_proba(X)))


@pytest.mark.parametrize("wrong", ["logits", "logarithms", "percent", "rows of zeros"])
def test_functions_and_displays_refuse_them_as_well(wrong):
    p = FORMS[wrong](Foreign().fit(X, Y).predict_proba(X))
    prior, costs = np.full(3, 1 / 3), {"cost_matrix": [[0, 1], [5, 0]]}
    two = Foreign(wrong).fit(X, Y > 0)
    calls = [
        lambda: adjust_prior(p, prior, prior),
        lambda: estimate_prior(p, prior),
        lambda: CostThresholdDisplay.from_estimator(two, X, Y > 0, **costs),
    ]
    if wrong != "rows of zeros":  # which are probabilities of one class
        calls.append(lambda: CostThresholdDisplay.from_predictions(Y > 0, p[:, 1], **costs))
    for call in calls:
        with pytest.raises(ValueError, match="expected probabilities"):
            call()


# ---------------------------------------------------------------------------------- labels


class Numbered(GaussianNB):
    """Takes no labels but 0 .. K-1, as XGBoost."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        Numbered.n_fits += 1
        if not np.array_equal(np.unique(y), np.arange(3)):
            raise ValueError("Invalid classes inferred from unique values of `y`")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("make", [rule, ensemble])
def test_labels_are_passed_on_as_they_are(make):
    Numbered.n_fits = 0
    with pytest.raises(ValueError, match="Invalid classes inferred"):
        make(Numbered()).fit(X, NAMES[Y])
    assert Numbered.n_fits == 1  # the error is raised at once
    encoder = LabelEncoder()
    model = make(Numbered()).fit(X, encoder.fit_transform(NAMES[Y]))
    expected = make(GaussianNB()).fit(X, NAMES[Y]).predict(X)
    np.testing.assert_array_equal(encoder.inverse_transform(model.predict(X)), expected)


@pytest.mark.parametrize("make", [rule, ensemble])
@pytest.mark.parametrize("weights", [None, [1, 3], np.array([0.2, 0.8])])
def test_soft_votes_with_weights(make, weights):
    parts = [("a", LogisticRegression()), ("b", GaussianNB())]
    voting = VotingClassifier(parts, voting="soft", weights=weights)
    model = make(voting).fit(X, NAMES[Y])
    if make is rule:
        expected = voting.fit(X, NAMES[Y]).predict_proba(X)
        np.testing.assert_allclose(model.predict_proba(X), expected)
    assert set(model.predict(X)) <= set(NAMES)


# ----------------------------------------------------------------------------- calibration

BY_LABEL = np.argsort(Y, kind="stable")


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_calibration_needs_all_classes_in_each_fold(calibration):
    rows, y = X[BY_LABEL], NAMES[Y[BY_LABEL]]
    with pytest.raises(ValueError, match="A fold for calibration lacks the classes"):
        rule(GaussianNB(), calibration=calibration, cv=KFold(3)).fit(rows, y)
    shuffled = KFold(3, shuffle=True, random_state=0)
    rule(GaussianNB(), calibration=calibration, cv=shuffled).fit(rows, y)


class Recorded(KFold):
    """Draws other folds at each call, and keeps those of the last one."""

    def split(self, X, y=None, groups=None):
        self.folds = [*super().split(X, y, groups)]
        return iter(self.folds)


def test_the_folds_that_are_checked_calibrate():
    rare = np.where(np.arange(600) < 12, 2, Y % 2)
    cv, n_refused = Recorded(5, shuffle=True, random_state=np.random.RandomState(0)), 0
    for _ in range(20):
        try:
            rule(GaussianNB(), cost_matrix=None, calibration="sigmoid", cv=cv).fit(X, rare)
        except ValueError:
            n_refused += 1
            assert any(len(set(rare[rows])) < 3 for fold in cv.folds for rows in fold)
        else:
            assert all(len(set(rare[rows])) == 3 for fold in cv.folds for rows in fold)
    assert 0 < n_refused < 20


def test_samples_without_weight_calibrate_no_class():
    cv = StratifiedKFold(3)
    _, unseen = next(cv.split(X, Y))
    weight = np.ones(600)
    weight[unseen[Y[unseen] == 1]] = 0
    model = rule(GaussianNB(), calibration="sigmoid", cv=cv)
    with pytest.raises(ValueError, match=r"lacks the classes \[1\]"):
        model.fit(X, Y, sample_weight=weight)
    weight = np.where(Y == 1, 0.0, 1.0)  # a class without any weight is none
    rule(GaussianNB(), calibration="sigmoid", cv=cv).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("routes", [False, True])
@pytest.mark.parametrize("cv", [GroupKFold(3), None])
def test_the_folds_of_the_calibration_keep_groups_together(cv, routes):
    groups = np.arange(600) // 3
    with sklearn.config_context(enable_metadata_routing=routes):
        model = rule(GaussianNB(), calibration="sigmoid", cv=cv).fit(X, Y, groups=groups)
    for seen, unseen in model.estimator_.cv:
        assert not set(groups[seen]) & set(groups[unseen])


@pytest.mark.parametrize("compared", [False, True])
def test_folds_for_calibration_get_the_groups(compared):
    groups = np.arange(len(X)) % 30
    calibrated = CalibratedClassifierCV(GaussianNB(), cv=GroupKFold(3))
    with sklearn.config_context(enable_metadata_routing=True):
        if compared:
            models, folds = {"a": calibrated}, GroupKFold(2)
            table = compare_costs(models, X, Y, cost_matrix=MATRIX, cv=folds, groups=groups)
            assert table.loc["a", "cost"] < table.loc["always 1", "cost"]
        else:
            found = rule(calibrated).fit(X, Y, groups=groups).predict_proba(X)
            assert found.shape == (600, 3)


@pytest.mark.skipif(SKLEARN < (1, 8), reason="needs scikit-learn 1.8")
def test_the_temperature_of_scores_needs_codes_or_strings():
    model = rule(LinearSVC(), calibration="temperature")
    with pytest.raises(ValueError, match=r"wrong for the labels \[1, 2, 3\]; expected 0"):
        model.fit(X, Y + 1)
    expected = model.fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(model.fit(X, (Y + 1).astype(str)).predict_proba(X), expected)


@pytest.mark.skipif(SKLEARN < (1, 8), reason="needs scikit-learn 1.8")
def test_the_fault_of_scikit_learn_that_the_guide_describes():
    """If this fails, the error above and the paragraph of the guide are no longer needed.

    Labels are taken for positions, of which one lies beyond the scores of a row. Scores in C order,
    and folds that end with another class, have those of the next row there, not any memory.
    """
    last_class_first = np.argsort(-Y, kind="stable")
    X_sorted, y_sorted = X[last_class_first], Y[last_class_first]
    calibrated = CalibratedClassifierCV(LogisticRegression(), method="temperature", cv=3)
    losses = [
        log_loss(y, calibrated.fit(X_sorted, y).predict_proba(X_sorted))
        for y in (y_sorted, y_sorted + 1)
    ]
    assert losses[1] > 1.5 * losses[0]


# ---------------------------------------------------------------------- class frequencies


class Reweighted(LogisticRegression):
    """Has a parameter of XGBoost and LightGBM."""

    def __init__(self, scale_pos_weight=1.0):
        super().__init__()
        self.scale_pos_weight = scale_pos_weight


TWO = (Y > 1).astype(int)
RARE = np.array([[0, 1], [5, 0]])


BALANCED = LogisticRegression(class_weight="balanced")
FROZEN = FrozenEstimator(LogisticRegression().fit(X[::2], TWO[::2]))
OTHER_FREQUENCIES = {
    "weights": BALANCED,
    "some weights": make_pipeline(StandardScaler(), LogisticRegression(class_weight={0: 1, 1: 9})),
    "a frozen one": FROZEN,
    "a frozen step": make_pipeline(StandardScaler().fit(X), FROZEN),
    "weight of a class": Reweighted(scale_pos_weight=9),
    "in a search": GridSearchCV(BALANCED, {"C": [1]}, cv=2),
    "in bags": BaggingClassifier(BALANCED, 2),
    "in votes": VotingClassifier([("a", BALANCED)], voting="soft"),
    "in a grid": GridSearchCV(LogisticRegression(), {"class_weight": ["balanced"]}, cv=2),
    "frequencies of the user": GaussianNB(priors=[0.5, 0.5]),
    "frequencies of counts": make_pipeline(MinMaxScaler(), MultinomialNB(class_prior=[0.5, 0.5])),
    "frequencies of bits": BernoulliNB(class_prior=[0.9, 0.1]),
    "equal frequencies": make_pipeline(MinMaxScaler(), MultinomialNB(fit_prior=False)),
}


@pytest.mark.parametrize("make", [rule, ensemble])
@pytest.mark.parametrize("inner", OTHER_FREQUENCIES.values(), ids=OTHER_FREQUENCIES)
def test_prior_needs_the_trained_frequencies_where_they_are_not_known(make, inner):
    model = make(inner, cost_matrix=RARE).fit(X, TWO)
    assert np.isnan(model.class_prior_).all()
    model.decide(X)
    for prior in ({0: 0.5, 1: 0.5}, "estimate"):
        with pytest.raises(ValueError, match=r"not be the shares in the rows.*as train_prior="):
            model.decide(X, prior=prior)

    known = make(inner, cost_matrix=RARE, train_prior={1: 0.4, 0: 0.6}).fit(X, TWO)

    np.testing.assert_array_equal(known.class_prior_, [0.6, 0.4])
    expected = adjust_prior(known.predict_proba(X), [0.6, 0.4], [0.9, 0.1]) @ RARE
    np.testing.assert_allclose(known.predict_cost(X, prior={0: 0.9, 1: 0.1}), expected)


@pytest.mark.parametrize("value", [1, 1.0, None])
def test_parameters_that_change_nothing_leave_the_frequencies_of_the_rows(value):
    for make in (rule, ensemble):
        model = make(Reweighted(value), cost_matrix=RARE).fit(X, TWO)
        np.testing.assert_allclose(model.class_prior_, np.bincount(TWO) / 600)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_calibration_moves_probabilities_back_to_the_frequencies_of_its_rows(calibration):
    model = rule(BALANCED, calibration=calibration, cv=3, cost_matrix=RARE).fit(X, TWO)
    np.testing.assert_allclose(model.class_prior_, np.bincount(TWO) / 600)
    np.testing.assert_allclose(model.predict_proba(X).mean(0), model.class_prior_, atol=0.02)


@pytest.mark.parametrize("make", [rule, ensemble])
@pytest.mark.parametrize(
    "wrong", [{0: 0.5, 1: 0.6}, {0: 1.5, 1: -0.5}, {0: 1}, {"0": 0.5, "1": 0.5}]
)
def test_trained_frequencies_are_checked(make, wrong):
    with pytest.raises(ValueError, match="train_prior=.*expected"):
        make(LogisticRegression(), cost_matrix=RARE, train_prior=wrong).fit(X, TWO)
