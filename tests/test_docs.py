"""The pages of docs: every public name has an entry, and every page has a place in the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import banbury as bb

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def test_every_public_name_has_an_entry_in_the_reference():
    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference" / "api").glob("*.md"))
    assert sorted(re.findall(r"^::: banbury\.(\w+)$", pages, re.M)) == sorted(bb.__all__)


def test_every_page_has_a_place_in_the_site():
    nav = re.findall(r"- ([\w/-]+\.md|\w+: [\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    pages = {entry.rpartition(" ")[2] for entry in nav}
    assert pages == {str(path.relative_to(DOCS)) for path in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_sentence_fits_on_a_screen(page):
    """Tables, pictures and code may be wider, and the table of the lectures is written by tests."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S).splitlines()
    assert [line for line in prose if len(line) > 120 and not line.startswith(("|", "!["))] == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700
