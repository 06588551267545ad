"""The pages of docs: every public name has an entry, and every page has a place in the site."""

from __future__ import annotations

import re
from pathlib import Path

import banbury as bb

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def test_every_public_name_has_an_entry_in_the_reference():
    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference" / "api").glob("*.md"))
    assert sorted(re.findall(r"^::: banbury\.(\w+)$", pages, re.M)) == sorted(bb.__all__)


def test_every_page_has_a_place_in_the_site():
    nav = re.findall(r"- ([\w/-]+\.md|\w+: [\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    pages = {entry.rpartition(" ")[2] for entry in nav}
    assert pages == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
