"""The pages of docs: every public name has an entry, and every page has a place in the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import banbury as bb

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
OTHERS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")]


def text_of(page: Path) -> str:
    """The page without its code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


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
    prose = text_of(page).splitlines()
    assert [line for line in prose if len(line) > 120 and not line.startswith(("|", "!["))] == []


def anchors(page: Path) -> set[str]:
    """Those of its headings, as the site and GitHub make them."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.M)
    return {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_is_dead(page):
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text_of(page))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not link.startswith("https:") and (not target.exists() or (anchor and anchor not in anchors(target))):
            dead.append(link)
    assert dead == []


def test_what_contributing_names_exists():
    """Classes, functions, methods, settings and modules: whoever renames one changes the page."""
    files = [path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py*") if path.suffix != ".pyc"]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    defined = set(re.findall(r"\b(?:def|class) (\w+)|^ *(\w+)(?:: [^=\n]+)? =|^ +(\w+): ", code, re.M))
    names = {name for group in defined for name in group} | {
        part for path in files for part in path.with_suffix("").parts
    }
    named = re.findall(
        r"`(?:_core\.(?!pyi))?([A-Za-z_]\w+)(?:\([^`]*\))?`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    )
    assert [name for name in sorted(set(named) - names) if f'"{name}"' not in code] == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700
