"""The code of the page on other tools, with their newest releases: `make test-tools`."""

from __future__ import annotations

import textwrap
import warnings
from importlib.metadata import version

import numpy as np
import pytest

pytest.importorskip("lightgbm", reason="runs in make test-tools")
pytest.importorskip("optuna_integration", reason="runs in make test-tools")

from auxcst_sklearn import BayesMinimumRiskClassifier
from tests.test_docs import ROOT
from tests.test_pages import BLOCK

PAGE = (ROOT / "docs" / "guide" / "with_your_tools.rst").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the code of the page defines, after it has run from top to bottom."""
    defined = {"__name__": "__main__"}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.chdir(tmp_path_factory.mktemp("tools"))
        warnings.simplefilter("ignore")
        for block in BLOCK.findall(PAGE):
            exec(textwrap.dedent(block), defined)
        yield defined


def test_the_tools_decide_by_the_costs_of_each_payment(names):
    C, X, y = names["costs"](names["X_test"]), names["X_test"], names["y_test"]
    mean_cost, model = names["mean_cost"], names["model"]
    constant = min(C.values[np.arange(len(y)), y].mean(axis=0))
    assert -model.score(X, y) == mean_cost(y, model.predict(X), cost=C) < constant
    np.testing.assert_array_equal(names["service"].predict(X), names["best"].predict(X))
    assert names["search"].best_score_ < 0
    assert names["values"].shape == (3, 5)
    assert names["found"].importances_mean.shape == (6,)


def test_the_service_answers(names):
    from fastapi.testclient import TestClient

    rows = names["X_test"].head(3)
    answer = TestClient(names["app"]).post("/decide", json=rows.to_dict(orient="records"))
    assert answer.json() == names["best"].predict(rows).tolist()


def test_other_boosting_in_the_rule(names):
    from catboost import CatBoostClassifier
    from xgboost import XGBClassifier

    X, y = names["X_train"], names["y_train"]
    text = X.assign(country=X["country"].astype(str))
    of_xgboost = XGBClassifier(n_estimators=20, enable_categorical=True)
    of_catboost = CatBoostClassifier(
        20, cat_features=("country",), verbose=0, allow_writing_files=False
    )
    for boosting, rows in ((of_xgboost, X), (of_catboost, text)):
        model = BayesMinimumRiskClassifier(boosting, cost_matrix=names["costs"]).fit(rows, y)
        assert set(model.predict(rows)) == {0, 1}


def test_the_releases_in_the_table_are_tools_that_exist():
    table = PAGE.partition(".. _table:")[2]
    rows = [
        line.strip().split(",") for line in table.splitlines() if "," in line and "::" not in line
    ]
    assert len(rows) > 5
    for tool, release in rows[1:]:
        assert version(tool).split(".")[0] == release.split(".")[0], tool
