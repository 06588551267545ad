"""EvidenceDisplay: why a row got its class, as bars of decibans; ComparedEvidenceDisplay: two answers to the same row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.model.explain import Evidence, Explanation
from banbury.model.explain.page import percent
from banbury.model.naive_bayes import Model
from banbury.plots.display import (
    AGAINST,
    FAINT,
    FOR,
    SUM,
    Display,
    check_type,
    format_decibans,
    ink,
    legend_beside,
    name,
)
from banbury.plots.features import check_model


class EvidenceDisplay(Display):
    """The prior, the evidence of every feature or word, and their sum, in decibans. ``explanation`` has the numbers.

    ``labels`` and ``weights`` are the bars from the top: the prior, the strongest evidence, the rest, the sum. If the
    model is calibrated, all of it is calibrated.

    >>> import banbury as bb
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> row = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
    >>> shown = bb.plots.EvidenceDisplay.from_model(model, row)
    >>> shown.labels
    ['prior', 'outlook = sunny', 'humidity = high', 'wind = strong', 'temperature = cool', 'sum']
    >>> [round(weight, 2) for weight in shown.weights]
    [-2.55, 3.01, 2.93, 1.96, -1.25, 4.1]
    """

    def __init__(self, explanation: Explanation, *, n: int = 15) -> None:
        check_type("the explanation", explanation, Explanation, "an Explanation, from model.explain")
        errors.check_whole("n", n, 1, 10**6)
        self.explanation = explanation
        shown = explanation.evidence[:n]
        rest = explanation.evidence[n:]
        alone = len({e.feature for e in explanation.evidence}) == 1 < len(explanation.evidence)  # the words of a text
        self.labels = [*(called for called, _ in explanation.before), *(_label(e, alone) for e in shown)]
        self.weights = [*(float(weight) for _, weight in explanation.before), *(e.decibans for e in shown)]
        more = [(f"{len(rest):,} more", sum(e.decibans for e in rest))] if rest else []
        for label, weight in (*more, ("sum", float(explanation.decibans))):
            self.labels.append(label)
            self.weights.append(weight)

    @classmethod
    def from_explanation(cls, explanation: Explanation, *, n: int = 15, ax: Any = None) -> Self:
        """Draws an explanation: the ``n`` strongest features or words, and all others together."""
        return cls(explanation, n=n).plot(ax)

    @classmethod
    def from_model(cls, model: Model, row: Any, against: Any = None, *, n: int = 15, ax: Any = None) -> Self:
        """Draws ``model.explain(row, against)``."""
        check_model(model, classes=2)
        return cls(model.explain(row, against), n=n).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 6.4, 1.3 + 0.25 * len(self.labels))
        weights = np.array(self.weights)
        places = _places(len(self.weights))
        lengths = _lengths(weights)
        colours = [FOR if length >= 0 else AGAINST for length in lengths[:-1]]
        _bars(ax, places, lengths, weights, 0.72, [*colours, SUM])
        _frame(ax, places, self.labels, lengths)
        explanation = self.explanation
        winner = name(explanation.winner)
        other = name(explanation.against)
        ax.set_xlabel(f"decibans: to the right for {winner}, to the left for {other}")
        sides = (
            f"{winner} {percent(explanation.probability)} against {other} {percent(explanation.probability_against)}"
        )
        ax.set_title(f"Weight of evidence: {sides}")


class ComparedEvidenceDisplay(Display):
    """Two explanations of one row side by side, such as plain and weighed. ``explanations`` has the numbers by name.

    ``labels`` are the prior, the strongest evidence in either, the rest and the sum; ``weights`` has the decibans of
    each (labels × 2) in favour of the winner of the first. Evidence that one of them does not have, such as a pair of
    columns, has no bar there.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> plain = bb.estimate(bb.count(weather, target="play"))
    >>> weighed = bb.weigh(plain, weather, "play", pairs=False)
    >>> row = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
    >>> two = {"plain": plain.explain(row), "weighed": weighed.explain(row)}
    >>> shown = bb.plots.ComparedEvidenceDisplay.from_explanations(two)
    >>> shown.labels[1], shown.weights[1].round(2).tolist()
    ('outlook = sunny', [3.01, 2.56])
    """

    def __init__(self, explanations: Mapping[str, Explanation], *, n: int = 15) -> None:
        if not isinstance(explanations, Mapping) or len(explanations) != 2:
            raise errors.bad_setting("explanations", explanations, "two of them by name, as {'plain': …, 'weighed': …}")
        for explanation in explanations.values():
            check_type("an explanation", explanation, Explanation, "an Explanation, from model.explain")
        errors.check_whole("n", n, 1, 10**6)
        self.explanations = dict(explanations)
        first, second = self.explanations.values()
        if {first.winner, first.against} != {second.winner, second.against}:
            classes = f"{second.winner!r} against {second.against!r}"
            expected = f"of the same two classes, {first.winner!r} and {first.against!r}; use explain(row, against=...)"
            raise errors.bad_setting("the second explanation", classes, expected)
        sign = 1.0 if first.winner == second.winner else -1.0
        says: dict[tuple[str, str], tuple[Evidence, list[float]]] = {}
        for k, (explanation, factor) in enumerate(((first, 1.0), (second, sign))):
            for e in explanation.evidence:
                says.setdefault((e.feature, str(e.value)), (e, [np.nan, np.nan]))[1][k] = factor * e.decibans
        ranked = sorted(says.values(), key=lambda entry: -np.nanmax(np.abs(entry[1])))
        before = [dict(explanation.before) for explanation in (first, second)]
        added = [called for called in ("prior", "calibration") if called in {**before[0], **before[1]}]
        self.labels = [*added, *(_label(e, False) for e, _ in ranked[:n])]
        weights = [[before[0].get(called, np.nan), sign * before[1].get(called, np.nan)] for called in added]
        weights += [pair for _, pair in ranked[:n]]
        if len(ranked) > n:
            self.labels.append(f"{len(ranked) - n:,} more")
            weights.append(np.nansum([pair for _, pair in ranked[n:]], axis=0).tolist())
        self.labels.append("sum")
        self.weights = np.array([*weights, [first.decibans, sign * second.decibans]])

    @classmethod
    def from_explanations(cls, explanations: Mapping[str, Explanation], *, n: int = 15, ax: Any = None) -> Self:
        """Draws two explanations of the same two classes: the ``n`` strongest features or words, and all others
        together.
        """
        return cls(explanations, n=n).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 8.4, 1.5 + 0.36 * len(self.labels))
        places = _places(len(self.labels))
        lengths = _lengths(self.weights)
        for k, colour in enumerate((AGAINST, FOR)):
            there = ~np.isnan(self.weights[:, k])
            bars = _bars(ax, places[there] + (k - 0.5) * 0.38, lengths[there, k], self.weights[there, k], 0.36, colour)
            bars.set_label(name(list(self.explanations)[k]))
        _frame(ax, places, self.labels, lengths)
        first, second = self.explanations.values()
        winner = name(first.winner)
        other = name(first.against)
        ax.set_xlabel(f"decibans: to the right for {winner}, to the left for {other}")
        legend_beside(ax)
        same = first.winner == second.winner
        shares = [first.probability, second.probability if same else second.probability_against]
        sides = ", ".join(f"{name(how)} {percent(p)}" for how, p in zip(self.explanations, shares, strict=True))
        ax.set_title(f"{winner} against {other}\n{sides}")


# What both have -------------------------------------------------------------------------------------------------------


def _label(e: Evidence, alone: bool) -> str:
    value = name(e.value, 28) + (f" × {e.times}" if e.times > 1 else "") + ("" if e.seen else " (never seen)")
    return value if alone else f"{name(e.feature, 40)} = {value}"


def _places(n: int) -> Real:
    """Of bars; the sum stands a little apart."""
    return np.append(np.arange(n - 1.0), n - 0.65)


def _lengths(weights: Real) -> Real:
    """Infinite ones have bars that reach a little farther than the rest."""
    reach = float(np.abs(weights[np.isfinite(weights)]).max(initial=0.0)) or 1.0
    return np.asarray(np.clip(np.nan_to_num(weights, nan=0.0), -1.1 * reach, 1.1 * reach))


def _bars(ax: Any, places: Real, lengths: Real, weights: Real, height: float, colours: Any) -> Any:
    bars = ax.barh(places, lengths, height, color=colours)
    for place, length, weight in zip(places, lengths, weights, strict=True):
        side = {"ha": "left", "xytext": (3, 0)} if length >= 0 else {"ha": "right", "xytext": (-3, 0)}
        beside = {"textcoords": "offset points", "va": "center_baseline", "fontsize": 8, **side}
        ax.annotate(format_decibans(weight), (length, place), **beside)
    return bars


def _frame(ax: Any, places: Real, labels: Sequence[str], lengths: Real) -> None:
    ax.axvline(0.0, color=ink(), linewidth=0.8)
    ax.axhline(places[-1] - 0.68, color=FAINT, linewidth=0.8)
    ax.set_yticks(places, labels)
    low = min(lengths.min(), 0.0)
    high = max(lengths.max(), 0.0)
    room = 0.14 * (high - low) or 1.0  # for a number beside the longest bar
    ax.set(xlim=(low - room, high + room), ylim=(places[-1] + 0.6, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
