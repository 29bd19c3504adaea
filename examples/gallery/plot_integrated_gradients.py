"""
Which part of a signal decides?
===============================
A monitor raises an alarm if a beat of the heart has a late wave, and a missed wave costs twenty
times an alarm. Integrated gradients show which steps of a signal speak for the alarm, in currency.
"""

# %%
# Simulated beats: a sharp peak, and in one of five beats a wave after it.
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from auxcst_sklearn import CostSensitiveAuxNet

rng = np.random.default_rng(0)
n, time = 800, np.linspace(0, 1, 80)
y = (rng.uniform(size=n) < 0.2).astype(int)
start = rng.uniform(0.2, 0.4, (n, 1))
peak = np.exp(-(((time - start) / 0.02) ** 2))
wave = 0.35 * np.exp(-(((time - start - 0.35) / 0.05) ** 2))
X = (peak + y[:, None] * wave + rng.normal(0, 0.1, (n, 80)))[:, None].astype(np.float32)


def network():
    """Two convolutions over time, and their largest values."""
    return nn.Sequential(
        nn.Conv1d(1, 16, 9, padding=4),
        nn.ReLU(),
        nn.Conv1d(16, 16, 9, padding=4),
        nn.ReLU(),
        nn.AdaptiveMaxPool1d(1),
        nn.Flatten(),
        nn.Linear(16, 2),
    )


cost_matrix = [[0, 1], [20, 0]]  # an alarm costs 1, a missed wave 20
model = CostSensitiveAuxNet(network, cost_matrix=cost_matrix, max_epochs=30, random_state=0)
model.fit(X[:600], y[:600])
print(f"mean cost {-model.score(X[600:], y[600:]):.3f}, never an alarm {20 * y[600:].mean():.3f}")

# %%
# `to_module` returns all networks, with temperature and costs, as one differentiable torch module.
# What no alarm costs more than an alarm is explained by its gradients on the way from an empty
# signal to the beat. Their mean, times the signal, adds up to the difference of both costs.
module = model.to_module()
beat = torch.from_numpy(X[600:][model.predict(X[600:]) == 1][:1])
path = torch.linspace(0, 1, 200)[:, None, None] * beat
path.requires_grad_(True)
cost = module(path)
difference = cost[:, 0] - cost[:, 1]
(slopes,) = torch.autograd.grad(difference.sum(), path)
share = (slopes.mean(dim=0) * beat[0]).squeeze().numpy()
print(f"sum of the shares {share.sum():.2f}, difference {(difference[-1] - difference[0]):.2f}")

figure, (above, below) = plt.subplots(2, sharex=True, layout="constrained")
above.plot(time, beat.squeeze(), color="#0072B2")
above.set(ylabel="signal", title="A beat that raises an alarm")
below.bar(time, share, width=time[1], color="#D55E00")
below.set(xlabel="time (s)", ylabel="speaks for the alarm")
plt.show()
