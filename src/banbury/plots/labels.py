"""LabelsDisplay: the F1 of each label against its number of rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.labels import LabelEvaluation, LabelModel
from banbury.plots.display import (
    COLOURS,
    FAINT,
    LINES,
    SUM,
    Display,
    check_type,
    legend_beside,
    logarithmic,
    short_names,
)
from banbury.quality import evaluate

MARK_AREA = 26.0  # of a single label, in square points
AREA_PER_LABEL = 22.0  # what each further label with the same figures adds
WIDTH = 8.6  # inches
HEIGHT = 4.6  # inches
LETTER_SHARE = 0.0095  # as a share of the axes' width
LINE_SHARE = 0.036  # as a share of the axes' height
NAME_BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
# Directions of a name from its mark, and where its box begins, in widths and heights of the box.
DIRECTIONS = {(1, 0): (0.0, -0.5), (-1, 0): (-1.0, -0.5), (0, 1): (-0.5, 0.0), (0, -1): (-0.5, -1.0)}
MOST_NAMED = 60  # labels
LONGEST_LABEL = 18


class LabelsDisplay(Display):
    """The F1 of every label against its number of rows. ``f1``, ``rows`` and ``labels`` have the numbers, without
    labels that have no rows.

    >>> import banbury as bb
    >>> texts = ["wheat and corn", "crude oil", "corn oil", "a quiet day"] * 5
    >>> topics = [["grain"], ["fuel"], ["fuel", "grain"], []] * 5
    >>> found = bb.cross_validate(texts, topics, folds=4)
    >>> shown = bb.plots.LabelsDisplay.from_evaluation(found)
    >>> shown.labels, shown.rows.tolist(), shown.f1.tolist()
    (('fuel', 'grain'), [10.0, 10.0], [1.0, 1.0])
    """

    def __init__(self, evaluation: LabelEvaluation) -> None:
        """``evaluation``: a result of ``bb.evaluate`` or ``bb.cross_validate`` for several labels per row."""
        expected = "an evaluation of labels, from bb.evaluate or bb.cross_validate"
        check_type("the evaluation", evaluation, LabelEvaluation, expected)
        measures = evaluation.per_label  # arrays of one entry per label
        labels_with_rows = np.flatnonzero(measures.rows > 0)
        if not len(labels_with_rows):
            raise errors.empty_data(None, "no row has a label, so there is no F1 to draw")
        self.evaluation = evaluation
        # What follows has one entry for each label that has rows.
        self.labels = tuple(evaluation.labels[label_number] for label_number in labels_with_rows.tolist())
        self.f1 = measures.f1[labels_with_rows]
        self.rows = measures.rows[labels_with_rows]

    @classmethod
    def from_evaluation(cls, evaluation: LabelEvaluation, *, ax: Any = None) -> Self:
        """Draws a result of ``bb.evaluate`` or ``bb.cross_validate`` for several labels per row."""
        return cls(evaluation).plot(ax)

    @classmethod
    def from_model(cls, model: LabelModel, data: Any, target: Any = None, *, ax: Any = None, **reading: Any) -> Self:
        """Draws the predictions of a model for the rows ``data``, which it has not learned from. ``target``: their
        label sets, or the column of them; ``reading``: options for reading the data.
        """
        model = getattr(model, "model_", model)
        check_type("the model", model, LabelModel, "a LabelModel (of a bb.MultiLabelClassifier: its model_)")
        evaluation: Any = evaluate(model, data, target, **reading)
        return cls.from_evaluation(evaluation, ax=ax)

    def _draw(self, ax: Any) -> None:
        """Draws a mark for each label (``self.f1`` over ``self.rows``, one entry each), its name where there is room,
        and the mean F1.
        """
        ax = self._begin(ax, width=WIDTH, height=HEIGHT)
        evaluation = self.evaluation
        low = float(self.rows.min()) / 1.5  # the ends of the horizontal axis, in rows
        high = float(self.rows.max()) * 2.2
        ax.set(xscale="log", xlim=(low, high), ylim=(-0.06, 1.08))
        # Of F1 over labels, by name.
        means = {"micro": evaluation.micro_f1, "macro": evaluation.macro_f1}
        for (mean_name, mean_f1), line in zip(means.items(), LINES, strict=False):
            label = f"{mean_name} F1 {mean_f1:.3f}"
            ax.axhline(mean_f1, color=FAINT, linestyle=line, linewidth=1.2, zorder=1, label=label)
        # Where labels have as many rows and the same F1, one larger mark stands for all of them.
        label_points = np.stack([self.rows, self.f1], axis=1)
        # The points (rows, F1) of the marks, the mark of each label, and the number of labels at each mark.
        points, mark_numbers, n_labels = np.unique(label_points, axis=0, return_inverse=True, return_counts=True)
        areas = MARK_AREA + AREA_PER_LABEL * (n_labels - 1)
        ax.scatter(*points.T, areas, color=COLOURS[0], edgecolors="white", linewidths=0.6, zorder=3)
        self._draw_names(ax, np.asarray(mark_numbers).ravel(), n_labels, low, high)
        logarithmic(ax, (1.0, 3.0), ",.4g")
        ax.set(xlabel="rows that have the label", ylabel="F1 of the label")
        legend_beside(ax)
        size_note = "; a larger mark is several labels" if (n_labels > 1).any() else ""
        ax.set_title(
            f"{errors.many(len(self.labels), 'label')} on {errors.many(len(evaluation.truth), 'row')}{size_note}"
        )

    def _draw_names(self, ax: Any, mark_of_label: Any, n_labels: Any, low: float, high: float) -> None:
        """Draws the names of labels, those with most rows first, where they do not overlap. ``mark_of_label``: the mark
        of each label; ``n_labels``: how many labels are at each mark; ``low``, ``high``: the ends of the horizontal
        axis.
        """
        # The mark of each label as shares of the axes, whose vertical one goes from −0.06 to 1.08.
        x = np.log(self.rows / low) / np.log(high / low)
        y = (self.f1 + 0.06) / 1.14
        # Boxes are (left, bottom, right, top), as shares of the axes.
        mark_boxes = np.stack([x - 0.008, y - 0.013, x + 0.008, y + 0.013], axis=1)
        name_boxes: list[tuple[float, ...]] = []
        label_names = short_names(list(map(str, self.labels)), LONGEST_LABEL)
        named_marks = set[int]()
        for label_number in np.argsort(-self.rows, kind="stable").tolist():
            mark_number = int(mark_of_label[label_number])
            if mark_number in named_marks or len(name_boxes) == MOST_NAMED:
                continue
            name = label_names[label_number]
            if n_labels[mark_number] > 1:
                name = f"{n_labels[mark_number]:,} labels"
                named_marks.add(mark_number)
            width = LETTER_SHARE * len(name)
            # Beyond that of a single label.
            mark_size = float(n_labels[mark_number] - 1) ** 0.5
            # Boxes that the name must not cover.
            obstacles = [*name_boxes, *mark_boxes[mark_of_label != mark_number].tolist()]
            # The first direction in which the name overlaps nothing; ``left`` and ``bottom`` are in sizes of its box.
            for (x_direction, y_direction), (left, bottom) in DIRECTIONS.items():
                # The left and the lower edge of the name's box, as shares of the axes.
                start = x[label_number] + x_direction * (0.014 + 0.0015 * mark_size) + left * width
                floor = y[label_number] + y_direction * (0.02 + 0.004 * mark_size) + bottom * LINE_SHARE
                box = start, floor, start + width, floor + LINE_SHARE
                if min(box) < 0.0 or max(box) > 1.0 or any(_overlap(box, obstacle) for obstacle in obstacles):
                    continue
                # From the mark, in points.
                offset = x_direction * (6.0 + 1.3 * mark_size), y_direction * (5.0 + 1.3 * mark_size)
                style: dict[str, Any] = {
                    "ha": ("right", "center", "left")[x_direction + 1],
                    "va": ("top", "center", "bottom")[y_direction + 1],
                    "bbox": NAME_BOX,
                }
                point = self.rows[label_number], self.f1[label_number]
                ax.annotate(name, point, offset, textcoords="offset points", fontsize=7.5, color=SUM, zorder=2, **style)
                name_boxes.append(box)
                break


def _overlap(box: Any, other_box: Any) -> bool:
    """Whether two boxes (left, bottom, right, top) overlap."""
    return bool(box[0] < other_box[2] and other_box[0] < box[2] and box[1] < other_box[3] and other_box[1] < box[3])
