"""The questions that are asked of families: few, each with one line that says it, and with a default that is safe."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "banbury" / "families" / "family.py"
PROTOCOLS = {
    "Counter": "count",
    "Family": "estimate",
    "Parameters": "ask",
    "NumericParameters": "ask",
    "KeyedParameters": "ask",
}
MOST = 44  # a question that one family answers, or one room asks, belongs there
MUST = {"parts", "sample", "count", "restored", "counter", "estimate"}  # without them there is no family
OF_SOME = {"spread", "tails", "values"}  # the same of families of numbers, or of named values


def questions() -> dict[str, ast.FunctionDef]:
    """What the protocols declare, by name; a protocol may say more of what another asks."""
    declared: dict[str, ast.FunctionDef] = {}
    for node in ast.parse(SOURCE.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name in PROTOCOLS:
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    declared.setdefault(method.name, method)
    return declared


def test_questions_are_few() -> None:
    assert len(questions()) <= MOST, f"{len(questions())} questions: {', '.join(sorted(questions()))}"


def test_every_question_says_in_a_line_what_it_asks() -> None:
    first_lines = {name: (ast.get_docstring(method) or "").split("\n")[0] for name, method in questions().items()}
    assert [name for name, line in first_lines.items() if not line.endswith((".", ";"))] == []


def test_what_need_not_be_answered_has_a_default() -> None:
    def refuses(method: ast.FunctionDef) -> bool:
        return isinstance(method.body[-1], ast.Raise)

    assert {name for name, method in questions().items() if refuses(method)} == MUST | OF_SOME
