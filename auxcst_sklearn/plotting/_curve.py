"""CostCurveDisplay: cost against a parameter, one curve per value of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from .._checks.decorators import validate_params
from ._drawing import MARKERS, axes, colors, draw_legend, set_log_scale, tidy, tilt_if_crowded
from ._results import columns, find_name, finite_column, hue_column, matches, summarize
from ._searches import find_path, path_curve, search_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CostCurveDisplay:
    """Mean cost against a parameter, one curve per value of another.

    Created by :meth:`from_search` or :meth:`from_results`.

    Parameters
    ----------
    x_values : list of length n_x
        Values of the parameter on the x axis: numbers, or strings as categories. A None at the end
        stands for results without this parameter, shown as a horizontal line.
    hue_values : list of length n_hue
        Value of the parameter `hue` of each curve; ``[None]`` for a single curve.
    mean : ndarray of shape (n_hue, n_x)
        Mean costs; NaN for missing results.
    spread : ndarray of shape (n_hue, n_x)
        Half the height of the band around each mean, its standard error; NaN if unknown.
    x_name : str
        Name of the parameter on the x axis.
    hue_name : str, default=None
        Title of the legend.
    y_label : str, default="mean test cost"
        Label of the y axis.
    caption : str, default=None
        Title for axes without one: the best candidate, and the meaning of the bands. A line that
        starts with "±" is omitted if no bands are drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure of the axes.
    lines_ : list of matplotlib Line2D
        The curves and the horizontal lines.
    spread_ : list of matplotlib artists
        Their bands or error bars, if any.
    legend_ : matplotlib Legend or None
        The legend.

    Examples
    --------
    >>> from auxcst_sklearn.plotting import CostCurveDisplay
    >>> runs = [
    ...     {"alpha": 0.0, "depth": 2, "seed": 0, "test_cost": 1.2},
    ...     {"alpha": 0.0, "depth": 2, "seed": 1, "test_cost": 1.4},
    ...     {"alpha": 0.2, "depth": 2, "seed": 0, "test_cost": 0.5},
    ...     {"alpha": 0.2, "depth": 2, "seed": 1, "test_cost": 1.0},
    ... ]
    >>> display = CostCurveDisplay.from_results(runs, x="alpha", y="test_cost", hue="depth")
    >>> display.x_values, display.mean
    ([0.0, 0.2], array([[1.3 , 0.75]]))
    >>> display.ax_.get_ylabel()
    'mean test cost'
    """

    def __init__(
        self,
        x_values: list[Any],
        hue_values: list[Any],
        mean: NDArray[Any],
        spread: NDArray[Any],
        *,
        x_name: str,
        hue_name: str | None = None,
        y_label: str = "mean test cost",
        caption: str | None = None,
    ) -> None:
        self.x_values = x_values
        self.hue_values = hue_values
        self.mean = mean
        self.spread = spread
        self.x_name = x_name
        self.hue_name = hue_name
        self.y_label = y_label
        self.caption = caption

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
        ax: Axes | None = None,
        **plot_kw: Any,
    ) -> CostCurveDisplay:
        """Draw the results of a search: mean cost over the folds, and its standard error.

        All candidates are evaluated on the same folds. The mean over the candidates of each fold is
        subtracted before standard errors are computed, so that they apply to differences between
        candidates, and are smaller than the spread of the folds.

        If further parameters were searched, several candidates share their `x` and `hue`. The one
        with the smallest mean cost is drawn, unless `where` fixes those parameters; the caption
        names all parameters of the best candidate. Its cost is optimistic, because it was chosen on
        these folds. Candidates that failed are omitted.

        In a list of grids, a parameter may be missing from some. Candidates without `x` become a
        horizontal line. For `hue` and `where`, a missing parameter has the value of the searched
        estimator.

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
            Whether to draw minus the scores, as costs. None for True if the scorer returns minus
            costs: :data:`auxcst_sklearn.metrics.cost_scorer`, the result of
            :func:`auxcst_sklearn.metrics.make_cost_scorer`, or, with ``scoring=None``, the `score`
            of an estimator of this package with costs. Other scores, such as "accuracy", are drawn
            as they are, under their own name; True draws those of another cost scorer as costs.
        ax : matplotlib Axes, default=None
            Axes to draw on; None for a new figure.
        **plot_kw : dict
            Further arguments of :meth:`plot`.

        Returns
        -------
        CostCurveDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If a parameter was not searched or its name is ambiguous, if there is no such
            scorer, if no candidate remains, or if a CostSensitiveAuxMLPCV does not have what
            is to be drawn.
        TypeError
            If `search` is fitted, but is no search.
        """
        model = find_path(search)
        options = (x, hue, where, metric, negate)
        curves = path_curve(model, *options) if model else search_curves(search, *options)
        return cls(**curves).plot(ax, **plot_kw)

    @classmethod
    def from_results(
        cls,
        results: Any,
        x: str,
        y: str,
        hue: str | None = None,
        *,
        hue_order: Sequence[Any] | None = None,
        where: Mapping[str, Any] | None = None,
        ax: Axes | None = None,
        **plot_kw: Any,
    ) -> CostCurveDisplay:
        """Draw saved runs: mean and standard error over the runs with the same `x` and `hue`.

        Parameters
        ----------
        results : DataFrame, list of dict, or dict of columns
            One record per run, for example per seed.
        x : str
            Column on the x axis. Records in which it is missing, None or NaN become a horizontal
            line.
        y : str
            Column with the cost.
        hue : str, default=None
            Column with one curve per value; None for a single curve.
        hue_order : list, default=None
            Values of `hue` to draw, in this order; None for all. With the same list, the panels of
            a figure have the same colours, even if some have no record with one of the values.
        where : dict, default=None
            Only records with these values are used, e.g. ``{"dataset": "mnist"}``. Records with the
            same `x` and `hue` are averaged, whatever their other columns hold.
        ax : matplotlib Axes, default=None
            Axes to draw on; None for a new figure.
        **plot_kw : dict
            Further arguments of :meth:`plot`.

        Returns
        -------
        CostCurveDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If a column does not exist, costs are not finite numbers, or no record remains.
        """
        table = columns(results)
        at_x = table[find_name(x, table, "x")]
        cost = finite_column(table[find_name(y, table, "y")], y)
        at_hue = hue_column(table, hue)
        keep = matches(table, where)
        if hue_order is not None:
            keep &= [any(np.array_equal(hue, h) for h in hue_order) for hue in at_hue]
        rows = np.flatnonzero(keep)
        if not len(rows):
            raise ValueError(
                f"No record of results matches where={where!r} and hue_order={hue_order!r}."
            )

        def mean_and_error(rows: NDArray[Any]) -> tuple[float, float]:
            runs, n = cost[rows], len(rows)
            return runs.mean(), runs.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan

        display = cls(
            *summarize(at_x, at_hue, rows, mean_and_error, hue_order),
            x_name=x,
            hue_name=hue,
            y_label=f"mean {y}".replace("_", " "),
            caption="± standard error over runs",
        )
        return display.plot(ax, **plot_kw)

    @validate_params(
        {
            "spread_style": [StrOptions({"band", "bars"}), None],
            "xscale": [StrOptions({"linear", "log"})],
            "y_label": [str, None],
            "legend": ["boolean"],
        },
        prefer_skip_nested_validation=True,
    )
    def plot(
        self,
        ax: Axes | None = None,
        *,
        spread_style: Literal["band", "bars"] | None = "band",
        xscale: Literal["linear", "log"] = "linear",
        y_label: str | None = None,
        legend: bool = True,
    ) -> CostCurveDisplay:
        """Draw the curves.

        Axes without a title get the caption.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None for a new figure.
        spread_style : {"band", "bars"} or None, default="band"
            How the standard error is shown; None hides it. If x is not numeric, bands become bars.
        xscale : {"linear", "log"}, default="linear"
            Scale of the x axis. A logarithmic one shows zero at its left end.
        y_label : str, default=None
            Label of the y axis, instead of the display's own.
        legend : bool, default=True
            Whether to draw the legend, if there are several curves. In a figure with several axes,
            one ``figure_.legend(handles=display.lines_)`` may be enough.

        Returns
        -------
        CostCurveDisplay
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        ValueError
            If `xscale` is "log" and the x axis holds no numbers or negative ones.
        """
        ax = axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: list[Any] = []
        self.spread_: list[Any] = []
        positions, numeric = self._place_x(xscale)
        n_curves = len(self.hue_values)
        for i, color in enumerate(colors(n_curves)):
            style = {"color": color, "marker": MARKERS[i % len(MARKERS)]}
            label = self._label(i)
            # Side by side, so that the bars of one category do not overlap.
            shift = 0 if numeric else 0.5 * ((i + 0.5) / n_curves - 0.5)
            self._draw_curve(i, positions + shift, {**style, "label": label}, spread_style, numeric)
            if None in self.x_values:
                self._draw_level(i, color, label, spread_style)
        ax.set(xlabel=self.x_name, ylabel=y_label or self.y_label)
        tidy(ax)
        if self.caption and not ax.get_title():
            lines = [line for line in self.caption.split("\n") if spread_style or line[0] != "±"]
            ax.set_title("\n".join(lines), fontsize="small")
        self.legend_ = draw_legend(ax, self.hue_name) if legend else None
        return self

    def _place_x(self, xscale: str) -> tuple[NDArray[Any], bool]:
        """Set ticks and scale of the x axis; return positions, and whether they are numeric."""
        ax = self.ax_
        values = [value for value in self.x_values if value is not None]
        numeric = not any(isinstance(value, str) for value in values)
        if not numeric:
            if xscale == "log":
                raise ValueError(f"xscale='log', but {self.x_name} holds {values}, not numbers.")
            ax.set_xticks(range(len(values)), values)
            ax.margins(x=0.5 / len(values))
            tilt_if_crowded(ax, values)
            return np.arange(len(values)), False
        positions = np.array(values, dtype=np.float64)
        if xscale == "log":
            set_log_scale(ax, positions, self.x_name)
        elif all(position.is_integer() for position in positions):
            ax.locator_params(axis="x", integer=True, min_n_ticks=1)
        return positions, True

    def _label(self, i: int) -> str | None:
        hue = self.hue_values[i]
        if hue is None:
            return self.hue_name and "None"
        return hue if isinstance(hue, str) else f"{hue:g}"

    def _draw_curve(
        self,
        i: int,
        x: NDArray[Any],
        style: dict[str, Any],
        spread_style: str | None,
        numeric: bool,
    ) -> None:
        mean, spread = self.mean[i, : len(x)], self.spread[i, : len(x)]
        known = np.isfinite(mean)
        x, mean, spread = x[known], mean[known], spread[known]
        if not len(x):
            return
        line = "-" if numeric else ":"
        self.lines_ += self.ax_.plot(x, mean, linestyle=line, markersize=5, **style)
        color = style["color"]
        if spread_style == "band" and numeric and len(x) > 1:
            band = self.ax_.fill_between(
                x, mean - spread, mean + spread, color=color, alpha=0.25, linewidth=0
            )
            self.spread_.append(band)
        elif spread_style is not None:
            bars = self.ax_.errorbar(x, mean, spread, fmt="none", color=color, capsize=3)
            self.spread_.append(bars)

    def _draw_level(self, i: int, color: str, label: str | None, spread_style: str | None) -> None:
        """Draw the result without x, which applies to every x."""
        mean, spread = self.mean[i, -1], self.spread[i, -1]
        if not np.isfinite(mean):
            return
        label = " ".join(filter(None, [label, f"(no {self.x_name})"]))
        self.lines_.append(self.ax_.axhline(mean, linestyle="--", color=color, label=label))
        if spread_style is not None and np.isfinite(spread):
            band = self.ax_.axhspan(mean - spread, mean + spread, color=color, alpha=0.1, lw=0)
            self.spread_.append(band)
