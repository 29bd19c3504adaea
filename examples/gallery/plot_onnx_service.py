"""
A service from an ONNX file
===========================
``to_onnx`` writes the whole decision to one file: scales, networks, temperature, costs. A service
runs it with onnxruntime, without torch or scikit-learn.
"""

# %%
# A network for payments, whose amounts are known when deciding. This example needs the extras
# ``onnx`` and ``serve``.
import json
import time

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import make_classification

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.onnx import to_onnx

X, y = make_classification(3000, weights=[0.95], flip_y=0, class_sep=0.7, random_state=0)
amount = np.random.default_rng(0).lognormal(4, 1, size=len(y))
X = np.column_stack([X, np.log(amount)])
C = binary_cost_matrices(fp_cost=5, tp_cost=5, fn_cost=amount, classes=[0, 1], pos_label=1)
model = CostSensitiveAuxMLP(max_epochs=15, random_state=0).fit(X[:1500], y[:1500], cost=C[:1500])

# %%
# The model takes rows and their cost matrices, and returns costs, the index of the cheapest
# class, and probabilities. Here it stays in memory; ``to_onnx(model, X, "model.onnx")`` writes it
# to a file.
file = to_onnx(model, X[:500]).SerializeToString()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(file, options)
decisions = json.loads(session.get_modelmeta().custom_metadata_map["decisions"])
rows, matrices = X[1500:], C.values[1500:]
cost, index, probability = session.run(None, {"X": rows, "cost_matrices": matrices})
print(f"{len(file) / 1e6:.1f} MB, decisions {decisions}")
print("same decisions:", np.mean(np.array(decisions)[index] == model.predict(rows, cost=matrices)))
print(
    "same costs:", np.allclose(cost, model.predict_cost(rows, cost=matrices), rtol=1e-4, atol=1e-6)
)

# %%
# Latency: median and range of the middle 80 % of 60 calls in one thread. It depends on the
# machine; what matters is the ratio of the two, and that a batch takes far less time than its
# rows one by one.


def latency(answer, n):
    """Milliseconds of a call with n rows: 10 %, 50 % and 90 % quantile."""
    taken = []
    for start in np.arange(60) * n % (len(rows) - n + 1):
        part = slice(start, start + n)
        begin = time.perf_counter()
        answer(rows[part], matrices[part])
        taken.append(1e3 * (time.perf_counter() - begin))
    return np.quantile(taken, [0.1, 0.5, 0.9])


ways = {
    "estimator": lambda X, C: model.predict(X, cost=C),
    "ONNX file": lambda X, C: session.run(["index"], {"X": X, "cost_matrices": C}),
}
sizes = [1, 4, 16, 64, 256, 1024]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, answer), color in zip(ways.items(), ["#0072B2", "#D55E00"]):
    low, median, high = np.array([latency(answer, n) for n in sizes]).T
    ax.plot(sizes, median, "o-", color=color, label=name)
    ax.fill_between(sizes, low, high, color=color, alpha=0.2, linewidth=0)
ax.set(xscale="log", yscale="log", xlabel="rows in a call", ylabel="time per call (ms)")
ax.set_xticks(sizes, sizes)
ax.set_title("median; bands: from the 10 % to the 90 % quantile", fontsize="medium")
ax.legend()
ax.grid(alpha=0.3)
plt.show()

# %%
# The results are the same, and the ONNX file is faster, especially for a single row.
