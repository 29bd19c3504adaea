"""Files of pipelines that read texts: inputs are strings, and the decisions those of models."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from auxcst_sklearn import BayesMinimumRiskClassifier
from auxcst_sklearn.onnx import to_onnx
from tests.factories import small_mlp
from tests.onnx.files import run
from tests.onnx.unusual import with_unusual

# Words of one letter, capitals, accents, digits, punctuation, and no word at all.
TEXTS = ["Pay a bill", "lost card", "CARD Été stolen", "bill payment 2nd", "Where's my card?"]
TEXTS = [*TEXTS, "I pay the été_bill", "?", ""] * 6
Y = np.array(["card" if "card" in text.lower() else "bill" for text in TEXTS])
RULE = {"cost_matrix": [[0, 1], [3, 0]]}
BAYES = BayesMinimumRiskClassifier(LogisticRegression(), **RULE)
# Texts that X of to_onnx does not hold.
OTHERS = ["a b c pay my CARD", "ÉTÉ été", "unheard of", "card-card", "2nd 2nd bill", "x"]
MODELS = {
    "rule at the end": make_pipeline(TfidfVectorizer(), BAYES),
    "rule around": BayesMinimumRiskClassifier(
        make_pipeline(TfidfVectorizer(), LogisticRegression()), **RULE
    ),
    "pairs of words": make_pipeline(CountVectorizer(ngram_range=(1, 2), binary=True), BAYES),
    "network": make_pipeline(TfidfVectorizer(), small_mlp(**RULE)),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", [list, np.array, pd.Series], ids=["list", "array", "series"])
@pytest.mark.parametrize("kind", MODELS)
def test_texts_are_an_input_of_strings(kind, make):
    model = MODELS[kind].fit(make(TEXTS), Y)

    file = to_onnx(model, make(TEXTS))

    (given,) = file.graph.input
    assert [d.dim_param for d in given.type.tensor_type.shape.dim] == ["n"]
    assert given.type.tensor_type.elem_type == 8  # strings
    for texts in (TEXTS, OTHERS):
        found = run(file, np.array(texts, object))
        np.testing.assert_allclose(found["probability"], model.predict_proba(texts), atol=1e-5)
        decisions = json.loads({m.key: m.value for m in file.metadata_props}["decisions"])
        assert [decisions[i] for i in found["index"]] == model.predict(texts).tolist()


def test_texts_beside_numbers():
    X = pd.DataFrame({"text": TEXTS, "size": np.arange(len(TEXTS)) / 10})
    steps = make_column_transformer((TfidfVectorizer(), "text"), ("passthrough", ["size"]))
    model = make_pipeline(steps, BAYES)
    found = run(to_onnx(model.fit(X, Y), X), X)
    np.testing.assert_allclose(found["probability"], model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    "words",
    [
        TfidfVectorizer(ngram_range=(1, 2), stop_words=["the"]),  # "pay été_bill" is a pair
        TfidfVectorizer(sublinear_tf=True),  # differs where a word occurs twice, as in no text here
        TfidfVectorizer(analyzer="char", ngram_range=(1, 2)),  # differs for two blanks
    ],
    ids=["stop words", "logarithm", "characters"],
)
def test_words_that_the_file_would_read_otherwise_are_refused(words):
    model = make_pipeline(words, BAYES)
    with pytest.raises(ValueError, match="differs from the model .* converted TfidfVectorizer"):
        to_onnx(model.fit(TEXTS, Y), with_unusual(np.array(TEXTS, object)))
    X = pd.DataFrame({"text": TEXTS, "size": np.arange(len(TEXTS)) / 10})
    steps = make_column_transformer((words, "text"), ("passthrough", ["size"]))
    model = make_pipeline(steps, BAYES)
    with pytest.raises(ValueError, match="differs from the model .* converted ColumnTransformer"):
        to_onnx(model.fit(X, Y), with_unusual(X))


def test_classifiers_around_pipelines_of_texts():
    words = make_pipeline(TfidfVectorizer(), LogisticRegression())
    votes = VotingClassifier([("words", words)], voting="soft", flatten_transform=False)
    model = BayesMinimumRiskClassifier(votes, **RULE).fit(TEXTS, Y)
    found = run(to_onnx(model, TEXTS), np.array(OTHERS, object))
    np.testing.assert_allclose(found["probability"], model.predict_proba(OTHERS), atol=1e-5)
    stack = BayesMinimumRiskClassifier(StackingClassifier([("words", words)]), **RULE)
    with pytest.raises(ValueError, match="StackingClassifier cannot be converted by skl2onnx"):
        to_onnx(stack.fit(TEXTS, Y), TEXTS)


def test_one_text_of_many_that_differs_is_enough():
    """Only at the steps of an isotonic calibration a few rows may differ."""
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), BAYES).fit(TEXTS, Y)
    texts = TEXTS * 10
    to_onnx(model, texts)
    with pytest.raises(ValueError, match=r"differs from the model in 0\.\d% of the rows"):
        to_onnx(model, [*texts, "card stolen stolen"])
