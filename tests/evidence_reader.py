"""The readers of evidence tables, as the documentation and the examples have them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "evidence-table.md"
_specification = importlib.util.spec_from_file_location("read_evidence", ROOT / "examples" / "read_evidence.py")
assert _specification is not None
assert _specification.loader is not None
_module = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(_module)
posterior = _module.posterior


def short_reader() -> Any:
    """The function of the documentation, of one row of a table without texts and curves."""
    (source,) = re.findall(
        r"```python\n(import numpy as np\n\n\ndef posterior.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(compile(source, str(PAGE), "exec"), names)
    return names["posterior"]


def posterior_by_page(table: Any, rows: dict[str, Any]) -> np.ndarray:
    """The posteriors of rows by the short reader."""
    read = short_reader()
    return np.array([read(table, dict(zip(rows, row, strict=True))) for row in zip(*rows.values(), strict=True)])
