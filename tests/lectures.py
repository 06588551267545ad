"""docs/explanation/lectures.md, the lectures replayed: a line for each figure, made by the test that has it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "lectures.md"
COMMAND = "python -m pytest tests/test_l*.py tests/test_plots.py tests/test_density.py --write-lectures"


def line(row: int, what: str, said: str, found: str, call: str) -> str:
    """A row of the table: its number, what the lecture describes, its figure, ours, and what gives it."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in (str(row), what, said, found, f'`{call}`'))} |"


def key(made: str) -> tuple[int, str]:
    """The number and the description, which no two lines share."""
    row, what = made.replace("\\|", "\0").split("|")[1:3]
    return int(row), what.strip().replace("\0", "|")


def lines() -> list[str]:
    """Those of the page as it stands."""
    return [
        text for text in PAGE.read_text(encoding="utf-8").splitlines() if text.startswith("| ") and text[2].isdigit()
    ]


def write(made: str) -> None:
    """Puts a line in its place, over one of the same key; lines of tests that did not run stay as they are."""
    order = declared()
    kept = {key(text): text for text in lines() if key(text) in order} | {key(made): made}
    table = sorted(kept.values(), key=lambda text: order.index(key(text)))
    head = PAGE.read_text(encoding="utf-8").split("\n| ", 1)[0]
    headings = ["| # | the lectures | their figure | Banbury's | by |", "|---|---|---|---|---|"]
    PAGE.write_text("\n".join([head, *headings, *table, ""]), encoding="utf-8")


def declared() -> list[tuple[int, str]]:
    """The keys of all calls of ``figure`` in the tests, in the order of the rows and of the tests."""
    found = []
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "figure":
                row, what = (argument.value for argument in node.args[:2] if isinstance(argument, ast.Constant))
                found.append((row, path.name, node.lineno, what))
    return [(row, what) for row, _, _, what in sorted(found)]
