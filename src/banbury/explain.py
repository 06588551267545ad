"""Why a row got its class: the weight of evidence of every feature and every word, in decibans.

A deciban is ten times the base-10 logarithm of a likelihood ratio: +10 makes the odds ten times as long, +3 about twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]

DECIBANS = 10.0 / np.log(10.0)


@dataclass(frozen=True)
class Term:
    """What a feature's value, or one of the words of a text, says of each class."""

    feature: str
    value: Any
    log_likelihood: Real  # (classes,)
    seen: bool = True  # whether any counted row has the value
    times: int = 1  # how often a word occurs


@dataclass(frozen=True)
class Evidence:
    """What one feature or word says: its value, and for how many decibans it speaks (against, if negative)."""

    feature: str
    value: Any
    decibans: float
    seen: bool = True  # whether any counted row has the value
    times: int = 1  # how often a word occurs in the text


@dataclass(frozen=True)
class Explanation:
    """The winner, the class it is weighed against, and the evidence that decides between them, strongest first.

    ``prior`` plus all the evidence is ``decibans``, ten times log10 of the odds of ``winner`` against ``against``.
    """

    winner: Any
    against: Any
    probability: float
    probability_against: float
    prior: float
    evidence: tuple[Evidence, ...]
    unknown: tuple[str, ...] = ()  # words of the row's texts that are outside the vocabulary

    @property
    def decibans(self) -> float:
        """The sum; where the evidence makes both classes impossible it is the prior, which then answers."""
        total = self.prior + sum(e.decibans for e in self.evidence)
        return self.prior if np.isnan(total) else total

    @property
    def log_odds(self) -> float:
        """Natural logarithm of the odds of the winner against the other class."""
        return float(self.decibans / DECIBANS)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON can hold it."""
        return {
            "winner": self.winner,
            "against": self.against,
            "probability": self.probability,
            "probability_against": self.probability_against,
            "decibans": self.decibans,
            "prior": self.prior,
            "evidence": [
                {"feature": e.feature, "value": e.value, "decibans": e.decibans, "seen": e.seen, "times": e.times}
                for e in self.evidence
            ],
            "unknown": list(self.unknown),
        }

    def __str__(self) -> str:
        sides = f"{self.winner!r} {self.probability:.1%} against {self.against!r} {self.probability_against:.1%}"
        lines = [f"{sides}, in decibans:"]
        rows = [("prior", "", self.prior)] + [(e.feature, _shown(e), e.decibans) for e in self.evidence[:30]]
        names, values = max(len(name) for name, _, _ in rows), max(len(value) for _, value, _ in rows)
        digits = _digits([weight for _, _, weight in rows])
        lines += [
            f"  {name:{names}}  {value:{values}}  {weight:+8.{digits}f}  {_bar(weight)}".rstrip()
            for name, value, weight in rows
        ]
        if len(self.evidence) > 30:
            rest = sum(e.decibans for e in self.evidence[30:])
            lines.append(f"  {f'and {len(self.evidence) - 30:,} more':{names + 2 + values}}  {rest:+8.{digits}f}")
        if np.isnan(self.prior + sum(e.decibans for e in self.evidence)):
            lines.append("  impossible in both classes, so the prior answers")
        lines.append(f"  {'sum':{names}}  {'':{values}}  {self.decibans:+8.{digits}f}")
        if self.unknown:
            words = ", ".join(map(repr, self.unknown[:6])) + (", …" if len(self.unknown) > 6 else "")
            lines.append(
                f"  {len(self.unknown):,} word{'s' * (len(self.unknown) != 1)} outside the vocabulary: {words}"
            )
        return "\n".join(lines)

    __repr__ = __str__


def _shown(evidence: Evidence) -> str:
    value = evidence.value
    if value is None:
        return "missing"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if text != text.strip() or not text.isprintable():
        text = repr(text)
    often = f" × {evidence.times}" if evidence.times > 1 else ""
    return f"= {text if len(text) <= 40 else text[:39] + '…'}{often}{'' if evidence.seen else ' (never seen)'}"


def _digits(weights: Sequence[float]) -> int:
    """Two digits after the point, or as many as show the largest of small weights."""
    largest = max((abs(weight) for weight in weights if np.isfinite(weight)), default=0.0)
    return 2 if largest >= 0.1 or largest == 0 else min(2 - int(np.floor(np.log10(largest))), 12)


def _bar(weight: float) -> str:
    if not np.isfinite(weight):
        return "∞"
    length = round(abs(weight))
    return ("+" if weight > 0 else "-") * min(30, length) + "…" * (length > 30)


def explained(
    classes: Sequence[Any],
    log_prior: Real,
    terms: Sequence[Term],
    posterior: Real,
    against: int | None,
    unknown: Sequence[str] = (),
) -> Explanation:
    """The explanation of one row from what its features say.

    Features whose value is missing say nothing and are left out. A factor of zero on both sides cancels to nothing.
    """
    ranked = np.argsort(-posterior, kind="stable")
    winner = int(ranked[0])
    other = int(ranked[1]) if against is None else against
    likelihoods = np.array([term.log_likelihood for term in terms]).reshape(len(terms), len(classes))
    difference = _difference(likelihoods[:, winner], likelihoods[:, other]) * DECIBANS
    evidence = [
        Evidence(term.feature, term.value, float(weight), term.seen, term.times)
        for term, weight in zip(terms, difference, strict=True)
        if term.value is not None or weight != 0
    ]
    evidence.sort(key=lambda e: -abs(e.decibans))
    prior = float(_difference(log_prior[winner], log_prior[other])) * DECIBANS
    return Explanation(
        classes[winner],
        classes[other],
        float(posterior[winner]),
        float(posterior[other]),
        prior,
        tuple(evidence),
        tuple(unknown),
    )


def _difference(a: Any, b: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(a) & np.isneginf(b), 0.0, np.subtract(a, b))
