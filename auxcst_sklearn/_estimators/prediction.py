"""What a fitted network estimates: costs and probabilities of rows, head by head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from .._checks.bases import available_if
from .._inputs.arrays import Preprocessor
from .._training.net import CostNet
from ..losses import LOSSES, ProbabilisticLoss
from .decision import DecisionMixin
from .export import OutputModule


class NetDecisionMixin(DecisionMixin):
    """Decisions of an estimator by its net."""

    net_: CostNet
    _inputs: Preprocessor
    hidden_layers_: list[str]

    def _estimated_cost(self, X: ArrayLike) -> np.ndarray:
        rows = self._rows_of(X)
        (estimate,) = self.net_.predict_heads(rows)
        return estimate

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Class probabilities, after the temperature.

        Only for losses with class probabilities, the instances of
        :class:`~auxcst_sklearn.losses.ProbabilisticLoss`.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, columns as in `classes_`.
        """
        rows = self._rows_of(X)
        return self.net_.predict_proba(rows)

    @available_if(lambda self: not self._has_probabilities())
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Minus the estimated costs: larger values mean better classes.

        Only for losses without class probabilities. Where there are probabilities, the order of
        rows by costs adds nothing to theirs, and calibration, which reads a decision function as a
        logit, would be wrong by the threshold of the decision; scikit-learn then uses
        `predict_proba`.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            For two classes one column: the estimated cost of ``classes_[0]`` minus the cost of
            ``classes_[1]``, positive if the second is predicted.
        """
        values = self._of_classes(self._estimated_cost(X))
        return values[:, 0] - values[:, 1] if values.shape[1] == 2 else -values

    def staged_predict_cost(self, X: ArrayLike) -> Iterator[np.ndarray]:
        """Estimate the costs from each head in turn, first hidden layer to output.

        Layers with ``alpha = 0`` have no head, and are skipped. If `cost_matrix` is a function of
        X, the costs are expected costs under the probabilities of each head.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            Estimated costs of one head; the last array equals `predict_cost`.

        Raises
        ------
        ValueError
            If `cost_matrix` is a function of X, and `aux_loss` has no class probabilities.
        """
        if self._deciding_function is None:
            rows = self._rows_of(X)
            yield from self.net_.predict_heads(rows, every_head=True)
            return
        aux_loss = self.net_.criterion_.aux_loss
        if self.hidden_layers_ and not isinstance(aux_loss, ProbabilisticLoss):
            raise ValueError(
                f"cost_matrix is a function of X, by whose costs probabilities decide, but "
                f"aux_loss={aux_loss!r} of the heads has none. Use predict_cost, or an aux_loss "
                "with class probabilities."
            )
        for probability in self.net_.staged_proba(self._rows_of(X)):
            yield self._expected_cost(X, probability)

    def staged_predict(self, X: ArrayLike) -> Iterator[np.ndarray]:
        """Predict from each head in turn, first hidden layer to output.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples.

        Yields
        ------
        ndarray of shape (n_samples,)
            Predicted labels of one head; the last array equals `predict`.
        """
        for cost in self.staged_predict_cost(X):
            yield self._cheapest(cost)

    def to_module(self, output: Literal["cost", "probability"] = "cost") -> nn.Module:
        """Return the fitted networks as one differentiable torch module.

        It computes what `predict_cost` and `predict_proba` do, with scales, temperature, means of
        networks and currency, for tools such as Captum, SHAP and ``torch.export``.

        Parameters
        ----------
        output : {"cost", "probability"}, default="cost"
            What the module returns: the estimated cost of each decision, in currency, or class
            probabilities, for losses that have some.

        Returns
        -------
        torch.nn.Module
            A copy on the CPU, in evaluation mode. It maps a tensor of samples, or arrays by name as
            keyword arguments, to float64 of shape (n_samples, n_decisions) or (n_samples,
            n_classes). Samples have the shape and the type that they had in `fit`; others are
            refused. Where `fit` saw uint8, floats from 0 to 255 are accepted as well, because
            gradients need floats. Values are not checked: the range of pixels must be that of
            `fit`.

        Raises
        ------
        ValueError
            If `output` is neither, the loss has no class probabilities, X had categories, or
            `output` is "cost" and `cost_matrix` is a function.

        Examples
        --------
        >>> import torch
        >>> from sklearn.datasets import load_iris
        >>> from auxcst_sklearn import CostSensitiveAuxMLP
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CostSensitiveAuxMLP(1, 8, max_epochs=2, random_state=0).fit(X, y)
        >>> flowers = torch.tensor(X[:2], requires_grad=True)
        >>> cost = model.to_module()(flowers)
        >>> cost.shape
        torch.Size([2, 3])
        >>> (slopes,) = torch.autograd.grad(cost[:, 0].sum(), flowers)  # in currency per cm
        """
        check_is_fitted(self)
        if output not in ("cost", "probability"):
            raise ValueError(f"output={output!r}; expected 'cost' or 'probability'.")
        if output == "cost" and self._deciding_function is not None:
            raise ValueError(
                "output='cost', but cost_matrix is a function of X, which a torch module cannot "
                "call; expected output='probability', whose probabilities decide with costs."
            )
        if output == "probability" and not self._has_probabilities():
            raise ValueError(
                f"output='probability', but loss={self.loss!r} has no class probabilities; "
                "expected output='cost'."
            )
        return OutputModule(self, output)

    def _rows_of(self, X: ArrayLike) -> Any:
        """Rows of the network, if there is one."""
        if not hasattr(self, "net_"):  # asked first, because the check takes longer
            check_is_fitted(self)
        return self._inputs.transform(self._inputs.validate(self, X, reset=False))

    def _expected_cost(self, X: ArrayLike, probability: np.ndarray) -> np.ndarray:
        net = self.net_
        if net.learns_sample_costs:
            return net.expected_cost(self._rows_of(X), probability)
        return super()._expected_cost(X, probability)

    def _class_cost_matrix(self) -> NDArray[np.float64]:
        statistics = self.net_.statistics
        return statistics.to_currency(statistics.class_mean)

    def _has_probabilities(self) -> bool:
        if hasattr(self, "net_"):
            return isinstance(self.net_.criterion_.loss, ProbabilisticLoss)
        loss = LOSSES.get(self.loss) if isinstance(self.loss, str) else self.loss
        return isinstance(loss, ProbabilisticLoss)
