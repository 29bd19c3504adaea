"""MLflow records pipelines and searches by itself, and the epochs by skorch's logger."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.slow

# In a process of its own, because autolog replaces methods of scikit-learn.
SCRIPT = """
import sys
import mlflow
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import MlflowLogger
from auxcst_sklearn.metrics import make_cost_scorer
from tests.factories import small_mlp

X = np.random.default_rng(0).normal(size=(60, 3))
y = (X[:, 0] > 0).astype(int)
M = np.array([[0.0, 1.0], [5.0, 0.0]])
mlflow.set_tracking_uri(sys.argv[1])
mlflow.sklearn.autolog(log_models=False, log_datasets=False, silent=True)

def recorded(model):
    with mlflow.start_run() as run:
        model.fit(X, y)
    return mlflow.get_run(run.info.run_id).data

model = small_mlp(cost_matrix=M, max_epochs=2)
pipeline = make_pipeline(StandardScaler(), model)
found = recorded(pipeline)
assert found.params["costsensitiveauxmlp__max_epochs"] == "2", found.params
assert np.isclose(found.metrics["training_score"], pipeline.score(X, y)), found.metrics

search = GridSearchCV(model, {"alpha": [0, 0.2]}, cv=2, scoring=make_cost_scorer(cost_matrix=M))
found = recorded(search)
assert found.params["best_alpha"] == str(search.best_params_["alpha"]), found.params
assert np.isclose(found.metrics["best_cv_score"], search.best_score_), found.metrics

for n_networks in (1, 2):
    model = small_mlp(n_networks=n_networks, max_epochs=3, callbacks=[MlflowLogger()])
    found = recorded(model)
    assert np.isclose(found.metrics["train_loss"], model.history_[-1]["train_loss"]), found.metrics
"""


@pytest.mark.skipif(find_spec("mlflow") is None, reason="needs mlflow")
def test_mlflow_records_pipelines_searches_and_epochs(tmp_path):
    uri = (tmp_path / "runs").as_uri()
    environment = {**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true"}
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, uri], capture_output=True, text=True, env=environment
    )
    assert ended.returncode == 0, ended.stderr
