"""Why a row got its class: the weight of evidence of every feature and every word, in decibans.

A deciban is ten times the base-10 logarithm of a likelihood ratio: +10 makes the odds ten times as long, +3 about twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.families.evidence import Term
from banbury.model.explain import page

DECIBANS = 10.0 / math.log(10.0)
LARGEST = 2.0**960  # differences of logarithms are kept below this, lest a sum of them overflow
ALIKE = 1e-9  # log-odds that differ by less, in parts of their size, are the same
MOST = 30  # features and words that are printed


@dataclass(frozen=True)
class Evidence:
    """The evidence of one feature or word: its value and its weight in decibans, negative if it speaks against the
    winner.

    ``positions`` has the occurrences of a word as (start, end) in the feature's text, which is in
    ``Explanation.texts``. An n-gram extends from its first word to its last.
    """

    feature: str
    value: Any
    decibans: float
    seen: bool = True  # whether any counted row has the value
    times: int = 1  # how often a word occurs in the text
    positions: tuple[tuple[int, int], ...] = ()  # where it does
    common: bool = False  # whether many of the texts that were counted have it


@dataclass(frozen=True)
class Explanation:
    """The winner, the class it is compared with, and the evidence between them, strongest first.

    ``decibans`` is the sum of ``prior`` and all the evidence: ten times log10 of the odds of ``winner`` to ``against``.
    ``log_odds`` is their natural logarithm. If the row is ``impossible`` in both classes, only the prior counts.

    If the model is calibrated, so is the explanation: the prior and the evidence are multiplied by ``scale``,
    ``calibration`` is what the calibration adds beyond that, and ``uncalibrated`` is the winner's posterior before
    calibration.
    """

    winner: Any  # the predicted class
    against: Any  # the class that it is compared with
    probability: float  # of the winner
    probability_against: float  # of the class that it is compared with
    prior: float  # in decibans
    evidence: tuple[Evidence, ...]
    log_odds: float  # of winner to against
    impossible: bool = False  # whether the row is impossible in both classes
    unknown: tuple[str, ...] = ()  # words of the row's texts that are outside the vocabulary
    texts: Mapping[str, str] = field(default_factory=dict, hash=False)  # the row's own, by feature
    stale: bool = False  # whether rows were learned or forgotten since the weights of its evidence were learned
    uncalibrated: float | None = None  # None: the model is not calibrated
    scale: float = 1.0
    calibration: float = 0.0  # in decibans
    held_out: bool = False  # whether the row was counted, and was left out first
    remarks: tuple[str, ...] = ()  # more sentences to be read with it
    target: str | None = None  # the column of the classes, which names those that are numbers

    def rescale(self, slope: float, shift: float) -> Explanation:
        """Returns the calibrated explanation: all evidence is multiplied by ``slope``, and ``shift`` (in nats) is added
        in favour of the winner. If the odds turn, the classes are exchanged and all signs with them.
        """
        log_odds = slope * self.log_odds + shift
        scale = self.scale * slope
        is_reversed = log_odds < 0
        sign = -1.0 if is_reversed else 1.0
        probability = 1.0 / (1.0 + math.exp(-min(abs(log_odds), 700.0)))
        return replace(
            self,
            winner=self.against if is_reversed else self.winner,
            against=self.winner if is_reversed else self.against,
            probability=probability,
            probability_against=math.exp(-min(abs(log_odds), 700.0)) * probability,
            prior=sign * slope * self.prior,
            evidence=tuple(replace(evidence, decibans=sign * slope * evidence.decibans) for evidence in self.evidence),
            log_odds=abs(log_odds),
            uncalibrated=self.probability_against if is_reversed else self.probability,
            scale=scale,
            calibration=sign * shift * DECIBANS,
        )

    def calibrate(self, probabilities: Real, log_probabilities: Real) -> Explanation:
        """Returns the same explanation with calibrated probabilities and log-probabilities of the two classes, the
        winner's first. What the calibration changes beyond the scaled evidence becomes a line of its own.
        """
        # Of the winner to the other class, calibrated.
        log_odds = np.inf if np.isneginf(log_probabilities[1]) else float(log_probabilities[0] - log_probabilities[1])
        change = 0.0 if log_odds == self.log_odds else log_odds - self.log_odds  # both may be infinite
        if abs(change) <= ALIKE * max(1.0, abs(self.log_odds)):
            log_odds = self.log_odds
            change = 0.0
        return replace(
            self,
            probability=float(probabilities[0]),
            probability_against=float(probabilities[1]),
            log_odds=log_odds,
            calibration=change * DECIBANS,
            uncalibrated=self.probability,
        )

    def against_unseen(self, label: Any) -> Explanation:
        """Returns the same explanation against ``label``, a class that was never counted, whose probability is 0."""
        remarks = (
            *self.remarks,
            f"the model has no rows of class {self._quote(label)}, so the prior alone rules it out",
        )
        explanation = replace(self, against=label, probability_against=0.0, prior=math.inf, log_odds=math.inf)
        return replace(explanation, evidence=(), calibration=0.0, remarks=remarks)

    def of_label(self, label: Any) -> Explanation:
        """Returns the explanation of a yes/no model (classes True and False) with the classes named "label" and "not
        label".
        """
        label_of = {True: label, False: f"not {label}"}
        return replace(self, winner=label_of[self.winner], against=label_of[self.against], target=None)

    def _quote(self, label: Any) -> str:
        """Returns the name of a class for use within a sentence: texts in quotes, numbers with their target."""
        return page.quote_class(label, self.target)

    @property
    def decibans(self) -> float:
        """The log-odds of the winner in decibans, the sum of the prior and the evidence. If the row is impossible in
        both classes, it is the prior alone.
        """
        return self.log_odds * DECIBANS

    def to_dict(self) -> dict[str, Any]:
        """Returns the explanation as a dictionary for JSON; infinite numbers are strings."""
        calibration = {"scale": self.scale, "calibration": strict(self.calibration)}  # entries of a calibrated one
        return {
            "winner": self.winner,
            "against": self.against,
            "probability": self.probability,
            "probability_against": self.probability_against,
            **({"stale": True} if self.stale else {}),
            **({"held_out": True} if self.held_out else {}),
            **({} if self.uncalibrated is None else {"uncalibrated": self.uncalibrated, **calibration}),
            "decibans": strict(self.decibans),
            "prior": strict(self.prior),
            "evidence": [
                {
                    **asdict(evidence),
                    "decibans": strict(evidence.decibans),
                    "positions": [list(position) for position in evidence.positions],
                }
                for evidence in self.evidence
            ],
            "unknown": list(self.unknown),
            "texts": dict(self.texts),
        }

    @property
    def before(self) -> list[tuple[str, float]]:
        """The amounts that come before the evidence, each with its name, in decibans: the prior, and what a calibration
        adds beyond scaling, if anything.
        """
        return [("prior", self.prior), *([("calibration", self.calibration)] if self.calibration else [])]

    @property
    def notes(self) -> list[str]:
        """Notes about the explanation, one sentence each: unknown words, a calibration, and remarks."""
        notes = []
        if self.impossible:
            notes.append("impossible in both classes, so the prior decides")
        if self.unknown:
            words = ", ".join(map(repr, self.unknown[:6])) + (", …" if len(self.unknown) > 6 else "")
            notes.append(f"{len(self.unknown):,} word{'s' * (len(self.unknown) != 1)} outside the vocabulary: {words}")
        if self.uncalibrated is not None:
            scaling = f"evidence is scaled by {self.scale:.3g}; " if self.scale != 1.0 else ""
            notes.append(
                f"calibrated: {scaling}before that, {self._quote(self.winner)} had {page.percent(self.uncalibrated)}"
            )
        notes += self.remarks
        if self.stale:
            notes.append("rows have been learned or forgotten since these weights were learned; refit relearns them")
        return notes

    def __str__(self) -> str:
        """Returns the explanation as text: the two classes, a line for each piece of evidence, their sum, and notes."""
        winner = page.class_and_share(self.winner, self.target, self.probability)
        against = page.class_and_share(self.against, self.target, self.probability_against)
        lines = [f"{winner} against {against}, in decibans:"]
        lines += lines_of([(name, "", weight) for name, weight in self.before], self.evidence, self.decibans, "sum")
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Returns the explanation as HTML for notebooks: texts with shaded words, and a bar for all evidence."""
        return page.explanation(self)


def lines_of(
    before: list[tuple[str, str, float]], evidence: Sequence[Evidence], total: float, called: str
) -> list[str]:
    """Returns lines of text: names, values and decibans with their bars, and the sum. If there is much evidence, only
    the strongest is listed.

    The rest is summarised: common words together and everything else together, each for and against.

    Args:
        before: Lines that come before the evidence, such as the prior: name, value and decibans.
        evidence: The evidence, strongest first.
        total: The sum of all decibans.
        called: The name of the sum.
    """
    listed, summaries = page.strongest(evidence, MOST)  # a summary is a description, some examples, and decibans
    listed_rows = before + [  # name, value and decibans
        (listed_evidence.feature, _format_value(listed_evidence), listed_evidence.decibans)
        for listed_evidence in listed
    ]
    name_width = max([len(called), *(len(name) for name, _, _ in listed_rows)])
    value_width = max((len(value) for _, value, _ in listed_rows), default=0)
    largest = max((abs(weight) for _, _, weight in listed_rows if np.isfinite(weight)), default=0.0)
    # Two digits after the point, or as many as show the largest of small weights.
    digits = 2 if largest >= 0.1 or largest == 0 else min(2 - int(np.floor(np.log10(largest))), 12)
    lines = [
        f"  {name:{name_width}}  {value:{value_width}}  {page.format_weight(weight, digits):>8}  {_bar(weight)}".rstrip()
        for name, value, weight in listed_rows
    ]
    for summary, examples, weight in summaries:
        lines.append(
            f"  {summary:{name_width + 2 + value_width}}  {page.format_weight(weight, digits):>8}  {examples}".rstrip()
        )
    return [*lines, f"  {called:{name_width}}  {'':{value_width}}  {page.format_weight(total, digits):>8}"]


def _format_value(evidence: Evidence) -> str:
    """Returns ``= value``, or ``missing``."""
    return "missing" if evidence.value is None else f"= {page.value(evidence)}"


def _bar(weight: float) -> str:
    """Returns one + or − for each deciban of ``weight``, up to 30; ∞ if it is not finite."""
    if not np.isfinite(weight):
        return "∞"
    length = round(abs(weight))
    return ("+" if weight > 0 else "-") * min(30, length) + "…" * (length > 30)


def strict(number: float) -> float | str:
    """Returns a number for strict JSON: infinite ones become the strings "inf" and "-inf"."""
    return float(number) if np.isfinite(number) else str(float(number))


def make_explanation(
    classes: Sequence[Any],
    log_prior: Real,
    terms: Sequence[Term],
    posterior: Real,
    winner: int,
    against: int,
    scale: float = 1.0,
) -> Explanation:
    """Builds the explanation of one row from the evidence of its features, multiplied by ``scale``.

    Features with a missing value are left out. If a probability is zero in both classes, it cancels. If the row is
    impossible in both classes, only the prior counts.

    Args:
        classes: All classes.
        log_prior: Their log prior (classes,).
        terms: The evidence of each feature and word: log P(value | class) for every class.
        posterior: The posterior of the row (classes,).
        winner: The number of the predicted class.
        against: The number of the class it is compared with.
        scale: The factor by which a calibration multiplies all evidence.
    """
    # Prior and terms × (winner, against).
    log_likelihoods = np.array([log_prior, *(term.log_likelihood for term in terms)])[:, [winner, against]]
    impossible = bool(np.isneginf(log_likelihoods).any(axis=0).all())
    with np.errstate(invalid="ignore"):
        differences = np.where(  # in nats: of the prior, then of each term
            np.isneginf(log_likelihoods).all(axis=1), 0.0, scale * (log_likelihoods[:, 0] - log_likelihoods[:, 1])
        )
    prior, *weights = (differences * DECIBANS).tolist()  # weights: of the terms
    evidence = [
        Evidence(term.feature, _text_of(term.value), weight, term.seen, term.times, term.positions, term.common)
        for term, weight in zip(terms, weights, strict=True)
        if term.value is not None or weight != 0
    ]
    # The positions in ``evidence``, strongest first.
    order = np.argsort(-np.abs([term_evidence.decibans for term_evidence in evidence]), kind="stable").tolist()
    return Explanation(
        classes[winner],
        classes[against],
        probability=float(posterior[winner]),
        probability_against=float(posterior[against]),
        prior=prior,
        evidence=tuple(map(evidence.__getitem__, order)),
        log_odds=float(differences[0]) if impossible else _sum(differences),
        impossible=impossible,
        scale=scale,
    )


def _text_of(value: Any) -> Any:
    """Returns the values of a block as one text, and any other value as it is."""
    return ", ".join(map(page.printable, value)) if isinstance(value, tuple) else value


def _sum(differences: Real) -> float:
    """Returns the exact sum of log-likelihood differences (an array of numbers in nats): large ones that cancel leave
    the small ones as they are.
    """
    if np.isfinite(differences).all():
        return math.fsum(np.clip(differences, -LARGEST, LARGEST).tolist())
    return float(differences.sum())


# Rows that were counted, and are left out ----------------------------------------------------------------------------


def is_left_out(label: Any, target: str | None) -> str:
    """Returns the note for a row of class ``label`` that was left out of the model that explains it. ``target`` is the
    column of the classes, or None.
    """
    name = page.quote_class(label, target)
    return f"this row is in the training data as {name}; it was left out here so as not to bias the explanation"
