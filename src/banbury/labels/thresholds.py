"""Thresholds: how probable each label must be to be given, chosen on rows that were held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.labels.calibration import Flags, LabelCalibration, in_stretches, sigmoid
from banbury.tally.tally import Label

SHRUNK = 10.0  # rows that the common threshold counts in that of a label
Choose = Literal["f1"] | float | Mapping[Any, float]


@dataclass(frozen=True, eq=False, repr=False)
class Thresholds:
    """Of each label the probability from which on it is given, and the calibration that makes probabilities honest.

    ``common`` is the one of labels that were not there when they were chosen.
    """

    labels: tuple[Label, ...]
    probabilities: Real  # (labels,)
    calibration: LabelCalibration
    common: float = 0.5

    def __str__(self) -> str:
        if not len(self.probabilities):
            return f"thresholds of no label yet, and {self.common:.3f} for new ones"
        low = float(self.probabilities.min())
        high = float(self.probabilities.max())
        extent = f"{low:.3f}" if low == high else f"from {low:.3f} to {high:.3f}"
        return f"{errors.many(len(self.labels), 'threshold')}, {extent}; {self.common:.3f} for new labels"

    __repr__ = __str__

    @classmethod
    def half(cls, labels: Sequence[Label]) -> Thresholds:
        return cls(tuple(labels), np.full(len(labels), 0.5), LabelCalibration.uniform(len(labels)))

    @classmethod
    def choose(
        cls,
        labels: Sequence[Label],
        scores: Real,
        flags: Flags,
        weights: Real | None,
        choose: Choose | None,
        method: str | None = None,
    ) -> Thresholds:
        """From the scores of rows that were held out, (rows, labels), and the labels that they have.

        "f1": of each label the threshold that gives the highest F1, drawn towards the one that does for all together, as if that
        had been found on ten more rows of it. A number: that one, for all; a mapping: for some labels, and 0.5 for others; None:
        one half. ``method``: how probabilities are calibrated ("temperature", "platt"; None: one slope and shift of all labels).
        """
        begun = replace(cls.half(labels), calibration=LabelCalibration.fit(method, scores, flags, weights))
        if choose is None:
            return begun
        if not (isinstance(choose, str) and choose == "f1"):
            return begun.override(choose)
        odds = begun.calibration.odds(scores)
        row_weights = np.ones(len(odds)) if weights is None else weights
        common, together = common_f1(odds, flags, weights)
        n = row_weights @ flags
        cuts = np.zeros(odds.shape[1])
        for k in np.flatnonzero(n > 0).tolist():
            cuts[k] = best_f1(odds[:, k], flags[:, k], row_weights, together)[0]
        cuts = np.where(n > 0, (n * np.where(n > 0, cuts, 0.0) + SHRUNK * common) / (n + SHRUNK), common)
        return replace(begun, probabilities=sigmoid(cuts), common=float(sigmoid(common)))

    def override(self, choose: Any) -> Thresholds:
        """The same with thresholds that a user names: one for all, or for some labels."""
        by_label = choose if isinstance(choose, Mapping) else dict.fromkeys(self.labels, choose)
        for label, value in by_label.items():
            if label not in self.labels:
                raise errors.unknown_choice("a label of threshold", label, list(self.labels))
            if isinstance(value, (bool, str)) or not isinstance(value, (int, float, np.number)) or not 0 <= value <= 1:
                raise errors.bad_setting("threshold", value, "'f1', a probability from 0 to 1, or one for each label")
        values = [float(by_label.get(label, 0.5)) for label in self.labels]
        common = 0.5 if isinstance(choose, Mapping) else float(choose)
        return replace(self, probabilities=np.array(values), common=common)

    def of(self, labels: Sequence[Label]) -> Thresholds:
        """The same of other labels, some of which may be new."""
        if tuple(labels) == self.labels:
            return self
        by_label = dict(zip(self.labels, self.probabilities.tolist(), strict=True))
        values = np.array([by_label.get(label, self.common) for label in labels])
        place = {label: k for k, label in enumerate(self.labels)}
        calibration = self.calibration.take([place.get(label) for label in labels])
        return replace(self, labels=tuple(labels), probabilities=values, calibration=calibration)

    def recalibrate(self, calibration: LabelCalibration | None) -> Thresholds:
        """Those of the same answers under another calibration; None takes it away."""
        new = LabelCalibration.uniform(len(self.labels)) if calibration is None else calibration
        if not isinstance(new, LabelCalibration):
            raise errors.bad_setting(
                "calibration", new, "a calibration of log-odds and flags from bb.calibrate, or None"
            )
        if new.n_labels != len(self.labels):
            raise errors.bad_setting(
                "calibration",
                f"a calibration for {errors.many(new.n_labels, 'label')}",
                f"a calibration for the model's {errors.many(len(self.labels), 'label')}",
            )
        with np.errstate(divide="ignore"):  # a threshold of 0 or 1 stays what it is
            odds = np.log(self.probabilities) - np.log1p(-self.probabilities)
        moved = np.where(np.isinf(odds), odds, new.odds(self.calibration.before(odds)))
        return replace(self, probabilities=sigmoid(moved), calibration=new)

    def honest(self, scores: Real) -> Real:
        """Probabilities of log-odds."""
        return np.asarray(sigmoid(self.calibration.odds(scores)))


class LabelsTogether(NamedTuple):
    """All labels under one threshold: their F1, how many they are, and how many are given or there."""

    f1: float
    n_labels: int
    given_or_there: float


def best_f1(
    odds: Real, flags: Flags, weights: Real, together: LabelsTogether | None = None
) -> tuple[float, LabelsTogether]:
    """The threshold of the highest F1: half way between the last odds that are given the label and the next.

    Of one label among many, that for which the mean of F1 over labels and F1 of all labels together is highest: the first alone
    would give a label that is hardly ever right to a thousand rows for the sake of one.
    """
    least = odds[flags].min() if flags.any() else np.inf  # no threshold below it is any good, nor are rows
    above = odds >= least
    after_all = float(odds[~above].max(initial=-np.inf))
    odds = odds[above]
    flags = flags[above]
    weights = weights[above]
    order = np.argsort(-odds, kind="stable")
    odds = odds[order]
    answered = np.cumsum(weights[order])
    right = np.cumsum(np.where(flags[order], weights[order], 0.0))
    if not len(right) or right[-1] <= 0:
        return 0.0, LabelsTogether(0.0, 1, 1.0)
    gain = f1 = 2.0 * right / (answered + right[-1])
    if together is not None:
        gain = f1 / together.n_labels + (2.0 * right - together.f1 * answered) / together.given_or_there
    last = np.append(odds[1:] < odds[:-1], True)  # equal odds are given the label together
    best = int(np.argmax(np.where(last, gain, -np.inf)))
    if together is not None and gain[best] <= 0.0:
        return float(odds[0]) + 2.0, LabelsTogether(0.0, 1, 1.0)
    least = float(odds[best])
    after = odds[best + 1] if best + 1 < len(odds) else max(after_all, min(least - 4.0, -least))  # even odds, if far
    return (least + float(after)) / 2.0, LabelsTogether(float(f1[best]), 1, float(answered[best] + right[-1]))


def common_f1(odds: Real, flags: Flags, weights: Real | None) -> tuple[float, LabelsTogether]:
    """The threshold of the highest F1 of all labels together, to within a stretch of odds, and what it gives."""
    x, no, yes = in_stretches(odds, flags, weights)
    right = np.cumsum(yes[::-1])[::-1]
    answered = np.cumsum((yes + no)[::-1])[::-1]
    if not len(right) or right[0] <= 0:
        return 0.0, LabelsTogether(0.0, odds.shape[1], 1.0)
    f1 = 2.0 * right / (answered + right[0])
    best = int(len(f1) - 1 - np.argmax(f1[::-1]))
    cut = (x[best] + x[best - 1]) / 2.0 if best else x[0] - 2.0
    return float(cut), LabelsTogether(float(f1[best]), odds.shape[1], float(answered[best] + right[0]))
