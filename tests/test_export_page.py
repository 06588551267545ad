"""The page in Chromium, from a file: its posteriors are the model's, its words the core's, and what it shows is text."""

from __future__ import annotations

import json
import random
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banbury as bb
import saved_models
from banbury.files.export import page
from test_evidence_table import KINDS, rows_like

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to open the page with")
HOSTILE = "<script>document.title='gone'</script><img src=x onerror=alert(1)> \u202egnorw & \"quoted\"</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def opened(browser: Any, model: Any, folder: Path) -> Iterator[Any]:
    """The page of a model; what goes wrong in it, and what it asks of any host, fails the test."""
    path = folder / "ask.html"
    path.unlink(missing_ok=True)
    bb.export(model, path)
    tab = browser.new_page()
    wrong: list[str] = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    tab.on("request", lambda request: wrong.append(request.url) if request.url.startswith("http") else None)
    # What is tested stands in the one script of the page; a test reaches it by a name of the window.
    content = path.read_text("utf-8")
    assert "default-src 'none'" in content
    tab.goto(path.as_uri())
    tab.wait_for_selector("body[data-ready]")
    yield tab
    tab.close()
    assert not wrong, wrong


def ask_table(tab: Any, columns: list[str], rows: list[list[Any]], n_answers: int) -> np.ndarray:
    """The posteriors of the answers to a table, as the file that the page saves has them."""
    quoted = [
        ["" if cell is None else '"' + str(cell).replace('"', '""') + '"' for cell in row] for row in [columns, *rows]
    ]
    content = "\n".join(",".join(row) for row in quoted)
    tab.set_input_files("#file", {"name": "rows.csv", "mimeType": "text/csv", "buffer": content.encode("utf-8")})
    with tab.expect_download() as download:
        tab.click("#scored a")
    lines = Path(download.value.path()).read_bytes().decode("utf-8").split("\r\n")
    return np.array([[float(x) for x in line.split(",")[-n_answers:]] for line in lines[1:]])


@pytest.mark.slow
def test_posteriors_are_those_of_the_model(browser: Any, tmp_path: Path) -> None:
    table, classes = saved_models.draw_table(150, 3), saved_models.draw_classes(150, 3, 3)
    for kind in KINDS:
        model = saved_models.make(kind, table, classes)
        rows = rows_like(model, table)[0]
        n = len(next(iter(rows.values())))
        wanted = model.posterior(rows)
        with opened(browser, model, tmp_path) as tab:
            cells = [[values[k] for values in rows.values()] for k in range(n)]
            found = ask_table(tab, list(rows), cells, len(model._names))
        assert np.abs(found - wanted).max() <= 1e-9, kind


def mixed() -> bb.Model:
    rows = {
        "text": ["cheap pills now", "lunch at noon", "cheap watches", "noon report"] * 10,
        "age": [float(k % 7) for k in range(40)],
    }
    tally = bb.count(rows, [HOSTILE, "ham", HOSTILE, "ham"] * 10, features={"text": bb.Text(), "age": "gaussian"})
    return bb.estimate(tally)


def test_a_row_is_answered_and_explained_as_text(browser: Any, tmp_path: Path) -> None:
    model = mixed()
    text = f"cheap {HOSTILE} noon"
    with opened(browser, model, tmp_path) as tab:
        tab.fill("#field-0", text)
        tab.fill("#field-1", "3")
        row = {"text": [text], "age": [3.0]}
        explanation = model.explain({"text": text, "age": 3.0})
        share = float(model.posterior(row).max())
        tab.locator("#answer", has_text=f"{100 * share:.1f} %").wait_for()  # the answer to both fields
        assert "alert(1)" in tab.inner_text("#answer")
        assert text.replace("\u202e", "") in tab.inner_text("#shaded-texts").replace("\u202e", "").replace("\ufffd", "")
        assert tab.locator(".shaded .word").count() == 2
        assert f"{abs(explanation.evidence[0].decibans):.2f}" in tab.inner_text("#why")
        assert tab.title() == "Ask"
        assert tab.locator("img").count() == 0


def test_classes_that_are_numbers_are_named_with_their_target(browser: Any, tmp_path: Path) -> None:
    rows = {"text": ["cheap pills", "lunch at noon"] * 5, "spam": [1, 0] * 5}
    model = bb.estimate(bb.count(rows, target="spam", features={"text": bb.Text()}))
    with opened(browser, model, tmp_path) as tab:
        tab.fill("#field-0", "cheap")
        tab.locator("#answer .lead", has_text="spam = 1").wait_for()
        assert tab.inner_text("#answer .bars").split("\n")[::2] == ["spam = 1", "spam = 0"]
        assert tab.inner_text("#why h2") == "Why spam = 1"


def odd_texts(n: int) -> list[str]:
    rng = random.Random(3)
    assigned = [chr(k) for k in range(0x20, 0x30000) if unicodedata.category(chr(k)) not in ("Cn", "Cs", "Co")]
    near = "aAzZ09__ ..--'@+& \t\n\u00a0\u2028İIıßΣσςſÅK\u0301\u200d"
    return [
        "".join(rng.choice(near if rng.random() < 0.6 else assigned) for _ in range(rng.randint(0, 30)))
        for _ in range(n)
    ]


SETTINGS: list[dict[str, Any]] = [
    {},
    {"tokens": "word1", "ngrams": (1, 2)},
    {"tokens": "mail", "stop_words": ["a", "aa"]},
    {"unit": "characters", "ngrams": (2, 3)},
    {"lowercase": False},
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_words_are_found_as_the_core_finds_them(browser: Any, tmp_path: Path, settings: dict[str, Any]) -> None:
    texts = odd_texts(2_000)  # of each of the five settings
    model = bb.estimate(bb.count({"t": ["aa bb", "cc"]}, ["x", "y"], features={"t": bb.Text(**settings)}))
    bb.export(model, tmp_path / "ask.html")
    script = (tmp_path / "ask.html").read_text("utf-8").partition('<script type="module">')[2].partition("</script>")[0]
    tab = browser.new_page()
    # The function alone, with the settings of the column, in a page of its own.
    column = {name: page.columns_of(model.evidence_table())[0][name] for name in ("pattern", "reading")}
    start, end = script.index("const AMOUNTS"), script.index("// The keys of a column's entries")
    finds = "texts.map((t) => tokens(t, column).map((e) => e.word))"
    source = f"(texts) => {{ {script[start:end]} const column = {json.dumps(column)}; return {finds}; }}"
    found = tab.evaluate(source, texts)
    tab.close()
    own = bb.tokens(texts, **settings)
    wrong = [each for each in zip(texts, found, own, strict=True) if each[1] != each[2]]
    assert not wrong, (len(wrong), wrong[0])


@pytest.mark.slow
def test_a_hundred_thousand_words_fit(browser: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    words = np.array([f"{k:x}word{k % 97}" for k in range(100_000)])
    texts = [" ".join(words[k : k + 50]) for k in range(0, 100_000, 50)]
    texts += [" ".join(rng.choice(words, 50)) for _ in range(3_000)]
    labels = [f"class {k % 2}" for k in range(len(texts))]
    model = bb.EvidenceClassifier(weigh=True).fit({"text": texts}, labels).model_
    assert len(set(model.evidence_table().words["word"].to_pylist())) > 100_000
    with opened(browser, model, tmp_path) as tab:
        assert (tmp_path / "ask.html").stat().st_size <= 5_000_000
        found = ask_table(tab, ["text"], [[text] for text in texts[:20]], 2)
    assert np.abs(found - model.posterior({"text": texts[:20]})).max() <= 1e-9


def test_blank_cells_are_missing_and_words_are_no_numbers(browser: Any, tmp_path: Path) -> None:
    rows = {"age": [float(k % 7) for k in range(40)], "size": [float(k % 5) for k in range(40)]}
    model = bb.estimate(bb.count(rows, ["x", "y"] * 20, features={"age": "gaussian", "size": "histogram"}))
    with opened(browser, model, tmp_path) as tab:
        answers = ask_table(tab, ["age", "size"], [[" ", ""], ["3", " 2 "]], 2)
        expected = model.posterior({"age": [None, 3.0], "size": [None, 2.0]})
        assert np.abs(answers - expected).max() <= 1e-9
        for word in ("many", "Infinity"):
            content = f"age,size\n{word},1\n".encode()
            tab.set_input_files("#file", {"name": "rows.csv", "mimeType": "text/csv", "buffer": content})
            tab.locator("#problem", has_text=f"{word} is not a number").wait_for()
