"""
A search on a cluster
=====================
A search consists of many independent fits, so one line of code distributes it over the machines of
a cluster. Here the cluster is the local machine.
"""

# %%
# With ``dask.distributed``, joblib sends each fit to a worker; ``Client("tcp://scheduler:8786")``
# would connect to a cluster of machines. Without dask, local processes do the same.
from contextlib import ExitStack

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from joblib import parallel_config
from matplotlib.ticker import LogLocator, NullFormatter
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.metrics import cost_scorer

try:
    from dask.distributed import Client
except ImportError:
    Client = None

sklearn.set_config(enable_metadata_routing=True)
X, y = make_classification(1500, n_informative=8, weights=[0.9], flip_y=0, random_state=0)
cost = np.where(y[:, np.newaxis] == 1, [80.0, 5], [0, 5])  # EUR: let it pass, check it

# %%
# Each fit uses one thread. For long trainings ``checkpoint_dir="checkpoints/{fit}"``, on a disk
# that all workers share, saves the progress of a machine that fails.
network = CostSensitiveAuxMLP(n_networks=1, max_epochs=12, random_state=0)
choices = {"depth": [1, 2, 3, 5], "width": [16, 64, 128], "alpha": [0, 0.2, 0.5]}
settings = {"scoring": cost_scorer, "cv": 3, "n_jobs": 2, "error_score": "raise"}
search = RandomizedSearchCV(network, choices, n_iter=6, random_state=0, **settings)
boosting = BayesMinimumRiskClassifier(HistGradientBoostingClassifier(random_state=0))
rival = GridSearchCV(boosting, {"estimator__max_leaf_nodes": [4, 8, 31]}, **settings)
with ExitStack() as stack:
    if Client is not None:
        stack.enter_context(Client(processes=False, n_workers=2, threads_per_worker=1,
                                   dashboard_address=None))  # fmt: skip
    stack.enter_context(parallel_config(backend="loky" if Client is None else "dask"))
    search.fit(X, y, cost=cost)
    rival.fit(X, y, cost=cost)
for name, found in {"network": search, "boosting": rival}.items():
    print(f"{name}: {-found.best_score_:.2f} EUR with {found.best_params_}")

# %%
# Cost against training time. The bars are standard errors over three folds; all candidates share
# the folds, so that differences between them are more certain than the bars suggest.
fig, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
titles = []
colors = {"network": "#0072B2", "boosting": "#D55E00"}
for (name, color), found in zip(colors.items(), [search, rival]):
    results = found.cv_results_
    folds = -np.array([results[f"split{k}_test_score"] for k in range(3)])
    mean, error = folds.mean(axis=0), folds.std(axis=0, ddof=1) / np.sqrt(3)
    seconds = results["mean_fit_time"]
    ax.errorbar(seconds, mean, error, fmt="o", capsize=3, color=color, label=name)
    best = ", ".join(f"{key.split('__')[-1]} {value}" for key, value in found.best_params_.items())
    titles.append(f"best {name}: {best}")
ax.set_title("\n".join(titles), fontsize="medium")
ax.set(xscale="log", xlabel="fit time (s)", ylabel="cross-validated cost (EUR per case)")
ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
ax.xaxis.set_major_formatter("{x:g}")
ax.xaxis.set_minor_formatter(NullFormatter())
ax.legend()
plt.show()
sklearn.set_config(enable_metadata_routing=False)  # for the pages after this one

# %%
# The best network costs less than the best boosting here, but its fit takes several times as
# long. The bars of many candidates overlap, so that the choice among them is not certain.
