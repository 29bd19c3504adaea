"""Which samples the networks of a fit train on and hold out, in which order, and with what."""

from __future__ import annotations

import torch
from skorch.callbacks import Callback

from auxcst_sklearn.losses import Squared

# What leaves samples as they are on their way into the network.
AS_THEY_ARE = {"standardize": False, "n_bins": 0}


class Seen(Callback):
    """Notes the numbers of the samples in each batch of each network, by their values in X."""

    def __init__(self, X):
        self.number = {row.tobytes(): i for i, row in enumerate(X)}
        self.trained, self.evaluated = [], []

    def on_train_begin(self, net, **kwargs):
        first = next(part for part in net.module_.modules() if not [*part.children()])
        self.hook = first.register_forward_pre_hook(self._note)

    def on_train_end(self, net, **kwargs):
        self.hook.remove()

    def _note(self, module, args):
        numbers = [[self.number[row.tobytes()] for row in rows] for rows in args[0].numpy()]
        (self.trained if torch.is_grad_enabled() else self.evaluated).append(numbers)

    @property
    def held_out(self):
        """The samples that each network holds out; few enough for one batch.

        Those of several networks are in order, and smaller folds are padded with the first sample.
        """
        folds = self.evaluated[0]
        return folds if len(folds) == 1 else [fold[: fold.index(max(fold)) + 1] for fold in folds]


class Noting(Squared):
    """Notes the targets of each batch of a training."""

    targets = []

    def __call__(self, outputs, target):
        if torch.is_grad_enabled():
            self.targets.append(target)
        return super().__call__(outputs, target)


def held_out(model, X, y, **given):
    """The samples that each network of a model holds out in a fit."""
    seen = Seen(X)
    model.set_params(callbacks=[seen], **AS_THEY_ARE).fit(X, y, **given)
    return seen.held_out
