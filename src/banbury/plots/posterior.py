"""PosteriorDisplay: what is believed of hypotheses as rows arrive."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.hypotheses import Hypotheses, Trace
from banbury.plots.display import COLOURS, FAINT, Display, check_type, library, names

LONGEST = 44  # characters of a hypothesis


class PosteriorDisplay(Display):
    """The posteriors of hypotheses after each row, one upon the other up to 1; ``trace`` has the numbers.

    >>> import banbury as bb
    >>> days = bb.datasets.enjoy_sport()
    >>> space = bb.conjunctions(days, "play", labels=["no", "yes"])
    >>> shown = bb.plots.PosteriorDisplay.from_hypotheses(space, days, "play")
    >>> shown.trace.n_possible.tolist()
    [487, 64, 32, 28, 6]
    """

    def __init__(self, trace: Trace) -> None:
        check_type("the trace", trace, Trace, "a Trace, as space.trace makes it")
        if len(trace.posteriors) < 2:
            raise errors.bad_setting("the trace", "no rows", "one of a row at least")
        if len(trace.names) >= len(COLOURS):
            raise errors.bad_setting("the trace", len(trace.names), f"one of {len(COLOURS) - 1} hypotheses at most")
        self.trace = trace

    @classmethod
    def from_trace(cls, trace: Trace, *, ax: Any = None) -> Self:
        """Draws what ``space.trace`` found."""
        return cls(trace).plot(ax)

    @classmethod
    def from_hypotheses(
        cls, space: Hypotheses, rows: Any = None, target: Any = None, *, ax: Any = None, **evidence: Any
    ) -> Self:
        """Draws how rows change the posterior; the arguments are those of ``space.trace``."""
        check_type("the space", space, Hypotheses, "Hypotheses")
        return cls(space.trace(rows, target, **evidence)).plot(ax)

    def _draw(self, ax: Any) -> None:
        trace = self.trace
        ax = self._begin(ax, 8.2, 3.8)
        steps = trace.first.n_rows + np.arange(len(trace.posteriors))
        bands = [*trace.posteriors.T]
        labels, colours = names(trace.names, LONGEST), list(COLOURS[: len(bands)])
        others = len(trace.first) - len(bands)
        if others:
            bands, labels, colours = [*bands, trace.others], [*labels, f"all others ({others:,})"], [*colours, FAINT]
        ax.stackplot(steps, bands, labels=labels, colors=colours, edgecolor="white", linewidth=0.6)
        ax.set_xlim(steps[0], steps[-1])
        ax.set_ylim(0.0, 1.0)
        ax.xaxis.set_major_locator(library().ticker.MaxNLocator(integer=True))
        ax.set_xlabel("rows seen")
        ax.set_ylabel("posterior, adding up to 1")
        handles, texts = ax.get_legend_handles_labels()
        ax.legend(handles[::-1], texts[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5))
        before, left = trace.n_possible[[0, -1]].tolist()
        ruled_out = f": {left:,} of {before:,} are left" if left < before else ""
        self._title(f"Posterior of {len(trace.first):,} hypotheses as rows arrive{ruled_out}")
