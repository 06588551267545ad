"""One page: the evidence table, and the scripts that add it up and show it, in a file that asks nobody anything."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from banbury.files.export.sql import PATTERNS, check_tokens
from banbury.model.evidence_table import EvidenceTable

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
    """Returns the page of a model."""
    tables = model.evidence_table(min_rows=min_rows)
    modules = [_as_block((BROWSER / name).read_text("utf-8")) for name in ("service.js", "evidence.js", "ask.js")]
    script = "\n".join([*modules, (HERE / "score.js").read_text("utf-8"), "begin().catch(say);\n"])
    bare = not any(isinstance(name, str) for name in model.names)  # which are named with their target
    target = model.schema.target if bare and tables.answers == "classes" else None
    style = (BROWSER / "page.css").read_text("utf-8")
    hashes = {"script_hash": _hash(script), "style_hash": _hash(style)}
    return PAGE.format(script=script, style=style, **hashes, data=_pack(tables, target)).encode("utf-8")


def _as_block(script: str) -> str:
    """A module that stands beside those whose names it imports, as a block that gives its own."""
    names = re.findall(r"^export (?:async )?(?:function|const) (\w+)", script, flags=re.M)
    inside = re.sub(r"^export ", "", re.sub(r"^import .*?;\n", "", script, flags=re.M | re.S), flags=re.M)
    return f"const {{ {', '.join(names)} }} = (() => {{\n{inside}\nreturn {{ {', '.join(names)} }};\n}})();"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


def columns_of(tables: EvidenceTable) -> list[dict[str, Any]]:
    """The columns, of which those of texts have the regular expression of their words."""
    columns = tables.by_column()
    for column in columns:
        check_tokens(column)
        column["pattern"] = PATTERNS.get(column["tokens"], "").replace("W", r"[\p{L}\p{N}_]")
    return columns


def _pack(tables: EvidenceTable, target: str | None) -> str:
    """The tables as JSON, which has no infinity: 1e999 is read as one."""
    prior = tables.prior.to_pydict()
    model = {
        "labels": tables.answers == "labels",
        "target": target,
        "names": prior["name"],
        "prior": prior["nats"],
        "columns": columns_of(tables),
        "pairs": tables.entries("pairs"),
        "rules": tables.calibration.to_pylist(),
        "stairs": tables.stairs.to_pylist(),
        "calibrated": tables.bends or set(tables.calibration["temperature"].to_pylist()) != {1.0},
    }
    text = json.dumps(model, separators=(",", ":"))
    text = re.sub(r'("(?:[^"\\]|\\.)*")|Infinity', lambda match: match[1] or "1e999", text)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
