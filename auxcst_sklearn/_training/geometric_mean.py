"""Weighted geometric means of probabilities, products of their powers; a temperature is one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.model_selection import KFold

from .temperature import PRIOR_ROWS
from .threads import one_blas_thread

# A member with less than this share of the largest weight is dropped.
LEAST_SHARE = 0.02
# From this number of classes on there are many: probabilities of several networks are combined by
# their geometric mean, because the arithmetic mean is less sure than each of them, the more so the
# more classes there are; and the rule learns a temperature by default.
MANY_CLASSES = 10
# Loss of a unit of weight: a member that changes nothing has none.
PRICE = 1e-5
# Steps from the weights to a member alone.
STEPS = (0, 0.25, 0.5, 0.75, 1)
# With fewer rows, no weights of several members are learnt.
FEWEST_ROWS = 50


def geometric_mean(weights: NDArray[np.float64], logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities (n, K) in proportion to the product of p_m ** w_m, from logs (M, n, K)."""
    return softmax(np.tensordot(weights, logs, 1), axis=1)


def mean_weights(
    logs: NDArray[np.float64],
    label: NDArray[np.intp],
    sample_weight: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Weights (M,) of least log loss, none negative, from log probabilities (M, n, K).

    Their sum is free, so that they hold a temperature, with a prior against sums above 1. Members
    that add next to nothing have weight 0; where none is better than a guess, the best has one.
    """
    n_members, n, _ = logs.shape
    weight = np.ones(n) if sample_weight is None else sample_weight
    share = weight / weight.sum()
    # Weights above 1 count as repeated rows; smaller weights do not change the number of rows.
    prior = PRIOR_ROWS / max(weight.sum(), n)
    index = np.arange(n)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        score = log_softmax(np.tensordot(weights, logs, 1), axis=1)
        # The gradient of the log loss with respect to a weight is the expected log probability of
        # the member under the mean, minus its log probability of the label.
        expected = np.einsum("nk,mnk->mn", np.exp(score), logs)
        above = max(weights.sum() - 1, 0)
        penalty = prior * above**2 + PRICE * weights.sum()
        slope = 2 * prior * above + PRICE
        return (
            penalty - share @ score[index, label],
            slope + (expected - logs[:, index, label]) @ share,
        )

    kept = np.ones(n_members, dtype=bool)
    weights = np.full(n_members, 1 / n_members)
    while True:
        # A dropped member is held at zero instead of being removed, so that positions stay those of
        # the members. The loop ends after at most M rounds.
        bounds = [(0.0, None if keep else 0.0) for keep in kept]
        with one_blas_thread():
            weights = minimize(loss, weights * kept, jac=True, method="L-BFGS-B", bounds=bounds).x
        dropped = kept & (weights < LEAST_SHARE * weights.max())
        if not dropped.any():
            break
        kept &= ~dropped
    if not weights.any():
        alone = [loss(one)[0] for one in np.eye(n_members)]
        # No member is better than a guess. A small weight on the best one gives nearly equal
        # probabilities, and keeps its order of the classes.
        weights[int(np.argmin(alone))] = LEAST_SHARE
    return weights


def shift_to_networks(
    weights: NDArray[np.float64],
    member: int,
    n_networks: int,
    logs: Sequence[NDArray[np.float64]],
    label: NDArray[np.intp],
    sample_weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The weights, or weights nearer to a member alone, the mean of `n_networks`.

    Log probabilities (M, n, K) are by a network, by a second one, and by the mean of both, of
    rows that neither has seen. The part of the loss that networks do not share is divided by their
    number, so that two show what more are worth. Gains below two standard errors are noise.
    """
    index = np.arange(len(label))
    if len(index) < FEWEST_ROWS:
        return weights
    alone, losses = np.eye(len(weights))[member], []
    candidates = [weights + step * (alone - weights) for step in STEPS]
    for one in candidates:
        first, second, both = (-np.log(geometric_mean(one, part)[index, label]) for part in logs)
        single = (first + second) / 2
        # Averaging two networks removes half of the part of the loss that they do not share;
        # averaging n removes a share of 1 - 1 / n, which is this multiple of the gain of two.
        losses.append(single + 2 * (1 - 1 / n_networks) * (both - single))
    gains, share = losses[0] - np.array(losses), sample_weight / sample_weight.sum()
    best = int(np.argmax(gains @ share))
    gain = gains[best] @ share
    # The standard error of a weighted mean of independent rows.
    noise = np.linalg.norm(share * (gains[best] - gain))
    return candidates[best] if gain > 2 * noise else weights


def weights_if_better(
    logs: NDArray[np.float64],
    label: NDArray[np.intp],
    sample_weight: NDArray[np.float64] | None = None,
    number: NDArray[np.intp] | None = None,
    errors: float = 1.0,
) -> NDArray[np.float64] | None:
    """The weights, if the ensemble is better than its last member alone by some standard `errors`.

    Both get the weights of other samples, in five folds; the standard error is that of the
    difference of their log losses. Rows with a common `number` are of one sample.
    """
    n = len(label)
    weight = np.ones(n) if sample_weight is None else sample_weight
    number = np.arange(n) if number is None else number
    _, first, sample = np.unique(number, return_index=True, return_inverse=True)
    if len(first) < FEWEST_ROWS:
        return None
    gain, sample = np.empty(n), first.argsort().argsort()[sample]
    for _, fold in KFold(5, shuffle=True, random_state=0).split(first):
        unseen = np.isin(sample, fold)
        seen, losses = ~unseen, []
        # The output alone also gets a weight, which is its temperature. Only the gain beyond a
        # better temperature counts for the heads.
        for members in (logs[-1:], logs):
            weights = mean_weights(members[:, seen], label[seen], weight[seen])
            p = geometric_mean(weights, members[:, unseen])
            losses.append(-np.log(p[np.arange(len(p)), label[unseen]]))
        gain[unseen] = losses[0] - losses[1]
    share = weight / weight.sum()
    mean = share @ gain
    # Rows of one sample are added up first, because their errors are not independent.
    noise = np.linalg.norm(np.bincount(sample, share * (gain - mean)))
    return mean_weights(logs, label, sample_weight) if mean > errors * noise else None
