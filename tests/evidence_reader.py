"""The reader of evidence tables, as the documentation has it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "evidence-table.md"


def reader() -> dict[str, Any]:
    """The functions of the block of code that has them."""
    (source,) = re.findall(r"```python\n(import banbury as bb\n.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(source, str(PAGE), "exec"), names)
    return names


posterior = reader()["posterior"]
