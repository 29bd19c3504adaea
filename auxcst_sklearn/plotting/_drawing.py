"""Drawing helpers of the displays: axes, colours, ticks and legends that fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Colour-blind-safe colours of Okabe and Ito.
COLORS = ["#0072B2", "#D55E00", "#009E73"]


def axes(ax: Axes | None) -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Plotting needs matplotlib: pip install 'auxcst_sklearn[plot]'"
        ) from error
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", alpha=0.3)
    ax.set_axisbelow(True)


def draw_legend(ax: Axes, title: str | None = None) -> Any:
    """A legend in small print."""
    return ax.legend(title=title, fontsize="small", title_fontsize="small", framealpha=0.7)


def amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def share(value: float) -> str:
    """A fraction in percent, to about two digits."""
    percent = 100 * value
    return f"{percent:.{0 if percent >= 10 or percent == 0 else 1 if percent >= 1 else 2}f} %"
