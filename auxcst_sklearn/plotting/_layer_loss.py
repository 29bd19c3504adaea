"""LayerLossDisplay: the loss of every head, epoch by epoch."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._checks.decorators import validate_params
from ..costs._evaluation import final_estimator
from ._drawing import axes, colors, draw_legend, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class LayerLossDisplay:
    """Loss of every head and the total, epoch by epoch: the learning curves of AuxCST.

    Created by :meth:`from_estimator`.

    Parameters
    ----------
    epochs : ndarray of shape (n_epochs,)
        Numbers of the epochs.
    losses : dict of str to ndarray of shape (n_epochs,)
        Mean loss of each head, first hidden layer to "output".
    total : ndarray of shape (n_epochs,)
        The weighted sum that was minimized.
    part : {"train", "valid"}, default="train"
        Whether the losses are those of the training rows or of the held-out rows.
    held_out : LayerLossDisplay, default=None
        Losses of the held-out rows, drawn dashed in addition to those of the training rows.

    Attributes
    ----------
    ax_, figure_, legend_ : matplotlib Axes, Figure and Legend
        What is drawn.
    lines_ : dict of str to matplotlib Line2D
        The curve of each head, and of "total" if there is more than one head. Those of `held_out`
        are in its own `lines_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from auxcst_sklearn import CostSensitiveAuxMLP
    >>> from auxcst_sklearn.plotting import LayerLossDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = CostSensitiveAuxMLP(depth=3, width=8, max_epochs=5, random_state=0)
    >>> display = LayerLossDisplay.from_estimator(classifier.fit(X, y))
    >>> list(display.losses)
    ['hidden1', 'hidden2', 'output']
    """

    epochs: NDArray[Any]
    losses: dict[str, NDArray[Any]]
    total: NDArray[Any]
    _: KW_ONLY
    part: Literal["train", "valid"] = "train"
    held_out: LayerLossDisplay | None = None

    @classmethod
    @validate_params(
        {"part": [StrOptions({"train", "valid", "both"})]}, prefer_skip_nested_validation=False
    )
    def from_estimator(
        cls,
        estimator: Any,
        *,
        part: Literal["train", "valid", "both"] = "train",
        **plot_kw: Any,
    ) -> LayerLossDisplay:
        """Draw the training of a fitted network.

        Parameters
        ----------
        estimator : estimator
            Fitted network, a pipeline that ends with one, or a search with such a best estimator.
        part : {"train", "valid", "both"}, default="train"
            "train" draws losses on the training rows, averaged over an epoch in which the network
            changes and dropout is active. "valid" draws losses on the rows held out by early
            stopping, after each epoch; they may be lower for this reason. "both" draws both.
        **plot_kw : dict
            Arguments of :meth:`plot`, such as `ax`.

        Returns
        -------
        LayerLossDisplay
            The display, drawn.

        Raises
        ------
        TypeError, ValueError
            If the estimator records no `history_`, or no such losses, as without held-out rows.
        """
        check_is_fitted(estimator)
        network = final_estimator(estimator)
        if not hasattr(network, "history_"):
            raise TypeError(
                f"estimator is a {type(network).__name__}, which has no history_; expected a "
                "network of auxcst_sklearn, a pipeline that ends with one, or a search with one "
                "as best_estimator_."
            )
        display = cls._of(network.history_, "train" if part == "both" else part)
        display.held_out = cls._of(network.history_, "valid") if part == "both" else None
        return display.plot(**plot_kw)

    @classmethod
    def _of(
        cls, history: list[dict[str, Any]], part: Literal["train", "valid"]
    ) -> LayerLossDisplay:
        prefix = f"{part}_loss_"
        records = [record for record in history if f"{prefix}output" in record]
        if not records:
            raise ValueError(
                f"history_ holds no losses for part={part!r}. Held-out losses need "
                "early_stopping=True in the estimator."
            )
        layers = [key.removeprefix(prefix) for key in records[0] if key.startswith(prefix)]
        return cls(
            np.array([record["epoch"] for record in records]),
            {layer: np.array([r[prefix + layer] for r in records]) for layer in layers},
            np.array([record[f"{part}_loss"] for record in records]),
            part=part,
        )

    def plot(self, ax: Axes | None = None, *, normalize: bool = False) -> LayerLossDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None for a new figure.
        normalize : bool, default=False
            Whether to divide each curve by its first value, so that heads with different losses can
            be compared.

        Returns
        -------
        LayerLossDisplay
            The display itself.
        """
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        self._draw_curves(ax, normalize, "-")
        name = {"train": "training loss", "valid": "held-out loss"}[self.part]
        if self.held_out is not None:
            self.held_out._draw_curves(ax, normalize, "--")
            name = "loss (solid: training, dashed: held out)"
        ax.set(xlabel="epoch", ylabel=f"{name}, relative to the first epoch" if normalize else name)
        ax.locator_params(axis="x", integer=True, min_n_ticks=1)
        tidy(ax)
        self.legend_ = draw_legend(ax, "loss of")
        return self

    def _draw_curves(self, ax: Axes, normalize: bool, linestyle: str) -> None:
        """A curve for each head; solid curves have labels."""
        curves, self.lines_ = dict(self.losses), {}
        if len(curves) > 1:
            curves["total"] = self.total
        for color, (layer, loss) in zip(colors(len(curves)), curves.items()):
            (self.lines_[layer],) = ax.plot(
                self.epochs,
                loss / loss[0] if normalize else loss,
                color="0.55" if layer == "total" else color,
                label=layer if linestyle == "-" else None,
                linestyle=linestyle,
                marker="o" if len(loss) == 1 else None,
            )
