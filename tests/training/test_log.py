import logging

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from auxcst_sklearn import CostSensitiveEnsembleClassifier, CSAEPretrainedMLP
from tests.factories import small_mlp

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.arange(60) % 3


def stopped():
    return small_mlp(max_epochs=50, early_stopping=True, patience=1, learning_rate=0.5)


MODELS = {
    "network": (stopped, "Training: Plan(", "Stopped: no better weights"),
    "pretraining": (
        lambda: CSAEPretrainedMLP(2, 4, max_epochs=1, pretrain_epochs=1),
        "Training: Plan(",
        "    1 ",
    ),
    "ensemble": (
        lambda: CostSensitiveEnsembleClassifier([("dummy", DummyClassifier())], cv=2),
        "dummy: held-out log loss 1.09",
        "dummy: held-out log loss 1.09",
    ),
}


@pytest.mark.parametrize(("make", "first", "last"), MODELS.values(), ids=MODELS)
def test_the_log_has_the_lines_that_verbose_prints(make, first, last, caplog, capsys):
    with caplog.at_level(logging.INFO, "auxcst_sklearn"):
        make().fit(X, Y)
        assert capsys.readouterr().out == ""
        assert caplog.messages[0].startswith(first)
        assert caplog.messages[-1].startswith(last)
        caplog.clear()
        make().set_params(verbose=1).fit(X, Y)
    assert caplog.messages == capsys.readouterr().out.splitlines()
    assert {record.name for record in caplog.records} == {"auxcst_sklearn"}


def test_nothing_is_logged_or_printed_by_default(caplog, capsys):
    stopped().fit(X, Y)
    assert not caplog.records
    assert capsys.readouterr() == ("", "")
