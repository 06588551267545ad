"""LearningCurveDisplay: how good after so many rows, over a logarithmic axis."""

from __future__ import annotations

from typing import Any, Self

from banbury.plots.display import COLOURS, Display, check_type, library
from banbury.selection import LearningCurve


class LearningCurveDisplay(Display):
    """Mean accuracies with their standard errors over the numbers of rows learned from; ``curve`` has the numbers.

    >>> import banbury as bb
    >>> curve = bb.learning_curve(bb.datasets.wine(), target="cultivar", repeats=3)
    >>> shown = bb.plots.LearningCurveDisplay.from_learning_curve(curve)
    >>> shown.ax_.get_xlabel()
    'rows learned from'
    """

    def __init__(self, curve: LearningCurve) -> None:
        check_type("the curve", curve, LearningCurve, "a LearningCurve, as bb.learning_curve makes it")
        self.curve = curve

    @classmethod
    def from_learning_curve(cls, curve: LearningCurve, *, ax: Any = None) -> Self:
        """Draws what ``bb.learning_curve`` found, and the other learner's curve if there is one."""
        return cls(curve).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 6.4, 4.0)
        ax.set_prop_cycle(color=COLOURS)
        self.curve.plot(ax)
        ticker = library().ticker
        ax.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda size, _: f"{size:,.0f}"))
        ax.xaxis.set_minor_locator(ticker.NullLocator())
        ax.grid(axis="y", color="#E5E5E5", linewidth=0.8)
        ax.set_axisbelow(True)
        beside = "" if self.curve.beside is None else f" beside {self.curve.beside.name}"
        repeats = len(self.curve.accuracy)
        bars = f": mean and standard error of {repeats} repeats" if repeats > 1 else ""
        self._title(f"Learning curve of {self.curve.name}{beside}{bars}")
