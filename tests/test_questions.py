"""The questions that are asked of families: few, each with one line that says it, and with a default that is safe."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "banbury"
SOURCE = PACKAGE / "families" / "family.py"
PROTOCOLS = {
    "Counter": "count",
    "Family": "estimate",
    "Parameters": "ask",
    "NumericParameters": "ask",
    "KeyedParameters": "ask",
}
MOST = 45  # a question that one family answers, or one room asks, belongs there
MUST = {"parts", "sample", "count", "restore", "counter", "estimate"}  # without them there is no family
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


def uses() -> tuple[Counter[str], Counter[str]]:
    """How many families answer each question themselves, and how many places ask it."""
    answers, askers = Counter[str](), Counter[str]()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not (path == SOURCE and node.name in PROTOCOLS):
                answers.update(method.name for method in node.body if isinstance(method, ast.FunctionDef))
            if isinstance(node, ast.Attribute):
                askers[node.attr] += 1
    return answers, askers


def test_questions_are_few() -> None:
    assert len(questions()) <= MOST, f"{len(questions())} questions: {', '.join(sorted(questions()))}"


def test_no_question_has_one_answer_and_one_asker() -> None:
    answers, askers = uses()
    assert [name for name in questions() if answers[name] < 2 and askers[name] < 2] == []


def test_every_question_says_in_a_line_what_it_asks() -> None:
    first_lines = {name: (ast.get_docstring(method) or "").split("\n")[0] for name, method in questions().items()}
    assert [name for name, line in first_lines.items() if not line.endswith((".", ";"))] == []


def test_what_need_not_be_answered_has_a_default() -> None:
    def refuses(method: ast.FunctionDef) -> bool:
        return isinstance(method.body[-1], ast.Raise)

    assert {name for name, method in questions().items() if refuses(method)} == MUST | OF_SOME
