"""NomogramDisplay: the whole model on one sheet: decibans of every value, to be added up to a probability by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.distributions.family import Feature, check_whole, first_value
from banbury.explain import DECIBANS, Explanation, Term, explained
from banbury.explain.page import printable
from banbury.naive_bayes import Model
from banbury.plots.display import Display, name, names, percent, signed
from banbury.plots.features import (
    ClassedRows,
    check_model,
    grid,
    log_likelihood,
    named_values,
    number_of,
    parts_of,
)
from banbury.plots.sheet import LANE, WIDTH, Scale, Sheet
from banbury.readers import Batch
from banbury.renamed import takes_old

STEPS = 200  # points of a numeric feature's curve


class NomogramDisplay(Display):
    """For how many decibans each value of each feature speaks for ``label`` against ``against``; and what the sum means.

    The numbers are those of ``model.explain``: ``prior``, plus the decibans of a row's values from ``scales``, is ten times log10
    of the odds, and ``probability`` turns the sum into what ``model.posterior`` says. A missing value adds nothing. Of a numeric
    feature the curve's height is the value. ``points(row)`` reads the decibans of a row off.

    >>> import banbury as bb
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> row = {"outlook": "sunny", "temperature": None, "humidity": "high", "wind": "strong"}
    >>> sheet = bb.plots.NomogramDisplay.from_model(model, "yes", row=row)
    >>> {feature: round(weight, 2) for feature, weight in sheet.points(row).items()}
    {'outlook': -3.01, 'temperature': 0.0, 'humidity': -2.93, 'wind': -1.96}
    >>> round(float(sheet.probability(sheet.decibans(row))), 3), model.posterior(row).round(3).tolist()
    (0.226, [[0.774, 0.226]])
    """

    @takes_old(most="n")
    def __init__(
        self,
        model: Model,
        label: Any,
        against: Any,
        scales: Sequence[Scale],
        *,
        row: Any = None,
        n: int = 12,
        limit: float = 50.0,
    ) -> None:
        self.model, self.label, self.against = model, label, against
        self.scales = {scale.feature: scale for scale in scales}
        self.row, self.n, self.limit = row, n, limit
        self.prior = self._weighed([]).prior

    @classmethod
    @takes_old(most="n")
    def from_model(
        cls,
        model: Model,
        label: Any,
        against: Any = None,
        *,
        data: Any = None,
        target: Any = None,
        row: Any = None,
        n: int = 12,
        limit: float = 50.0,
        ax: Any = None,
        **reading: Any,
    ) -> Self:
        """Draws what speaks for a class against another, which may be left out where there are two.

        ``row`` marks the values of one row and their sum. Numbers are drawn from the lowest to the highest of ``data`` (with its
        ``target``, as ``bb.count`` takes them), or else as far as the model's own values reach. ``n``: the features that
        tell most. The picture ends ``limit`` decibans from 0.
        """
        check_model(model, classes=2)
        c = number_of(model, label)
        if against is None and len(model.classes) > 2:
            others = errors.listed((repr(each) for each in model.classes if each != label), 6)
            raise errors.BadSetting(
                f"of {len(model.classes):,} classes {label!r} cannot be weighed against all others at once: that evidence does "
                f"not add up feature by feature. Name one of them with against= ({others}), or count with a target of two "
                f"classes, {label!r} and the rest.",
                label=label,
            )
        other = model.classes[1 - c] if against is None else against
        if number_of(model, other) == c:
            raise errors.bad_setting("against", against, "another class than the one it is weighed against")
        if not isinstance(limit, (int, float)) or isinstance(limit, bool) or not 1 <= limit <= 1e6:
            raise errors.bad_setting("limit", limit, "a number of decibans from 1 to 1,000,000")
        check_whole("n", n, 1, 10**6)
        for feature in model.schema.features:
            feature.family.check_line(feature)
        rows = None if data is None else ClassedRows(model, data, target, reading)
        sheet = cls(model, label, other, [], row=row, n=n, limit=float(limit))
        sheet.scales = {f.name: sheet._scale(f, rows) for f in model.schema.features}
        return sheet.plot(ax)

    # The numbers

    def _scale(self, feature: Feature, rows: ClassedRows | None) -> Scale:
        parts, column = parts_of(self.model, feature.name), feature.inputs[0]
        if parts.is_numeric:
            seen = None if rows is None else rows.numbers(column)
            seen = None if seen is None else seen[np.isfinite(seen)]
            values: Any = grid(self.model, feature, column, seen if seen is not None and len(seen) else None, STEPS)
            called, counted = list[str](), np.empty(0)
        else:
            values, called, counted, *_ = named_values(self.model, parts)
        likelihoods = log_likelihood(self.model, feature, values)
        told = self._weighed([Term(feature.name, k, each) for k, each in enumerate(likelihoods)])
        decibans = np.zeros(len(values))
        decibans[[e.value for e in told.evidence]] = [e.decibans for e in told.evidence]
        return Scale(feature.name, values, decibans, names(called), counted, parts.is_numeric)

    def _weighed(self, terms: Sequence[Term]) -> Explanation:
        """What ``explain`` makes of these terms, with the label in the winner's place."""
        classes = self.model.classes
        at = classes.index(self.label), classes.index(self.against)
        return explained(classes, self.model.log_prior, terms, np.exp(self.model.log_prior), *at)

    def points(self, row: Any) -> dict[str, float]:
        """For how many decibans each feature of a row speaks; 0 where its value is missing."""
        return {feature: self._weighed([term]).evidence[0].decibans for feature, term in self._terms(row).items()}

    def decibans(self, row: Any) -> float:
        """The sum of the prior and of a row's points."""
        return self._weighed(list(self._terms(row).values())).decibans

    def _terms(self, row: Any) -> dict[str, Term]:
        batch = self._read(row)
        inputs = {feature: self.model.schema[feature].inputs for feature in self.scales}
        there = [feature for feature, columns in inputs.items() if set(columns).issubset(batch.names)]
        each = {feature: self.model.log_likelihood(batch, feature)[0] for feature in there}
        nothing = np.zeros(len(self.model.classes))
        return {feature: Term(feature, 0, each.get(feature, nothing)) for feature in self.scales}

    def _read(self, row: Any) -> Batch:
        """One row, under the model's names."""
        return self.model._fitting(self.model._one_row(row), {"absent", "extra"})[0]

    def probability(self, decibans: Any) -> Any:
        """What a sum of decibans means: P(label | row), or among more than two classes P(label | row, and one of the two)."""
        odds = np.asarray(decibans, dtype=np.float64) / DECIBANS
        if self.model.calibration is None or len(self.model.classes) > 2:
            return np.exp(-np.logaddexp(0.0, -odds))
        c = self.model.classes.index(self.label)
        scores = np.zeros((odds.size, 2))
        scores[:, c], scores[:, 1 - c] = np.minimum(odds.ravel(), 0.0), np.minimum(-odds.ravel(), 0.0)
        return self.model.calibration.apply(scores)[:, c].reshape(odds.shape)

    # The picture

    def _draw(self, ax: Any) -> None:
        shown = sorted(self.scales.values(), key=lambda scale: -scale.range)[: self.n]
        heights = [LANE, *(scale.height for scale in shown), 1.5 * LANE]
        ax = self._begin(ax, WIDTH, 0.9 + 0.44 * sum(heights))
        batch = None if self.row is None else self._read(self.row)
        points = {} if batch is None else self.points(batch)
        every = np.concatenate([[0.0, self.prior], *(scale.decibans for scale in shown), list(points.values())])
        every = np.clip(every, -self.limit, self.limit)
        room = 0.06 * float(np.ptp(every)) or 1.0
        sheet = Sheet(ax, float(every.min()) - room, float(every.max()) + room)
        middles = sheet.lanes(heights)
        sheet.line(np.array([self.prior]), [signed(self.prior)], np.ones(1), middles[0])
        for scale, middle in zip(shown, middles[1:-1], strict=True):
            if scale.numeric:
                sheet.curve(scale, middle)
            else:
                sheet.line(scale.decibans, scale.names, scale.rows, middle)
        sheet.sums(self.probability, middles[-1])
        schema = self.model.schema
        values = {} if batch is None else {scale.feature: _value(batch, schema[scale.feature]) for scale in shown}
        said = f"sum in decibans, and below it {self._meaning}"
        if batch is not None:
            total = self.decibans(batch)
            sheet.mark(self.prior, middles[0])
            for scale, middle in zip(shown, middles[1:-1], strict=True):
                value, weight = values[scale.feature], points[scale.feature]
                if value is not None or weight != 0:  # what is missing has a mark where it is a value of its own
                    sheet.mark(weight, float(scale.heights(value, middle)) if scale.numeric else middle)
            sheet.sum_mark(total, middles[-1])
            said = f"{signed(total)} decibans: {self._meaning} {percent(float(self.probability(total)))}"
        ax.text((sheet.low + sheet.high) / 2, middles[-1] - 0.52, said, ha="center", va="top", fontsize=8)
        labels = [name(s.feature) + (f" = {name(values[s.feature], 18)}" if values else "") for s in shown]
        self._frame(ax, middles, ["prior", *labels, "sum"])
        curves = "; a curve's height is the value" if any(scale.numeric for scale in shown) else ""
        n_all = len(self.scales)
        fewer = f"; {len(shown)} features of {n_all}, those that tell most" if len(shown) < n_all else ""
        self._title(f"Nomogram: {name(self.label)} against {name(self.against)}{curves}{fewer}")

    def _frame(self, ax: Any, middles: Real, labels: list[str]) -> None:
        ax.set_yticks(middles, labels)
        ax.tick_params(axis="y", length=0)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        ax.spines[["left", "bottom", "right"]].set_visible(False)
        ax.spines["top"].set_visible(True)
        ax.set_xlabel(f"decibans: to the right for {name(self.label)}, to the left for {name(self.against)}")

    @property
    def _meaning(self) -> str:
        label = name(self.label)
        if len(self.model.classes) == 2:
            return f"P({label})"
        before = ", before calibration" if self.model.calibration is not None else ""
        return f"P({label} | {label} or {name(self.against)}){before}"


def _value(batch: Batch, feature: Feature) -> Any:
    """A row's value of a feature; None where it is missing. Of a block the values of its columns."""
    if not set(feature.inputs).issubset(batch.names):
        return None
    value = first_value(batch, feature)
    several = isinstance(value, tuple) and any(each is not None for each in value) and len(value) > 1
    return ", ".join(map(printable, value)) if several else value[0] if isinstance(value, tuple) else value
