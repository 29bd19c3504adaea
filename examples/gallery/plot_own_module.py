"""
Wrapping your own torch module
==============================
``CostSensitiveAuxNet`` takes any torch module, finds its hidden layers, and adds to each a head
that estimates the costs. The module itself is not changed.
"""

# %%
# Simulated vibrations of bearings, 128 values each. A bearing is sound, or has a worn ring (a
# faint tone at a random phase) or a cracked ball (knocks). Costs in euros: row = true state,
# column = state that we treat it as.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from torch import nn

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxNet
from auxcst_sklearn.metrics import mean_cost

NAMES = ["sound", "worn", "cracked"]
M = np.array([[0, 40, 200], [150, 0, 100], [3000, 900, 0]])
rng = np.random.default_rng(0)
y = rng.choice(3, size=2400, p=[0.7, 0.2, 0.1])
t = np.arange(128)
tone = 0.6 * np.sin(0.9 * t + rng.uniform(0, 6.3, size=(len(y), 1)))
knocks = 2.5 * np.exp(-((t + rng.integers(0, 32, size=(len(y), 1))) % 32) / 2.0)
fault = np.select([y[:, None] == 1, y[:, None] == 2], [tone, 0.7 * knocks])
X = (fault + rng.normal(size=fault.shape)).astype(np.float32)
X, X_test, y, y_test, _, fault = train_test_split(
    X, y, fault, train_size=1200, stratify=y, random_state=0
)

# %%
# An ordinary module, with any number of outputs: a layer with one output per class replaces its
# last layer.


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.ears = nn.Sequential(
            nn.Conv1d(1, 16, 9, padding=4), nn.ReLU(), nn.MaxPool1d(4),
            nn.Conv1d(16, 32, 9, padding=4), nn.ReLU(), nn.MaxPool1d(4),
            nn.Conv1d(32, 32, 5, padding=2), nn.ReLU(), nn.AdaptiveMaxPool1d(1),
        )  # fmt: skip
        self.last = nn.Linear(32, 10)

    def forward(self, x):
        return self.last(self.ears(x.unsqueeze(1)).flatten(1))


model = CostSensitiveAuxNet(Listener, cost_matrix=M, max_epochs=20, random_state=0).fit(X, y)
print("layers with a head:", model.hidden_layers_)

# %%
# Boosting uses the values of the signal as columns, in which a tone at a random phase is hard to
# detect. Features made for the task, here the spectrum, help most.
boosting = BayesMinimumRiskClassifier(
    HistGradientBoostingClassifier(early_stopping=True, random_state=0), cost_matrix=M
)
spectrum, spectrum_test = (abs(np.fft.rfft(signal)) for signal in (X, X_test))
decisions = dict(zip([*model.hidden_layers_, "output"], model.staged_predict(X_test)))
decisions["boosting, samples"] = boosting.fit(X, y).predict(X_test)
decisions["boosting, spectrum"] = boosting.fit(spectrum, y).predict(spectrum_test)
for name, decision in decisions.items():
    print(f"{mean_cost(y_test, decision, cost_matrix=M):6.1f} EUR per bearing: {name}")

# %%
# Left: the input of the models in grey; the fault hidden in it is not part of the input. Right:
# cost of the decisions of each layer, with 95 % intervals.
fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
for k in range(3):
    left.plot(t, X_test[y_test == k][0] - 7 * k, linewidth=0.8, color="0.6")
    left.plot(t, fault[y_test == k][0] - 7 * k, linewidth=1.5, color="#D55E00")
left.set_yticks([0, -7, -14], NAMES)
left.set(xlabel="sample", title="a signal of each class (grey), its fault")
paid = np.array([M[y_test, decision] for decision in decisions.values()])
error = 1.96 * paid.std(axis=1, ddof=1) / np.sqrt(len(y_test))
right.errorbar(paid.mean(axis=1), list(decisions), xerr=error, fmt="o", capsize=4, color="#0072B2")
right.invert_yaxis()
right.set(xlabel="EUR per bearing; bars: 95 % intervals, not paired", xlim=(0, None))
plt.show()

# %%
# The deeper the layer, the lower the cost of its decisions. The network finds patterns in the
# signal that boosting does not. On the spectrum boosting costs as little as the network, and is
# faster: if you know which features to make, you need no network here.
