"""Export: a model as SQL, as ONNX or as a page, each of them a view of its evidence table."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from banbury import errors
from banbury.files.export import onnx, page, sql
from banbury.model.naive_bayes import model_of

# By the ending of the file: takes a model, the fewest rows of a value and the settings, and returns the file's content.
WRITERS: dict[str, Callable[..., bytes]] = {".sql": sql.write, ".onnx": onnx.write, ".html": page.write}


def export(
    model: Any, path: str | os.PathLike[str], *, dialect: str | None = None, min_rows: int = 0, **settings: Any
) -> None:
    """Exports a model: ``.sql`` for a database, ``.onnx`` for onnxruntime, ``.html`` for a browser.

    ``model`` is a model, a fitted estimator, or a Pipeline, of which the last step is exported. ``min_rows`` leaves out
    values and words that fewer rows have. For SQL, ``dialect`` is "duckdb", "postgres", "sqlite" or "spark", ``table``
    is the table of rows to score, ``key`` its column that identifies rows, ``name`` the prefix of the tables and views
    that are created, and ``reasons`` adds a view with the three strongest pieces of evidence for each row. See
    ``docs/how-to/export.md``.

    >>> import banbury as bb, tempfile, pathlib
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> script = pathlib.Path(tempfile.mkdtemp()) / "score.sql"
    >>> bb.export(model, script, dialect="duckdb", table="days")
    >>> script.read_text().splitlines()[0]
    '-- A model of banbury, for duckdb: evidence in nats, and views of the answers to the rows of "days".'
    """
    new_file = Path(path)
    writer = WRITERS.get(new_file.suffix.lower())
    if writer is None:
        raise errors.unknown_choice("the ending of the path", new_file.suffix, list(WRITERS))
    if new_file.exists():
        raise errors.bad_setting("path", str(new_file), "a new file, because export does not overwrite files")
    if dialect is not None:
        settings["dialect"] = dialect
    if settings and new_file.suffix.lower() != ".sql":
        raise errors.bad_setting(*next(iter(settings.items())), "omitted unless SQL is written")
    content = writer(written_model(model), min_rows, **settings)
    try:
        new_file.write_bytes(content)
    except OSError as problem:
        raise errors.unwritable_file(new_file, problem.strerror or str(problem)) from None


def written_model(model: Any) -> Any:
    """Returns the model of an estimator, or of the last step of a Pipeline; a model is returned unchanged. Raises
    BadSetting if it cannot be exported.
    """
    model = model.steps[-1][1] if hasattr(model, "steps") else model
    if getattr(model, "at_least_one", False):
        raise errors.bad_setting(
            "at_least_one", True, "False for an export, which compares each label with its threshold"
        )
    if getattr(model, "_label_form", None) == "one":
        raise errors.bad_setting(
            "y", "one label per row", "sets of labels or flags; to learn one class per row, use bb.NaiveBayesClassifier"
        )
    model = model_of(model)
    if not hasattr(model, "evidence_table"):
        raise errors.bad_setting(
            "the exported object",
            type(model).__name__,
            "a Model, a LabelModel or a fitted classifier; make a model from a tally with bb.estimate(tally)",
        )
    return model
