"""For the API pages: fences the examples of docstrings, which Markdown would take for quotations."""

from __future__ import annotations

import doctest
import textwrap
from typing import Any

import griffe


def fence_examples(text: str) -> str:
    """The text with every run of examples and their output between fences."""
    pieces: list[str] = []
    code = ""
    for piece in doctest.DocTestParser().parse(text):
        if isinstance(piece, doctest.Example):
            source = piece.source.rstrip("\n").split("\n")
            lines = [f">>> {source[0]}", *(f"... {line}" for line in source[1:]), *piece.want.splitlines()]
            code += "\n".join(line.rstrip() for line in lines) + "\n"
        elif piece.strip() or not code:
            if code:
                pieces.append(f"\n```pycon\n{code}```\n")
                code = ""
            pieces.append(piece)
    if code:
        pieces.append(f"\n```pycon\n{code}```\n")
    return "".join(pieces)


class DoctestBlocks(griffe.Extension):
    """Fences the examples in the docstring of every object."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring and ">>>" in obj.docstring.value:
            obj.docstring.value = fence_examples(textwrap.dedent(obj.docstring.value))
