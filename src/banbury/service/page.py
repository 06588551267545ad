"""The page: its files, and what it asks that others seldom do."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from banbury import errors
from banbury.files import save
from banbury.files.checking import JsonObject
from banbury.service.fields import fields, nomogram
from banbury.service.rows import key
from banbury.service.state import ServedState
from banbury.service.teaching import next_rows

# Nothing of another host, nothing in line: what a row holds can never be run.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "content-security-policy": POLICY,
}
CONTENT_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FORMATS = ("csv", "ndjson", "model")


def _files() -> dict[str, Path]:
    """Returns the files of the page, by the paths of their URLs."""
    folder = Path(str(files("banbury.service"))) / "browser"
    page_files = {f"/{file.name}": file for file in sorted(folder.iterdir()) if file.suffix in CONTENT_TYPES}
    return {"/": folder / "index.html", **page_files}


FILES = _files()


async def get_file(service: Any, request: Request) -> Response:
    """Endpoint: returns a file of the page."""
    file = FILES[request.url.path]
    return Response(file.read_bytes(), headers=HEADERS, media_type=CONTENT_TYPES[file.suffix])


async def post_nomogram(service: Any, request: Request) -> Any:
    """Endpoint: returns the evidence of every value; without a row, of one in which all values are missing."""
    content, _ = await service.json(request, allowed_names=("row", "against", "label"))  # the JSON object
    row = service.check_row(content.get("row") or {service.state.learner.schema.columns[0]: None})
    return await asyncio.to_thread(nomogram, service.state.learner, row, content.get("against"), content.get("label"))


def get_cell(service: Any, request: Request) -> Any:
    """Endpoint: returns the rows of one class that were predicted as another, both given by number."""
    return service.inspection.cell(
        *(service.number(request, name, default=0, largest=10**6) for name in ("truth", "predicted"))
    )


def get_next(service: Any, request: Request) -> Any:
    """Endpoint: returns unlabelled rows to label next."""
    n = service.number(request, "n", default=10, largest=service.limits.listed)
    order = request.query_params.get("order", "informative")  # or "id"
    return next_rows(service.state, n, order)


def get_suspicious(service: Any, request: Request) -> Any:
    """Endpoint: returns rows whose labels look wrong; with recent=true a ranking of some changes ago will do."""
    n = max(1, service.number(request, "n", default=10, largest=service.limits.listed))
    return service.inspection.suspicious(n, request.query_params.get("recent") == "true")


def get_export(service: Any, request: Request) -> Response:
    """Endpoint: returns all labelled rows, or the model, as a file."""
    file_format = request.query_params.get("format", "csv")
    if file_format not in FORMATS:
        raise errors.unknown_choice("format", file_format, FORMATS)
    content, media_type = export_rows(service.state, file_format)  # content: bytes
    ending = "banbury" if file_format == "model" else file_format
    name_header = {"content-disposition": f'attachment; filename="labels.{ending}"'}
    return Response(content, headers={**HEADERS, **name_header}, media_type=media_type)


def export_rows(state: ServedState, file_format: str) -> tuple[bytes, str]:
    """Returns the content of a file and its media type: all rows with a label, as a table; or the model as it stands,
    as ``bb.load`` reads it. ``file_format``: "csv", "ndjson" or "model".
    """
    if file_format == "model":
        with tempfile.TemporaryDirectory(prefix="banbury-") as folder:
            path = Path(folder) / "model.banbury"
            save(state.learner.settings.model(state.learner.tally()), path)
            return path.read_bytes(), "application/octet-stream"
    rows = list(_rows_with_labels(state))  # dictionaries of cells by column
    if file_format == "ndjson":
        return "".join(f"{key(row)}\n" for row in rows).encode(), "application/x-ndjson"
    # Of the columns of the file.
    names = list(dict.fromkeys(["id", state.learner.schema.target or "label", *state.learner.schema.columns]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue().encode(), "text/csv"


def _rows_with_labels(state: ServedState) -> Iterator[JsonObject]:
    """Yields each row with a label as a dictionary: its id, its label and its cells by column."""
    schema = state.learner.schema
    text_column = state.learner.rows.text  # the name of a single text column; None if there are other columns
    for logged in state.log.rows(labelled=True):
        row = json.loads(logged.row)  # a text, a list in the order of the columns, or a dictionary
        cells = {text_column: row} if isinstance(row, str) and text_column else row
        cells = dict(zip(schema.columns, cells, strict=True)) if isinstance(cells, list) else cells
        yield {"id": logged.id, schema.target or "label": json.loads(logged.label or "null"), **cells}


def _cell(value: Any) -> Any:
    """Returns a value as the cell of a CSV file: empty for None, lists and booleans as JSON texts."""
    return "" if value is None else key(value) if isinstance(value, (list, bool)) else value


# Method and path, the function that answers, and a summary.
ENDPOINTS: tuple[tuple[str, Callable[[Any, Request], Any], str], ...] = (
    ("GET /next", get_next, "Rows to label next: those whose labels would help most, and some at random."),
    ("GET /suspicious", get_suspicious, "Rows whose label looks wrong, with the label that the other rows suggest."),
    (
        "GET /fields",
        lambda s, _: fields(s.state),
        "The columns of a row with the values of each, and the classes.",
    ),
    ("POST /nomogram", post_nomogram, "The evidence of each value of each column, in decibans."),
    (
        "GET /accuracy",
        lambda s, _: s.inspection.accuracy(),
        "How many rows have a label, and how good the model is so far.",
    ),
    ("GET /inspect", lambda s, _: s.inspection.overview(), "Figures, informative values, a learning curve and drift."),
    ("GET /inspect/rows", get_cell, "The rows of one class that were mistaken for another."),
    ("GET /export", get_export, "All labelled rows, as csv or ndjson; or the model."),
)
# The fields of an Endpoint: method, path, scope, the function that answers, and a summary.
ASSETS = tuple(("GET", path, None, get_file, "The web page.") for path in FILES)
