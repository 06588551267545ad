"""One page: the evidence table, and the scripts that add it up and show it, in a file that asks nobody anything."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any

from banbury import errors
from banbury.model.evidence_table import EvidenceTable

HERE = Path(__file__).parent
BROWSER = HERE.parents[1] / "service" / "browser"  # whose scripts show a row, its answer and why
PATTERNS = ("word", "word1", "mail")
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
<div id="text-shown"></div>
<div id="why"></div>
<details id="sheet" hidden><div id="lanes"></div></details>
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
    """The page of a model."""
    tables = model.evidence_table(min_rows=min_rows)
    names = tables.prior["name"].to_pylist()
    for column in tables.columns.to_pylist():
        if column["kind"] == "text" and column["unit"] == "words" and column["tokens"] not in PATTERNS:
            expected = f"one of {', '.join(PATTERNS)}: Python regular expressions can mean something else in a browser"
            raise errors.bad_setting("tokens", column["tokens"], expected)
    modules = [_as_block((BROWSER / name).read_text("utf-8")) for name in ("service.js", "evidence.js", "ask.js")]
    script = "\n".join([*modules, (HERE / "score.js").read_text("utf-8"), "begin().catch(say);\n"])
    style = (BROWSER / "page.css").read_text("utf-8")
    page = PAGE.format(
        script=script, style=style, script_hash=_hash(script), style_hash=_hash(style), data=_pack(tables, names)
    )
    return page.encode("utf-8")


def _as_block(script: str) -> str:
    """A module that stands beside those whose names it imports, as a block that gives its own."""
    names = re.findall(r"^export (?:async )?(?:function|const) (\w+)", script, flags=re.M)
    inside = re.sub(r"^export ", "", re.sub(r"^import .*?;\n", "", script, flags=re.M | re.S), flags=re.M)
    return f"const {{ {', '.join(names)} }} = (() => {{\n{inside}\nreturn {{ {', '.join(names)} }};\n}})();"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


def _pack(tables: EvidenceTable, names: list[str]) -> str:
    """The tables as the page reads them: JSON, then the nats of words as doubles."""
    columns = [{**column, "entries": [], "curves": []} for column in tables.columns.to_pylist()]
    for row, nats in tables.entries_of("values"):
        column = columns[row["column"]]
        entry = {"value": row["value"], "cell": row["cell"], "nats": nats}
        if row["unseen"]:
            column["unseen"] = len(column["entries"])
        else:
            entry["key"] = row["value"] if column["kind"] == "string" else row["number"]
        column["entries"].append(entry)
    for row, nats in tables.entries_of("steps"):
        column = columns[row["column"]]
        entry = {"cell": row["cell"], "nats": nats}
        if row["from"] is None:
            entry["key"] = None
        else:
            step = {"from": row["from"], "to": row["to"], "entry": len(column["entries"])}
            column.setdefault("steps", []).append(step)
        column["entries"].append(entry)
    for curve in tables.curves.to_pylist():
        columns[curve["column"]]["curves"].append(curve)
    numbers = [_words(tables, column) for column in columns if column["kind"] in ("text", "counts")]
    prior = tables.prior["nats"].to_pylist()
    about = {"answers": tables.answers, "names": names, "prior": prior, "columns": columns, "pairs": _pairs(tables)}
    text = _json({**about, "calibration": _calibration(tables)}).encode()
    content = struct.pack("<I", len(text)) + text + b"".join(numbers)
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def _json(value: Any) -> str:
    """As JSON, which has no infinity: 1e999 is read as one."""
    text = json.dumps(value, separators=(",", ":"))
    return re.sub(r'("(?:[^"\\]|\\.)*")|(-?)Infinity', lambda match: match[1] or f"{match[2]}1e999", text)


def _words(tables: EvidenceTable, column: dict[str, Any]) -> bytes:
    """Lists the words of a column, and returns what they say."""
    words, nats, scales, common = tables.words_of(column["column"])
    column |= {"words": words, "common": common.tolist(), "scale": scales.tolist() if (scales != 1.0).any() else None}
    return nats.astype("<f8").tobytes()


def _pairs(tables: EvidenceTable) -> list[dict[str, Any]]:
    pairs: dict[tuple[int, int], dict[str, list[float]]] = {}
    for row, nats in tables.entries_of("pairs"):
        pairs.setdefault((row["first"], row["second"]), {})[f"{row['first_cell']},{row['second_cell']}"] = nats
    return [{"first": first, "second": second, "cells": cells} for (first, second), cells in pairs.items()]


def _calibration(tables: EvidenceTable) -> dict[str, Any]:
    rows = tables.calibration.to_pylist()
    method = rows[0]["method"] if rows else None
    rules: dict[Any, Any] = {}
    for row in rows:
        class_rule = rules.setdefault(row["class"], {})
        if row["method"] in ("line", "platt"):
            class_rule |= {"slope": row["x"], "shift": row["y"]}
        elif row["method"] == "threshold":
            class_rule["threshold"] = row["x"]
        elif row["method"] == "isotonic":
            class_rule.setdefault("x", []).append(row["x"])
            class_rule.setdefault("y", []).append(row["y"])
    if method == "temperature":
        rules = {"temperature": rows[0]["x"], "floor": rows[0]["y"]}
    return {"method": method, "rules": rules}
