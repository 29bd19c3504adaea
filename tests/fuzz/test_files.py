"""ONNX files of random pipelines, which agree with these."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from tests.factories import small_stack, table_boosting
from tests.fuzz.conftest import FUZZ, examples

NUMBERS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "gaps": lambda rng, n: np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n)),
    "grid": lambda rng, n: rng.integers(1, 9, size=n) / 10,
    "heavy": lambda rng, n: np.exp(3 * rng.normal(size=n)),
    "time": lambda rng, n: 1.7e9 + rng.uniform(0, 1e5, size=n),
    "counts": lambda rng, n: rng.poisson(2, size=n),
    "single": lambda rng, n: rng.normal(size=n).astype(np.float32),
}
TEXTS = {
    "text": lambda rng, n: rng.choice(np.array(["a", "b", "c"], object), size=n),
    "texts with gaps": lambda rng, n: rng.choice(np.array(["a", "b", None], object), size=n),
    "categories": lambda rng, n: pd.Categorical(rng.choice(["u", "v", "w"], size=n)),
}
IMPUTERS = st.sampled_from(["mean", "median", "most_frequent"])
SCALERS = st.sampled_from([StandardScaler(), MinMaxScaler(), RobustScaler()])
UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
ORDINAL = OrdinalEncoder(**UNKNOWN, encoded_missing_value=-2)
ENCODERS = st.sampled_from([OneHotEncoder(handle_unknown="ignore", sparse_output=False), ORDINAL])
SMALL = {"n_estimators": 3, "random_state": 0}
SINGLE = [
    LogisticRegression(),
    GaussianNB(),
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(**SMALL),
    GradientBoostingClassifier(**SMALL),
    AdaBoostClassifier(**SMALL),
    HistGradientBoostingClassifier(max_iter=3, random_state=0),
]


@st.composite
def classifiers(draw, may_stack):
    """A classifier of numbers, alone or inside of a stack."""
    one, two = draw(st.sampled_from(SINGLE)), draw(st.sampled_from(SINGLE))
    if not may_stack or draw(st.integers(0, 4)):
        return one
    return StackingClassifier([("one", one), ("two", two)], cv=2, passthrough=draw(st.booleans()))


@st.composite
def models(draw, columns):
    """A rule or an ensemble, whose members read a table with these columns."""
    names = {
        kind: [name for name in columns if name in kinds]
        for kind, kinds in (("numbers", NUMBERS), ("texts", TEXTS))
    }

    def member(may_stack=False):
        if draw(st.integers(0, 2)) == 0:
            return table_boosting(max_iter=4, random_state=0)
        numbers = make_pipeline(SimpleImputer(strategy=draw(IMPUTERS)), draw(SCALERS))
        steps = make_column_transformer(
            (numbers, names["numbers"]), (draw(ENCODERS), names["texts"])
        )
        return make_pipeline(steps, draw(classifiers(may_stack)))

    calibration = draw(st.sampled_from([None, "sigmoid", "ensemble"]))
    if calibration != "ensemble":  # which, like a calibration, asks for probabilities first
        one = member(may_stack=calibration is None)
        return BayesMinimumRiskClassifier(one, calibration=calibration, cv=2)
    members = [("one", member()), ("two", member())]
    if draw(st.integers(0, 9)) == 0 and FUZZ > 1:  # to export a network takes seconds
        members.append(("network", small_stack()))
    return CostSensitiveEnsembleClassifier(members, cv=2, random_state=0)


@examples(5)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")
def test_a_file_agrees_with_its_model_on_new_rows(data):
    onnx, files = map(pytest.importorskip, ("auxcst_sklearn.onnx", "tests.onnx.files"))
    kinds = st.sampled_from([*NUMBERS, *TEXTS])
    columns = data.draw(st.lists(kinds, min_size=1, max_size=4, unique=True))
    columns = [*columns, "normal"] if "normal" not in columns else columns
    model, seed = data.draw(models(columns)), data.draw(st.integers(0, 99))
    n_classes, known = data.draw(st.integers(2, 3)), data.draw(st.booleans())
    X, Z = (
        pd.DataFrame({name: {**NUMBERS, **TEXTS}[name](rng, 200) for name in columns})
        for rng in map(np.random.default_rng, (seed, seed + 100))
    )
    rng = np.random.default_rng(seed)
    y = np.digitize(X["normal"] + rng.normal(size=200), [0.0, 0.7][: n_classes - 1])
    cost = rng.uniform(1, 9, size=(200, n_classes, n_classes)) if known else None
    model.fit(X, y, cost=cost)

    file = onnx.to_onnx(model, X[: data.draw(st.sampled_from([5, 200]))])

    more = {"cost_matrices": cost} if known else {}
    files.assert_agrees(model, Z, file, cost, sure=0, **more)
