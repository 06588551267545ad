"""The reader of evidence tables that the documentation has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "evidence-table.md"
(SOURCE,) = re.findall(r"```python\n(.*?def posterior.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
_names: dict[str, Any] = {}
exec(compile(SOURCE, str(PAGE), "exec"), _names)


def posterior(table: Any, rows: dict[str, Any]) -> np.ndarray:
    """The posteriors of rows, which are a mapping of columns: (rows, classes)."""
    lines = zip(*rows.values(), strict=True)
    answers = [_names["posterior"](table, dict(zip(rows, line, strict=True))) for line in lines]
    return np.array(answers).reshape(-1, table.prior.num_rows)
