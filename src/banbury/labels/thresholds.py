"""Thresholds: how probable a label must be to be predicted, chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.labels.calibration import Flags, LabelCalibration, bin_log_odds, sigmoid
from banbury.tally.tally import Label

SHRINKAGE_ROWS = 10.0  # how many rows of a label the common threshold counts for
ThresholdSetting = Literal["f1"] | float | Mapping[Any, float]


@dataclass(frozen=True, eq=False, repr=False)
class Thresholds:
    """The probability from which on each label is predicted, and the calibration of the log-odds.

    ``common`` is the threshold of labels that were unknown when the thresholds were chosen.
    """

    labels: tuple[Label, ...]
    probabilities: Real  # the calibrated probability from which on a label is predicted (labels,)
    calibration: LabelCalibration
    common: float = 0.5  # for new labels

    def __str__(self) -> str:
        """Returns how many thresholds there are, and their extent."""
        if not len(self.probabilities):
            return f"thresholds of no label yet, and {self.common:.3f} for new ones"
        low = float(self.probabilities.min())
        high = float(self.probabilities.max())
        extent = f"{low:.3f}" if low == high else f"from {low:.3f} to {high:.3f}"
        return f"{errors.many(len(self.labels), 'threshold')}, {extent}; {self.common:.3f} for new labels"

    __repr__ = __str__

    @classmethod
    def half(cls, labels: Sequence[Label]) -> Thresholds:
        """Returns a threshold of one half for each label, without calibration."""
        return cls(tuple(labels), np.full(len(labels), 0.5), LabelCalibration.uniform(len(labels)))

    @classmethod
    def choose(
        cls,
        labels: Sequence[Label],
        scores: Real,
        flags: Flags,
        weights: Real | None,
        setting: ThresholdSetting | None,
        method: str | None = None,
    ) -> Thresholds:
        """Returns thresholds that are chosen on held-out rows, and the calibration learned from the same rows.

        Args:
            labels: The labels, in the order of the columns of scores and flags.
            scores: The log-odds of held-out rows (rows × labels).
            flags: Which labels the rows have (rows × labels).
            weights: The weight of each row, or None.
            setting: "f1" chooses the threshold with the highest F1 of each label, shrunk towards the one with the highest
                F1 of all labels together, which counts as ten rows. Or one number for all labels, a mapping for some
                labels (0.5 for the others), or None for 0.5.
            method: The method of calibration: "temperature", "platt", or None for one slope and shift of all labels.
        """
        half_thresholds = replace(cls.half(labels), calibration=LabelCalibration.fit(method, scores, flags, weights))
        if setting is None:
            return half_thresholds
        if not (isinstance(setting, str) and setting == "f1"):
            return half_thresholds.override(setting)
        calibrated_odds = half_thresholds.calibration.odds(scores)
        row_weights = np.ones(len(calibrated_odds)) if weights is None else weights
        # The threshold of all labels together, in calibrated log-odds, and its F1.
        common_cut, f1_of_all = common_f1(calibrated_odds, flags, weights)
        rows_by_label = row_weights @ flags
        cut_by_label = np.zeros(calibrated_odds.shape[1])  # the threshold of each, in calibrated log-odds
        for label_number in np.flatnonzero(rows_by_label > 0).tolist():
            cut_by_label[label_number] = best_f1(
                calibrated_odds[:, label_number], flags[:, label_number], row_weights, f1_of_all
            )[0]
        shrunk_cuts = (rows_by_label * cut_by_label + SHRINKAGE_ROWS * common_cut) / (rows_by_label + SHRINKAGE_ROWS)
        cut_by_label = np.where(rows_by_label > 0, shrunk_cuts, common_cut)
        return replace(half_thresholds, probabilities=sigmoid(cut_by_label), common=float(sigmoid(common_cut)))

    def override(self, setting: Any) -> Thresholds:
        """Returns these thresholds with probabilities that a user chooses. ``setting`` is one probability for all
        labels, or a mapping for some labels, with 0.5 for the others. Raises for an unknown label or an invalid
        probability.
        """
        probability_by_label = setting if isinstance(setting, Mapping) else dict.fromkeys(self.labels, setting)
        for label, probability in probability_by_label.items():
            if label not in self.labels:
                raise errors.unknown_choice("a label of threshold", label, list(self.labels))
            if (
                isinstance(probability, (bool, str))
                or not isinstance(probability, (int, float, np.number))
                or not 0 <= probability <= 1
            ):
                raise errors.bad_setting(
                    "threshold", probability, "'f1', a probability from 0 to 1, or one for each label"
                )
        probabilities = [float(probability_by_label.get(label, 0.5)) for label in self.labels]
        common = 0.5 if isinstance(setting, Mapping) else float(setting)
        return replace(self, probabilities=np.array(probabilities), common=common)

    def of(self, labels: Sequence[Label]) -> Thresholds:
        """Returns the thresholds of other labels, in their order. Labels that are new get ``common``."""
        if tuple(labels) == self.labels:
            return self
        number_of_label = {label: number for number, label in enumerate(self.labels)}
        label_numbers = [number_of_label.get(label) for label in labels]  # None: a new label
        probabilities = np.array(
            [self.common if number is None else self.probabilities[number] for number in label_numbers]
        )
        calibration = self.calibration.take(label_numbers)
        return replace(self, labels=tuple(labels), probabilities=probabilities, calibration=calibration)

    def recalibrate(self, calibration: LabelCalibration | None) -> Thresholds:
        """Returns thresholds that lead to the same predictions under another calibration; None removes the calibration.
        Raises an error if the calibration is not one of as many labels.
        """
        new_calibration = LabelCalibration.uniform(len(self.labels)) if calibration is None else calibration
        if not isinstance(new_calibration, LabelCalibration):
            raise errors.bad_setting(
                "calibration", new_calibration, "a calibration of log-odds and flags from bb.calibrate, or None"
            )
        if new_calibration.n_labels != len(self.labels):
            raise errors.bad_setting(
                "calibration",
                f"a calibration for {errors.many(new_calibration.n_labels, 'label')}",
                f"a calibration for the model's {errors.many(len(self.labels), 'label')}",
            )
        with np.errstate(divide="ignore"):  # a threshold of 0 or 1 stays what it is
            old_odds = np.log(self.probabilities) - np.log1p(-self.probabilities)  # calibrated log-odds of thresholds
        new_odds = np.where(np.isinf(old_odds), old_odds, new_calibration.odds(self.calibration.before(old_odds)))
        return replace(self, probabilities=sigmoid(new_odds), calibration=new_calibration)

    def honest(self, log_odds: Real) -> Real:
        """Returns calibrated probabilities from uncalibrated log-odds (rows × labels each)."""
        return np.asarray(sigmoid(self.calibration.odds(log_odds)))


class F1OfLabels(NamedTuple):
    """The F1 of ``n_labels`` labels together under one threshold.

    ``predicted_plus_true`` is the denominator of F1: the number of predicted labels plus the number of true labels.
    """

    f1: float
    n_labels: int
    predicted_plus_true: float


def best_f1(odds: Real, flags: Flags, weights: Real, f1_of_all: F1OfLabels | None = None) -> tuple[float, F1OfLabels]:
    """Returns the threshold (in log-odds) with the highest F1 for one label, and that F1, from the log-odds of rows,
    whether they have the label (``flags``), and their weights: one number per row each. The threshold lies halfway
    between the last log-odds above it and the next.

    With ``f1_of_all``, the label is one of many, and the threshold maximises the mean F1 over labels plus the F1 of all
    labels together. The first alone would predict a label that is hardly ever right for a thousand rows for the sake of
    one.
    """
    lowest_true_odds = odds[flags].min() if flags.any() else np.inf  # a threshold below it only adds false predictions
    is_candidate = odds >= lowest_true_odds
    highest_left_out = float(odds[~is_candidate].max(initial=-np.inf))
    candidate_weights = weights[is_candidate]
    order = np.argsort(-odds[is_candidate], kind="stable")
    sorted_odds = odds[is_candidate][order]
    # If the threshold is just below each candidate: the weight of predicted rows, and of those that have the label.
    n_predicted = np.cumsum(candidate_weights[order])
    n_correct = np.cumsum(np.where(flags[is_candidate][order], candidate_weights[order], 0.0))
    if not len(n_correct) or n_correct[-1] <= 0:
        return 0.0, F1OfLabels(f1=0.0, n_labels=1, predicted_plus_true=1.0)
    gain = f1 = 2.0 * n_correct / (n_predicted + n_correct[-1])  # for each of these thresholds
    if f1_of_all is not None:
        # How much predicting these rows raises the F1 of all labels together.
        gain_of_all = (2.0 * n_correct - f1_of_all.f1 * n_predicted) / f1_of_all.predicted_plus_true
        gain = f1 / f1_of_all.n_labels + gain_of_all
    is_last_of_equals = np.append(sorted_odds[1:] < sorted_odds[:-1], True)  # equal log-odds are predicted together
    # The last candidate that is predicted.
    best_position = int(np.argmax(np.where(is_last_of_equals, gain, -np.inf)))
    if f1_of_all is not None and gain[best_position] <= 0.0:
        # Nothing is predicted: the threshold is above all log-odds.
        return float(sorted_odds[0]) + 2.0, F1OfLabels(f1=0.0, n_labels=1, predicted_plus_true=1.0)
    last_above = float(sorted_odds[best_position])
    if best_position + 1 < len(sorted_odds):
        first_below = sorted_odds[best_position + 1]
    else:
        first_below = max(highest_left_out, min(last_above - 4.0, -last_above))  # if far, the threshold is even odds
    cut = (last_above + float(first_below)) / 2.0  # the threshold
    return cut, F1OfLabels(
        float(f1[best_position]),
        n_labels=1,
        predicted_plus_true=float(n_predicted[best_position] + n_correct[-1]),
    )


def common_f1(odds: Real, flags: Flags, weights: Real | None) -> tuple[float, F1OfLabels]:
    """Returns the threshold (in log-odds) with the highest F1 of all labels together, to within a bin of log-odds, and
    that F1.

    Log-odds and flags, which say which labels rows have, are rows × labels; ``weights`` has one number per row, or is
    None.
    """
    # The middle of each bin, ascending, and the weight of the pairs in it whose row lacks the label, and has it.
    bin_odds, no_weight, yes_weight = bin_log_odds(odds, flags, weights)
    # If the threshold is at each bin: the weight of pairs that are predicted and true, and that are predicted.
    n_correct = np.cumsum(yes_weight[::-1])[::-1]
    n_predicted = np.cumsum((yes_weight + no_weight)[::-1])[::-1]
    if not len(n_correct) or n_correct[0] <= 0:
        return 0.0, F1OfLabels(f1=0.0, n_labels=odds.shape[1], predicted_plus_true=1.0)
    f1 = 2.0 * n_correct / (n_predicted + n_correct[0])
    best_bin = int(len(f1) - 1 - np.argmax(f1[::-1]))
    # The threshold: between this bin and the one below it.
    cut = (bin_odds[best_bin] + bin_odds[best_bin - 1]) / 2.0 if best_bin else bin_odds[0] - 2.0
    return float(cut), F1OfLabels(
        float(f1[best_bin]),
        n_labels=odds.shape[1],
        predicted_plus_true=float(n_predicted[best_bin] + n_correct[0]),
    )
