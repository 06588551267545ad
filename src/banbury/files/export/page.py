"""One page: the evidence table, and the scripts that add it up and show it, in a file that asks nobody anything."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from banbury.files.export.sql import SPACES_PATTERN, word_pattern
from banbury.model.evidence_table import EvidenceTable, Record

HERE = Path(__file__).parent
BROWSER = HERE.parents[1] / "service" / "browser"  # whose scripts show a row, its answer and why
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{script_hash}'; \
style-src 'sha256-{style_hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Ask</title>
<style>{style}</style>
</head>
<body>
<header><div class="name">Banbury <span id="served"></span></div></header>
<p id="problem" role="alert" hidden></p>
<main id="content" tabindex="-1">
<h1>Ask</h1>
<form id="row" aria-label="The row to classify"></form>
<div id="answer" aria-live="polite"></div>
<div id="shaded-texts"></div>
<div id="why"></div>
<details id="nomogram" hidden><div id="lanes"></div></details>
<h2>A table</h2>
<p><label>Drop a CSV file here, or choose one: <input type="file" id="file" accept=".csv,text/csv"></label></p>
<div id="scored"></div>
</main>
<script type="application/octet-stream" id="model">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def write(model: Any, min_rows: int) -> bytes:
    """Returns the page of a model. Values that fewer than ``min_rows`` rows have are left out."""
    tables = model.evidence_table(min_rows=min_rows)
    # The source of the page's scripts.
    modules = "".join((BROWSER / name).read_text("utf-8") for name in ("service.js", "evidence.js", "ask.js"))
    # One script: imports are dropped, because the names of all modules differ and each stands before those that use it.
    modules = re.sub(r"^import .*?;\n|^export ", "", modules, flags=re.MULTILINE | re.DOTALL)
    script = f"{modules}{(HERE / 'score.js').read_text('utf-8')}begin().catch(showProblem);\n"
    has_numbers_only = not any(isinstance(name, str) for name in model._names)  # which are named with their target
    target = model.schema.target if has_numbers_only and tables.answers == "classes" else None
    style = (BROWSER / "page.css").read_text("utf-8")
    return PAGE.format(
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
        data=_pack(tables, target),
    ).encode("utf-8")


def _hash(text: str) -> str:
    """Returns the SHA-256 hash of a script or style in base 64, as a Content-Security-Policy names it."""
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


def columns_of(tables: EvidenceTable) -> list[Record]:
    """Returns the columns of the tables as the page's script takes them: curves as rows, entries as pairs of key and
    entry, and for texts the regular expression of their words.
    """
    columns = tables.by_column()
    curves = tables.curves.to_pylist()  # of all columns
    for column in columns:
        if reading := column["reading"]:  # how texts are split; None for other columns
            is_of_words = reading["unit"] == "words"
            column["pattern"] = word_pattern(reading, r"[\p{L}\p{N}_]") if is_of_words else f"({SPACES_PATTERN})|[^]"
        column["entries"] = [*column["entries"].items()]
        column["curves"] = [row for row in curves if row["column"] == column["column"]]
    return columns


def _pack(tables: EvidenceTable, target: str | None) -> str:
    """Returns the tables as compressed JSON in base 64. JSON has no infinity; the page reads 1e999 as one. ``target``
    is the name that the page shows for numeric classes, or None.
    """
    prior = tables.prior.to_pydict()
    columns = columns_of(tables)
    pairs = {  # by both columns and cells, as numbers in a text
        f"{pair['first']} {pair['first_cell']} {pair['second']} {pair['second_cell']}": {
            "feature": f"{columns[pair['first']]['name']} with {columns[pair['second']]['name']}",
            "nats": pair["nats"],
        }
        for pair in tables.entries("pairs")
    }
    rules = tables.calibration.to_pylist()  # one per class
    model = {
        "labels": tables.answers == "labels",
        "target": target,
        "names": prior["name"],
        "prior": prior["nats"],
        "columns": columns,
        "pairs": pairs,
        "rules": rules,
        "stairs": [*tables.stairs()],
        "calibrated": tables.bends or rules[0]["temperature"] != 1.0,
    }
    text = json.dumps(model, separators=(",", ":"), default=np.ndarray.tolist)
    text = re.sub(r'("(?:[^"\\]|\\.)*")|Infinity', lambda match: match[1] or "1e999", text)
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
