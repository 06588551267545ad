"""Report: an HTML page about a model, written atomically."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from banbury import errors
from banbury.errors import check_whole
from banbury.files.arrays import replacing
from banbury.files.checking import JsonObject
from banbury.labels import LabelModel
from banbury.model.naive_bayes import Model, estimate, model_of
from banbury.reports import labels
from banbury.reports.findings import measure_model
from banbury.reports.page import page
from banbury.tally.tally import Tally


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """An HTML page, the path it was written to, and the findings that it shows."""

    html: str
    path: Path | None  # None if it was not written
    findings: Any  # Findings, or LabelFindings for several labels per row

    def to_dict(self) -> JsonObject:
        """Returns the path of the page and its figures for JSON."""
        findings = self.findings
        path_and_size = {"path": None if self.path is None else str(self.path), "bytes": len(self.html.encode())}
        if isinstance(findings, labels.LabelFindings):
            return path_and_size | findings.to_dict()
        return {
            **path_and_size,
            "on_training_rows": findings.on_training_rows,
            "validation": findings.validation.to_dict(),
            "alternatives": None if findings.alternatives is None else findings.alternatives.to_dict(),
            "next_steps": list(findings.next_steps),
            "learning_curve": None if findings.learning_curve is None else findings.learning_curve.to_dict(),
            "informative": findings.informative.to_dict(),
            "mistakes": [mistake.to_dict() for mistake in findings.mistakes],
            "diagnosis": findings.diagnosis.to_dict(),
        }

    def __str__(self) -> str:
        """Returns the size and path of the page, and the validation."""
        size = f"{len(self.html.encode()) / 1000:,.0f} kB"
        path_in_words = "not written to a file" if self.path is None else str(self.path)
        return f"Report ({size}, {path_in_words})\n{self.findings.validation}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Returns the page in a frame, for notebooks."""
        style = "width:100%;height:40em;border:1px solid rgba(128,128,128,.4);border-radius:6px"
        return f'<iframe srcdoc="{escape(self.html, quote=True)}" style="{style}"></iframe>'


def report(
    model: Any,
    data: Any,
    target: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    folds: int | None = None,
    mistakes: int = 10,
    informative: int = 10,
    alternatives: bool = True,
    weights: Any = None,
    seed: int = 0,
    threads: int | None = None,
    **reading: Any,
) -> Report:
    """Writes one HTML file about a model: what it contains, how good it is on rows it has not seen, its evidence and
    its mistakes.

    ``data``, ``target``, ``weights`` and ``reading`` are those of ``bb.count``: labelled rows, such as the training
    data. ``target`` is the model's own target column unless given. A tally is first estimated with the defaults of
    ``bb.estimate``.

    If the model was counted from these rows, its recipe is cross-validated, so that no row is scored by a model that
    has seen it. ``folds`` is the number of folds (unless given, the folds over which ``bb.tune`` or ``banbury fit``
    compared the model; otherwise ten, or three from 2,000 rows on for weighed evidence). Other rows are scored by the
    model itself. The page says which. It shows the ``mistakes`` with the least probable true class, with their
    evidence, and ``informative`` values for each class. Above 200,000 rows, the learning curve and the pairs of columns
    are computed from a sample of that size, drawn with ``seed``.

    With ``alternatives``, other recipes are tried on at most 10,000 of the rows, and the page suggests what to do next.
    ``title`` names the target and the data unless given. For several labels per row, the page has the figures and the
    evidence of each label.

    The file at ``path`` is replaced when the new one is complete. It needs no network and no script. Without a path,
    the page is in ``html`` of the result.

    >>> import banbury as bb, pathlib, tempfile
    >>> weather = bb.datasets.play_tennis()
    >>> model = bb.estimate(bb.count(weather, target="play"))
    >>> made = bb.report(model, weather, path=pathlib.Path(tempfile.mkdtemp()) / "play.html")
    >>> made.findings.validation.accuracy == bb.cross_validate(weather, target="play").accuracy
    True
    >>> made.path.read_text(encoding="utf-8") == made.html
    True
    """
    model = model_of(model)
    errors.require(
        isinstance(model, (Model, Tally, LabelModel)),
        "model",
        type(model).__name__,
        "a Model, a LabelModel, a Tally or an estimator",
    )
    errors.require(title is None or isinstance(title, str), "title", title, "a text")
    errors.require(isinstance(alternatives, bool), "alternatives", alternatives, "True or False")
    # The arguments that are whole numbers.
    numbers: dict[str, Any] = {"folds": folds, "mistakes": mistakes, "informative": informative, "seed": seed}
    for (name, number), lowest in zip(numbers.items(), (2, 0, 1, 0), strict=True):  # the lowest allowed of each
        if name != "folds" or number is not None:
            check_whole(name, number, lowest)
            numbers[name] = int(number)
    file = None if path is None else _writable(path)  # where the page is written, as a Path
    if isinstance(model, Tally):
        model = estimate(model) if model.schema.labels is None else LabelModel.of(model)
    reading = {"remembered": model.schema.reading, **reading}
    # Arguments of ``measure_model``.
    measure_options: dict[str, Any] = {**numbers, "weights": weights, "threads": threads, "reading": reading}
    findings: Any  # Findings or LabelFindings
    draw: Any  # returns the page of findings and a title
    if model.schema.labels is None:
        findings = measure_model(model, data, target, **measure_options, tries_alternatives=alternatives)
        draw = page
    else:
        findings = labels.measure_model(model, data, target, **measure_options)
        draw = labels.page
    html = draw(findings, findings.title if title is None else title)
    if file is not None:
        with replacing(file) as output_file:
            output_file.write(html.encode())
    return Report(html, file, findings)


def _writable(path: Any) -> Path:
    """Returns the path if a file can be written there; otherwise raises an error, before any rows are read."""
    try:
        file = Path(path)
    except TypeError:
        raise errors.bad_setting("path", path, "a file's path, or None") from None
    if "\0" in str(file):
        raise errors.unwritable_file(file, "a path without null characters")
    if file.is_dir():
        raise errors.unwritable_file(file, "it is a folder")
    if not file.parent.is_dir():
        raise errors.unwritable_file(file, f"the folder {str(file.parent)!r} does not exist")
    if not os.access(file.parent, os.W_OK):
        raise errors.unwritable_file(file, f"the folder {str(file.parent)!r} is not writable")
    return file
