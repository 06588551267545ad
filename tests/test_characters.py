"""The tables of characters: what the interpreter says of each one by itself."""

from __future__ import annotations

import sys

from banbury import characters

EVERY = [chr(code) for code in range(sys.maxunicode + 1)]


def test_every_character_is_what_it_is_by_itself() -> None:
    table = characters.table()
    assert (table & characters.WORD != 0).tolist() == [c.isalnum() or c == "_" for c in EVERY]
    assert (table & characters.SPACE != 0).tolist() == [c.isspace() for c in EVERY]
    assert (table & 0x1FFFFF).tolist() == [ord(c.lower()[0]) for c in EVERY]
    assert [c for c in EVERY if len(c.lower()) > 1] == ["\u0130"]


def test_every_character_before_a_capital_sigma() -> None:
    found = characters.sigma_context()
    assert (found == 1).tolist() == [(c + "Σ").lower().endswith("ς") for c in EVERY]
    assert (found > 0).tolist() == [("A" + c + "Σ").lower().endswith("ς") for c in EVERY]
