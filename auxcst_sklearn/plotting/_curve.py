"""CostCurveDisplay: cost against a parameter, one curve per value of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._drawing import MARKERS, axes, colors, draw_legend, tidy, tilt_if_crowded
from ._results import path_curve, search_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class CostCurveDisplay:
    """Mean cost against a parameter, one curve per value of another.

    Created by :meth:`from_search`.

    Parameters
    ----------
    x_values : list of length n_x
        Values of the parameter on the x axis: numbers, or strings as categories. A None at the end
        stands for results without this parameter, shown as a horizontal line.
    hue_values : list of length n_hue
        Value of the parameter `hue` of each curve; ``[None]`` for a single curve.
    mean, spread : ndarray of shape (n_hue, n_x)
        Mean costs, and their standard errors, half the height of the bands; NaN for missing ones.
    x_name : str
        Name of the parameter on the x axis.
    hue_name : str, default=None
        Title of the legend.
    y_label : str, default="mean test cost"
        Label of the y axis.
    caption : str, default=None
        Title for axes without one: the best candidate, and the meaning of the bands.

    Attributes
    ----------
    ax_, figure_, legend_ : matplotlib Axes, Figure, and Legend or None
        What is drawn.
    lines_, spread_ : list of matplotlib artists
        The curves and the horizontal lines, and their bands or error bars.

    Examples
    --------
    >>> import numpy as np
    >>> from auxcst_sklearn.plotting import CostCurveDisplay
    >>> mean = np.array([[1.3, 0.75], [1.2, 0.9]])
    >>> display = CostCurveDisplay([0.0, 0.2], [2, 5], mean, mean / 10, x_name="alpha").plot()
    >>> display.ax_.get_xlabel()
    'alpha'
    """

    x_values: list[Any]
    hue_values: list[Any]
    mean: NDArray[Any]
    spread: NDArray[Any]
    _: KW_ONLY
    x_name: str
    hue_name: str | None = None
    y_label: str = "mean test cost"
    caption: str | None = None

    @classmethod
    def from_search(
        cls,
        search: Any,
        x: str = "alpha",
        hue: str | None = "auto",
        *,
        where: Mapping[str, Any] | None = None,
        metric: str | None = None,
        negate: bool | None = None,
        **plot_kw: Any,
    ) -> CostCurveDisplay:
        """Draw the results of a search: mean cost over the folds, and its standard error.

        All candidates are evaluated on the same folds. The mean over the candidates of each fold is
        subtracted before standard errors are computed, so that they apply to differences between
        candidates, and are smaller than the spread of the folds.

        Of several candidates with the same `x` and `hue`, the one with the smallest mean cost is
        drawn, unless `where` fixes the other parameters; the caption names all parameters of the
        best candidate. Its cost is optimistic, because it was chosen on these folds. Candidates
        that failed are omitted. In a list of grids, candidates without `x` become a horizontal
        line; a missing `hue` or parameter of `where` has the value of the searched estimator.

        Parameters
        ----------
        search : GridSearchCV, RandomizedSearchCV or CostSensitiveAuxMLPCV
            Fitted search; of a CostSensitiveAuxMLPCV, also as the last step of a pipeline, the mean
            of ``mean_cost_path_`` is drawn against ``alphas_``, as a single curve.
        x : str, default="alpha"
            Parameter on the x axis. The last component is enough if it is unique: "alpha" finds
            "costsensitiveauxmlp__alpha". The same applies to `hue` and `where`.
        hue : str or None, default="auto"
            Parameter with one curve per value; None for a single curve. "auto" is "depth" if it was
            searched and is not `x`, and None otherwise.
        where : dict, default=None
            Fixed values of parameters, such as ``{"loss": "softmin"}``.
        metric : str, default=None
            Name of the scorer, in a search with several; None for the one used to refit.
        negate : bool, default=None
            Whether to draw minus the scores, as costs. None for True with
            :data:`auxcst_sklearn.metrics.cost_scorer`, a scorer of
            :func:`auxcst_sklearn.metrics.make_cost_scorer`, or ``scoring=None`` and an estimator
            with a `cost_matrix`. Other scores are drawn as they are, under their own name.
        **plot_kw : dict
            Arguments of :meth:`plot`, such as `ax`.

        Returns
        -------
        CostCurveDisplay
            The display, drawn.

        Raises
        ------
        TypeError, ValueError
            If `search` is no search; if a parameter or scorer does not exist or its name is
            ambiguous, or no candidate remains.
        """
        find = search_curves if hasattr(search, "cv_results_") else path_curve
        curves = find(search, x=x, hue=hue, where=where, metric=metric, negate=negate)
        return cls(**curves).plot(**plot_kw)

    def plot(self, ax: Axes | None = None, *, y_label: str | None = None) -> CostCurveDisplay:
        """Draw the curves, with bands, or bars if x is not numeric, of a standard error.

        Axes without a title get the caption.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None for a new figure.
        y_label : str, default=None
            Label of the y axis, instead of the display's own.

        Returns
        -------
        CostCurveDisplay
            The display itself.
        """
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        self.lines_: list[Any] = []
        self.spread_: list[Any] = []
        x, numeric = self._place_x()
        n_curves = len(self.hue_values)
        for i, color in enumerate(colors(n_curves)):
            # Categories are drawn side by side, so that their bars do not overlap.
            shift = 0 if numeric else 0.5 * ((i + 0.5) / n_curves - 0.5)
            style = {"color": color, "marker": MARKERS[i % len(MARKERS)], "label": self._label(i)}
            self._draw_curve(i, x + shift, "-" if numeric else ":", **style)
            if None in self.x_values:
                self._draw_level(i, **style)
        ax.set(xlabel=self.x_name, ylabel=y_label or self.y_label)
        tidy(ax)
        if self.caption and not ax.get_title():
            ax.set_title(self.caption, fontsize="small")
        self.legend_ = draw_legend(ax, self.hue_name)
        return self

    def _place_x(self) -> tuple[NDArray[Any], bool]:
        """Set the ticks of the x axis; return positions, and whether they are numeric."""
        ax = self.ax_
        values = [value for value in self.x_values if value is not None]
        if any(isinstance(value, str) for value in values):
            ax.set_xticks(range(len(values)), values)
            ax.margins(x=0.5 / len(values))
            tilt_if_crowded(ax, values)
            return np.arange(len(values)), False
        positions = np.array(values, dtype=np.float64)
        if all(position.is_integer() for position in positions):
            ax.locator_params(axis="x", integer=True, min_n_ticks=1)
        return positions, True

    def _label(self, i: int) -> str | None:
        hue = self.hue_values[i]
        if hue is None:
            return self.hue_name and "None"
        return hue if isinstance(hue, str) else f"{hue:g}"

    def _draw_curve(self, i: int, x: NDArray[Any], line: str, **style: Any) -> None:
        known = np.flatnonzero(np.isfinite(self.mean[i, : len(x)]))
        if not len(known):
            return
        x, mean, spread = x[known], self.mean[i, known], self.spread[i, known]
        self.lines_ += self.ax_.plot(x, mean, linestyle=line, markersize=5, **style)
        if line == "-" and len(x) > 1:
            fill = {"color": style["color"], "alpha": 0.25, "linewidth": 0}
            self.spread_.append(self.ax_.fill_between(x, mean - spread, mean + spread, **fill))
        else:
            bars = {"fmt": "none", "color": style["color"], "capsize": 3}
            self.spread_.append(self.ax_.errorbar(x, mean, spread, **bars))

    def _draw_level(self, i: int, color: str, label: str | None, **_: Any) -> None:
        """Draw the result without x, which applies to every x."""
        mean, spread = self.mean[i, -1], self.spread[i, -1]
        if not np.isfinite(mean):
            return
        label = " ".join(filter(None, [label, f"(no {self.x_name})"]))
        self.lines_.append(self.ax_.axhline(mean, linestyle="--", color=color, label=label))
        if np.isfinite(spread):
            band = self.ax_.axhspan(mean - spread, mean + spread, color=color, alpha=0.1, lw=0)
            self.spread_.append(band)
