"""LayerLossDisplay: the loss of every head, epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks.nesting import final_estimator
from ._drawing import axes, draw_legend, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Losses = dict[str, NDArray[Any]]


@dataclass(eq=False, repr=False)
class LayerLossDisplay:
    """Loss of every head and the total, epoch by epoch: the learning curves of AuxCST.

    Created by :meth:`from_estimator`.

    Parameters
    ----------
    epochs : ndarray of shape (n_epochs,)
        Numbers of the epochs.
    losses : dict of str to ndarray of shape (n_epochs,)
        Mean loss of each head on training samples, from the first hidden layer to "output". If
        there is more than one head, "total", the weighted sum that was minimised, comes last.
    held_out : dict of str to ndarray of shape (n_epochs,), default=None
        Losses on validation samples. They are drawn dashed.
    weights : dict of str to float, default=None
        Weight of each layer in the class probabilities, for the legend, if they are a weighted
        average of several layers.

    Attributes
    ----------
    ax_, figure_, legend_ : matplotlib Axes, Figure and Legend
        What is drawn.
    lines_, held_out_lines_ : dict of str to matplotlib Line2D
        The curves of `losses` and of `held_out`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from auxcst_sklearn import CostSensitiveAuxMLP
    >>> from auxcst_sklearn.plotting import LayerLossDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = CostSensitiveAuxMLP(depth=3, width=8, max_epochs=5, random_state=0)
    >>> display = LayerLossDisplay.from_estimator(classifier.fit(X, y))
    >>> list(display.losses)
    ['hidden1', 'hidden2', 'output', 'total']
    """

    epochs: NDArray[Any]
    losses: Losses
    held_out: Losses | None = None
    weights: dict[str, float] | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, **plot_kw: Any) -> LayerLossDisplay:
        """Draw the training of a fitted network.

        Losses on training samples are means over an epoch. In it the network changes and dropout is
        active. Losses on validation samples are computed after each epoch. They may be lower for
        this reason.

        Parameters
        ----------
        estimator : estimator
            Fitted network, or a pipeline or search that ends with a network.
        **plot_kw : dict
            Arguments of :meth:`plot`, such as `ax`.

        Returns
        -------
        display : object
            The drawn display.

        Raises
        ------
        TypeError
            If the estimator has no `history_`.
        """
        check_is_fitted(estimator)
        network = final_estimator(estimator)
        if not hasattr(network, "history_"):
            raise TypeError(
                f"estimator is a {type(network).__name__}, which has no history_. Pass a network "
                "of auxcst_sklearn, or a pipeline or search that ends with a network."
            )
        epochs = np.array([record["epoch"] for record in network.history_])
        train, held_out = (_losses(network.history_, part) for part in ("train", "valid"))
        weights = None
        if network.net_.head_weights is not None:
            weights = dict(zip(network.net_.module_.layers, network.head_weights_.tolist()))
        return cls(epochs, train, held_out or None, weights).plot(**plot_kw)

    def plot(self, ax: Axes | None = None) -> LayerLossDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        display : object
            The drawn display.
        """
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        self.lines_ = self._draw(self.losses, "-")
        self.held_out_lines_ = self._draw(self.held_out or {}, "--")
        name = "loss (solid: training, dashed: validation)" if self.held_out else "training loss"
        ax.set(xlabel="epoch", ylabel=name)
        ax.locator_params(axis="x", integer=True, min_n_ticks=1)
        tidy(ax)
        self.legend_ = draw_legend(ax, "loss of (weight)" if self.weights else "loss of")
        return self

    def _label(self, layer: str) -> str:
        if self.weights is None or layer == "total":
            return layer
        return f"{layer} ({self.weights[layer]:.2f})"

    def _draw(self, losses: Losses, linestyle: str) -> dict[str, Any]:
        """A curve for each head, from dark to light; solid curves have labels."""
        from matplotlib import colormaps

        shades = colormaps["viridis"](np.linspace(0, 1, len(self.losses))).tolist()
        lines = {}
        for shade, (layer, loss) in zip(shades, losses.items()):
            (lines[layer],) = self.ax_.plot(
                self.epochs,
                loss,
                color="0.55" if layer == "total" else shade,
                label=self._label(layer) if linestyle == "-" else None,
                linestyle=linestyle,
                marker="o" if len(loss) == 1 else None,
            )
        return lines


def _losses(history: list[dict[str, Any]], part: str) -> Losses:
    """Loss of each head and their total, NaN in epochs without; empty if no epoch has any."""
    prefix = f"{part}_loss"
    first = next((record for record in history if f"{prefix}_output" in record), {})
    layers = [key.removeprefix(f"{prefix}_") for key in first if key.startswith(f"{prefix}_")]
    names = {layer: f"{prefix}_{layer}" for layer in layers}
    if len(layers) > 1:
        names["total"] = prefix
    return {
        layer: np.array([record.get(name, np.nan) for record in history])
        for layer, name in names.items()
    }
