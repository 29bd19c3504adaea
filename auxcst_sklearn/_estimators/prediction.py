"""What a fitted network estimates: costs and probabilities of rows, head by head, as a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from .._checks.calls import available_if, inherit_docs
from .._inputs.arrays import Preprocessor
from .._inputs.named import NamedPreprocessor
from .._inputs.scaling import OUTLYING, Scaling
from .._inputs.tables import TablePreprocessor
from ..losses import LOSSES, ProbabilisticLoss
from ..modules._images import ImageLayer
from ..modules._network import copy_of
from .decision import DecisionMixin

if TYPE_CHECKING:  # skorch is slow to import: on first use
    from .._training.net import CostNet


# Much larger values have infinite squares in float64, and infinite bounds in float32 constants.
_LARGEST = 1e30


class NetDecisionMixin(DecisionMixin):
    """Decisions of an estimator by its net."""

    net_: CostNet
    _inputs: Preprocessor

    def _estimated_cost(self, X: ArrayLike) -> np.ndarray:
        (estimate,) = self._predict_heads(X, every_head=False)
        return estimate

    @available_if(lambda self: self._has_probabilities())
    @inherit_docs(DecisionMixin.predict_cost)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Class probabilities, after the temperature.

        Only for losses with class probabilities: "bayes_risk", "cross_entropy", and subclasses of
        :class:`~auxcst_sklearn.losses.ProbabilisticLoss`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, columns as in `classes_`.
        """
        rows = self._rows_of(X)
        return self.net_.predict_proba(rows)

    @available_if(lambda self: not self._has_probabilities())
    @inherit_docs(DecisionMixin.predict_cost)
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Minus the estimated costs: larger values mean better classes.

        Only for losses without class probabilities. Where there are probabilities, the order of
        rows by costs adds nothing to theirs, and calibration, which reads a decision function as a
        logit, would be wrong by the threshold of the decision; scikit-learn then uses
        `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            For two classes one column: the estimated cost of ``classes_[0]`` minus the cost of
            ``classes_[1]``, positive if the second is predicted.
        """
        (estimate,) = self._predict_heads(X, every_head=False)
        values = self._of_classes(estimate)
        return values[:, 0] - values[:, 1] if values.shape[1] == 2 else -values

    @inherit_docs(DecisionMixin.predict_cost)
    def staged_predict_cost(self, X: ArrayLike) -> Iterator[np.ndarray]:
        """Estimate the costs from each head in turn, first hidden layer to output.

        Layers with ``alpha = 0`` have no head, and are skipped.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            Estimated costs of one head; the last array equals `predict_cost`.
        """
        yield from self._predict_heads(X, every_head=True)

    @inherit_docs(DecisionMixin.predict_cost)
    def staged_predict(self, X: ArrayLike) -> Iterator[np.ndarray]:
        """Predict from each head in turn, first hidden layer to output.

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
            n_classes).

        Raises
        ------
        ValueError
            If `output` is neither, the loss has no class probabilities, or X had categories.

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
        if output == "probability" and not self._has_probabilities():
            raise ValueError(
                f"output='probability', but loss={self.loss!r} has no class probabilities; "
                "expected output='cost'."
            )
        return OutputModule(self, output)

    def _rows_of(self, X: ArrayLike) -> Any:
        """Rows of the network."""
        if not hasattr(self, "net_"):  # asked first, because the check takes longer
            check_is_fitted(self)
        return self._inputs.transform(self._inputs.validate(self, X, reset=False))

    def _predict_heads(self, X: ArrayLike, *, every_head: bool) -> list[np.ndarray]:
        """Estimated costs of the output, or of every head, first hidden layer to output."""
        rows = self._rows_of(X)  # which checks that there is a net
        return self.net_.predict_heads(rows, every_head=every_head)

    def _expected_cost(self, X: ArrayLike, probability: np.ndarray) -> np.ndarray:
        net = self.net_
        if net.learns_sample_costs:
            return net.expected_cost(self._rows_of(X), probability)
        if net.criterion_.loss._n_cost_outputs(len(self.classes_)):
            raise ValueError(
                f"prior= needs costs of classes, but the loss {self.loss!r} has learnt costs of "
                "samples in a way of its own; expected a cost_matrix, or a matrix for each sample."
            )
        return super()._expected_cost(X, probability)

    def _class_cost_matrix(self) -> NDArray[np.float64]:
        statistics = self.net_.statistics
        return statistics.to_currency(statistics.class_mean)

    def _has_probabilities(self) -> bool:
        if hasattr(self, "net_"):
            return isinstance(self.net_.criterion_.loss, ProbabilisticLoss)
        loss = LOSSES.get(self.loss) if isinstance(self.loss, str) else self.loss
        return isinstance(loss, ProbabilisticLoss)


# ------------------------------------------------------------------------ as a torch module


class ScaledRows(nn.Module):
    """The computation of `Scaling.apply`, also in float64, by tensors that become constants."""

    def __init__(self, scaling: Scaling, keep: NDArray[Any]) -> None:
        super().__init__()
        self.moves, self.fills = scaling.moves, not keep.all()
        self.has_heavy, self.has_ranked = scaling.has_heavy, bool(scaling.ranked.any())
        self.center, self.scale = _constant(scaling.center), _constant(scaling.scale)
        self.fill, self.filled = _constant(scaling.fill), _constant(~keep)
        self.heavy = _constant(scaling.heavy)
        # Ranked columns come after all others, and are moved to their places.
        d, ranked = len(scaling.ranked), scaling.ranked
        self.columns = _constant(np.flatnonzero(ranked))
        self.places = _constant(np.where(ranked, d - 1 + ranked.cumsum(), np.arange(d)))
        width, height = (np.diff(part, axis=0).T for part in (scaling.quantiles, scaling.scores))
        self.low, self.first = _constant(scaling.quantiles[:-1].T), _constant(scaling.scores[0])
        self.width, self.height = _constant(np.where(width > 0, width, 1.0)), _constant(height)

    def forward(self, x: Tensor) -> Tensor:
        """Float32 rows for the network."""
        raw = x
        if self.moves:
            x = (x.double() - self.center) / self.scale
        if self.has_heavy:
            t = (x / OUTLYING).clamp(-_LARGEST, _LARGEST)
            x = torch.where(self.heavy, OUTLYING * t / (1 + t * t).sqrt(), x)
        if self.has_ranked:
            ranked = raw.double().index_select(1, self.columns).unsqueeze(-1)
            parts = ((ranked - self.low) / self.width).clamp(0, 1)
            scores = self.first + (parts * self.height).sum(dim=-1)
            x = torch.cat([x, scores], dim=1).index_select(1, self.places)
        if self.fills:
            x = torch.where(torch.isnan(x) & self.filled, self.fill.to(x.dtype), x)
        return x.float()


def _constant(values: NDArray[Any]) -> nn.Buffer:
    return nn.Buffer(torch.as_tensor(np.ascontiguousarray(values)))


class DecisionModule(nn.Module):
    """Computes costs in currency, probabilities, and cost matrices of rows."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.module = copy_of(model.net_.module_).cpu().eval()
        self.net = [model.net_]  # in a list, so that it is not registered as a submodule
        self.has_probabilities = model._has_probabilities()
        assert model.net_.has_logits in (True, False)  # cached, before the trace has no values
        inputs = model._inputs
        scaling = inputs.row_scaling
        self.rows: nn.Module = nn.Identity() if scaling is None else ScaledRows(*scaling)
        images = [part for part in self.module.modules() if isinstance(part, ImageLayer)]
        self.integers = any(part.integers for part in images)

    def forward(self, x: Tensor | dict[str, Tensor]) -> list[Tensor]:
        """Costs (n, D) in float64; probabilities and cost matrices of rows if the loss has them."""
        (net,) = self.net
        sets: Any = (x,) if isinstance(x, dict) else self._prepared(x).unsqueeze(0)
        output = net.forward_ensemble(sets, self.module)
        loss, statistics = net.criterion_.loss, net.statistics
        results = [statistics.to_currency(loss.to_cost(output, statistics).mean(dim=0).double())]
        if self.has_probabilities:
            p = loss.probabilities(output).mean(dim=0).double()
            results.append(p / p.sum(dim=1, keepdim=True))
        if net.learns_sample_costs:
            matrices = loss.class_costs(output).mean(dim=0)
            results.append(statistics.to_currency(matrices.double()))
        return results

    def _prepared(self, x: Tensor) -> Tensor:
        """Rows in the form of the network's input; uint8 images stay uint8."""
        x = self.rows(x)
        if self.integers:
            return x.long()
        return x.float() if x.is_floating_point() else x


class OutputModule(nn.Module):
    """One of the results: costs, or probabilities; arrays by name are keyword arguments."""

    def __init__(self, model: Any, output: str) -> None:
        super().__init__()
        inputs = model._inputs
        if isinstance(inputs, TablePreprocessor) and inputs.categories:
            raise ValueError(
                f"The columns {list(inputs.categories)} of X are categories, which a torch module "
                "cannot read; expected a network that was fitted with numeric columns. Encode them "
                "in front, for example using a OneHotEncoder."
            )
        self.decision, self.index = DecisionModule(model), int(output == "probability")
        self.layout = inputs.layout if isinstance(inputs, NamedPreprocessor) else None

    def forward(self, x: Tensor | None = None, **arrays: Tensor) -> Tensor:
        """Costs or probabilities (n_samples, ...), of an array or of arrays by name."""
        given: Any = x
        if self.layout is not None:
            if x is not None or set(arrays) != set(self.layout.names):
                raise TypeError(f"expected the arrays {list(self.layout.names)} by name.")
            types = zip(self.layout.names, self.layout.dtypes)
            given = {name: arrays[name].to(getattr(torch, dtype)) for name, dtype in types}
        found: Tensor = self.decision(given)[self.index]
        return found
