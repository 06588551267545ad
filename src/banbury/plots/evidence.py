"""EvidenceDisplay: why a row got its class, as bars of decibans."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.explain import Explanation
from banbury.naive_bayes import Model
from banbury.networks import BeliefNetwork
from banbury.plots.display import AGAINST, FAINT, FOR, SUM, Display, check_type, name, percent, signed
from banbury.plots.features import answering
from banbury.renamed import takes_old


class EvidenceDisplay(Display):
    """The prior, the evidence of every feature or word, and their sum, in decibans; ``explanation`` has the numbers.

    ``labels`` and ``weights`` are the bars from the top: the prior, the strongest evidence, what the rest says together, the sum.

    >>> import banbury as bb
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> row = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
    >>> shown = bb.plots.EvidenceDisplay.from_model(model, row)
    >>> shown.labels
    ['prior', 'outlook = sunny', 'humidity = high', 'wind = strong', 'temperature = cool', 'sum']
    >>> [round(weight, 2) for weight in shown.weights]
    [-2.55, 3.01, 2.93, 1.96, -1.25, 4.1]
    """

    @takes_old(most="n")
    def __init__(self, explanation: Explanation, *, n: int = 15) -> None:
        check_type("the explanation", explanation, Explanation, "an Explanation, as model.explain makes it")
        errors.check_whole("n", n, 1, 10**6)
        self.explanation = explanation
        shown, rest = explanation.evidence[:n], explanation.evidence[n:]
        alone = len({e.feature for e in explanation.evidence}) == 1 < len(explanation.evidence)  # the words of a text
        self.labels = ["prior"]
        for e in shown:
            value = name(e.value, 28) + (f" × {e.times}" if e.times > 1 else "") + ("" if e.seen else " (never seen)")
            self.labels.append(value if alone else f"{name(e.feature)} = {value}")
        self.weights = [float(explanation.prior), *(e.decibans for e in shown)]
        if rest:
            self.labels.append(f"{len(rest):,} more")
            self.weights.append(sum(e.decibans for e in rest))
        self.labels.append("sum")
        self.weights.append(float(explanation.decibans))

    @classmethod
    @takes_old(most="n")
    def from_explanation(cls, explanation: Explanation, *, n: int = 15, ax: Any = None) -> Self:
        """Draws an explanation: the ``n`` strongest features or words, and all others together."""
        return cls(explanation, n=n).plot(ax)

    @classmethod
    @takes_old(most="n")
    def from_model(
        cls, model: Model | BeliefNetwork, row: Any, against: Any = None, *, n: int = 15, ax: Any = None
    ) -> Self:
        """Draws what ``model.explain(row, against)`` says: of a model, a network with a target, or a TANClassifier."""
        return cls(answering(model).explain(row, against), n=n).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 6.4, 1.3 + 0.25 * len(self.labels))
        weights = np.array(self.weights)  # infinite ones have bars that reach a little farther than the rest
        reach = float(np.abs(weights[np.isfinite(weights)]).max(initial=0.0)) or 1.0
        lengths = np.clip(np.nan_to_num(weights, nan=0.0), -1.1 * reach, 1.1 * reach)
        places = np.arange(len(weights), dtype=np.float64)
        places[-1] += 0.35  # the sum stands a little apart
        colours = [FOR if length >= 0 else AGAINST for length in lengths[:-1]]
        ax.barh(places, lengths, 0.72, color=[*colours, SUM])
        for place, length, weight in zip(places, lengths, weights, strict=True):
            side = {"ha": "left", "xytext": (3, 0)} if length >= 0 else {"ha": "right", "xytext": (-3, 0)}
            beside = {"textcoords": "offset points", "va": "center_baseline", "fontsize": 8, **side}
            ax.annotate(signed(weight), (length, place), **beside)
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.axhline(places[-1] - 0.68, color=FAINT, linewidth=0.8)
        ax.set_yticks(places, self.labels)
        low, high = min(lengths.min(), 0.0), max(lengths.max(), 0.0)
        room = 0.14 * (high - low) or 1.0  # for a number beside the longest bar
        ax.set(xlim=(low - room, high + room), ylim=(places[-1] + 0.6, -0.6))
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        told = self.explanation
        winner, other = name(told.winner), name(told.against)
        ax.set_xlabel(f"decibans: to the right for {winner}, to the left for {other}")
        sides = f"{winner} {percent(told.probability)} against {other} {percent(told.probability_against)}"
        self._title(f"Weight of evidence: {sides}")
