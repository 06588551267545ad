"""The page in a real browser: asked, labelled by keyboard, undone, restarted, corrected, exported; and what it shows is text."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import banbury as bb
from banbury.cli import main
from banbury.cli.label import _open_state
from banbury.cli.parsers import parse
from banbury.service import page as files
from banbury.service.access import Tokens
from banbury.service.app import Service
from banbury.service.state import Delete, Put, ServedState
from serving import at_a_socket, labels_model, plain_table, table, weighed_table

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to open the page with")
HOSTILE = "<script>document.title='gone'</script><img src=x onerror=alert(1)> \u202egnorw \u05e9\u05dc\u05d5\u05dd & \"quoted\""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def opened(browser: Any, state: ServedState, view: str, tokens: Tokens | None = None, **settings: Any) -> Iterator[Any]:
    """The page on a state; what goes wrong in it fails the test, but for requests that are refused."""
    with at_a_socket(Service(state, tokens)) as client:
        tab = browser.new_page(**settings)
        wrong: list[str] = []
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        tab.refused = wrong.clear  # what was told so far was to be expected
        tab.goto(f"{client.base_url}/#{view}")
        yield tab
        tab.close()
        assert not wrong, wrong


def pool(tmp_path: Path, n: int = 40) -> Path:
    """Rows without labels, of which the even ones are spam."""
    rng = random.Random(5)
    spam, ham = "cheap pills win money offer now".split(), "lunch team report monday noon budget".split()
    lines = [" ".join(rng.choice(ham if k % 2 else spam) for _ in range(9)) for k in range(n)]
    path = tmp_path / "pool.csv"
    path.write_text("text\n" + "\n".join(f'"{line}"' for line in lines) + "\n")
    return path


def begun(tmp_path: Path) -> ServedState:
    words = ["label", str(pool(tmp_path)), "--classes", "spam,ham", "--state", str(tmp_path / "state")]
    args = parse(words)
    assert args is not None
    return _open_state(args)


def test_a_start_that_was_broken_off_is_taken_up_again(tmp_path: Path) -> None:
    with begun(tmp_path) as state:
        digest = state.digest()
        assert state.log.n_rows() == (0, 40)
        state.log._write_connection.execute("DELETE FROM about WHERE name = 'names'")
        state.change(Delete("0000007"))
    with begun(tmp_path) as again:
        assert (again.log.n_rows(), again.names, again.digest()[0]) == ((0, 40), ["spam", "ham"], digest[0])
    with pytest.raises(bb.BanburyError, match="the state already has its rows"):
        begun(tmp_path)


def shown_label(tab: Any) -> str:
    return "1" if re.search("cheap|pills|win|money|offer|now", tab.inner_text("#task")) else "2"


def label(tab: Any, n: int, wrong: int | None = None) -> None:
    for k in range(n):
        task = tab.inner_text("#task")
        key = shown_label(tab)
        tab.keyboard.press(key if k != wrong else {"1": "2", "2": "1"}[key])
        until(tab, lambda task=task: tab.inner_text("#task") != task)  # type: ignore[misc]


def until(tab: Any, holds: Callable[[], bool]) -> None:
    """Waits for it, at most some seconds: the page forbids strings to be run, so that the browser cannot watch for it."""
    for _ in range(400):
        if holds():
            return
        tab.wait_for_timeout(25)
    raise AssertionError(tab.inner_text("main")[:2_000])


def counted(tab: Any, state: ServedState, n: int) -> None:
    """Waits until so many rows have a label."""
    until(tab, lambda: state.log.n_rows()[0] == n)


def has(tab: Any, place: str, text: str) -> None:
    until(tab, lambda: tab.locator(place).count() > 0 and text in tab.locator(place).first.inner_text())


@pytest.mark.slow
def test_labelled_by_keyboard_undone_restarted_corrected_and_exported(browser: Any, tmp_path: Path) -> None:
    state = begun(tmp_path)
    with opened(browser, state, "label") as tab:
        tab.wait_for_selector("#task .shaded")
        label(tab, 10)
        counted(tab, state, 10)
        for left in range(9, 4, -1):  # five are taken back
            tab.keyboard.press("u")
            counted(tab, state, left)
        digest = state.digest()[0]
    with ServedState.of(None, tmp_path / "state") as again:  # the server ended with the tab
        assert again.digest()[0] == digest
        with opened(browser, again, "label") as tab:
            tab.wait_for_selector("#task .shaded")
            label(tab, 12, wrong=3)
            counted(tab, again, 17)
            has(tab, "#progress", "17 labelled, 23 to go.")
            has(tab, "#progress", "of the labelled rows are predicted correctly")
            until(tab, lambda: tab.locator("#suspicious tbody tr").count() > 0)
            moved = again.log.last
            tab.keyboard.press("c")
            has(tab, "#history", "moved")
            assert again.log.last > moved
            with tab.expect_download() as got:
                tab.get_by_role("button", name="The model").click()
            model = bb.load(got.value.path())
            assert model.tally.digest() == again.digest()[0]
            with tab.expect_download() as got:
                tab.get_by_role("button", name="Labels as CSV").click()
            table = tmp_path / "labels.csv"
            table.write_bytes(Path(got.value.path()).read_bytes())
    counts = bb.count(table, target="label", features={"text": bb.Text(), "id": None})
    assert counts.n_rows == 17


@pytest.mark.slow
def test_unsure_rows_come_back_and_notes_are_kept(browser: Any, tmp_path: Path) -> None:
    with opened(browser, state := begun(tmp_path), "label") as tab:
        tab.wait_for_selector("#task .shaded")
        first = tab.inner_text("#task")
        tab.keyboard.press(" ")
        until(tab, lambda: tab.inner_text("#task") != first)
        tab.get_by_role("button", name="0000001").click()
        until(tab, lambda: tab.inner_text("#task") == first)
        tab.keyboard.press("n")
        tab.keyboard.type("a note; 1 and 2 are letters here")
        tab.keyboard.press("Enter")
        tab.keyboard.press("1")
        counted(tab, state, 1)
        assert state.history()[0]["note"] == "a note; 1 and 2 are letters here"
        assert state.row("0000001")["label"] == "spam"


def test_an_answer_is_that_of_the_library_and_words_can_be_struck_out(browser: Any, tmp_path: Path) -> None:
    model = bb.estimate(
        bb.count(["cheap pills now", "win cheap money", "lunch at noon"], target=["spam", "spam", "ham"])
    )
    text = "cheap lunch money"
    with opened(browser, ServedState.of(model), "ask") as tab:
        tab.get_by_label("text").fill(text)
        tab.wait_for_selector("#why table")
        spam = model.posterior([text])[0][1]
        assert tab.inner_text("#answer .lead") == f"spam {100 * spam:.1f} %"
        why = model.explain(text)
        assert f"{why.decibans:+.2f}" in tab.inner_text("#why tr.sum")
        tab.get_by_role("button", name="Leave out money").click()
        without = model.posterior(["cheap lunch      "])[0][1]
        has(tab, "#answer .lead", f"{100 * without:.1f} %")
        assert "Before: spam" in tab.inner_text("#answer")
        tab.get_by_role("button", name="Put money back").click()
        has(tab, "#answer .lead", f"{100 * spam:.1f} %")


@pytest.mark.slow
@pytest.mark.parametrize("make", [plain_table, weighed_table], ids=["plain", "weighed"])
def test_a_row_of_a_table_is_filled_in_and_its_nomogram_drawn(browser: Any, make: Any) -> None:
    model = make()
    with opened(browser, ServedState.of(model), "ask") as tab:
        tab.get_by_label("ward").select_option(label="b")
        tab.get_by_label("age").fill("41")
        tab.wait_for_selector("#why table")
        best = model.predict({"ward": "b", "age": 41, "beds": None, "fever": None, "note": None})[0]
        assert tab.inner_text("#answer .lead b") == str(best)
        if make is weighed_table:  # has too many columns and pairs for one sheet
            assert tab.locator("#nomogram").is_hidden()
            return
        tab.click("#nomogram summary")
        tab.wait_for_selector("#lanes .lane")
        tab.locator("#lanes .lane button:enabled").filter(has_text=re.compile("^c ")).first.click()
        until(tab, lambda: tab.get_by_label("ward", exact=True).evaluate("x => x.selectedOptions[0].innerText") == "c")
        tab.get_by_label("age", exact=True).fill("old")
        has(tab, "#problem", "old is not a number")


@pytest.mark.slow
def test_what_was_not_kept_comes_again_and_two_tabs_know_of_each_other(browser: Any, tmp_path: Path) -> None:
    with opened(browser, state := begun(tmp_path), "label") as tab:
        tab.wait_for_selector("#task .shaded")
        tab.get_by_label("In order").check()
        other = tab.context.browser.new_page()
        other.goto(tab.url)
        other.wait_for_selector("#task .shaded")
        tab.route("**/rows/*", lambda route: route.abort())
        first = tab.inner_text("#task")
        tab.keyboard.press("1")
        has(tab, "#problem", "was not saved and will come up again: The service does not respond.")
        tab.unroute("**/rows/*")
        tab.refused()
        label(tab, 1)
        counted(tab, state, 1)
        until(tab, lambda: tab.inner_text("#task") == first)
        tab.keyboard.press("1")
        counted(tab, state, 2)
        assert tab.locator("#problem").is_hidden()
        ids = [row["id"] for row in state.rows(labelled=True)]
        assert other.inner_text("#task").split()[0] in ids
        told = state.row(other.inner_text("#task").split()[0])["label"]
        other.keyboard.press("2" if told == "spam" else "1")
        has(other, "#problem", "has been labelled by someone else; now it is")
        label(tab, 1)
        counted(tab, state, 3)
        other.keyboard.press("u")  # its own change, not the last of all
        until(other, lambda: state.history()[0]["action"] == "undone")
        assert state.row(state.history()[0]["id"])["label"] == told and state.log.n_rows()[0] == 3
        other.close()


@pytest.mark.slow
def test_a_token_is_asked_for_until_it_is_known(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("0123456789abcdef read learn\n")
    file.chmod(0o600)
    with opened(browser, begun(tmp_path), "label", Tokens.read(file)) as tab:
        tab.wait_for_selector("#token[open]")
        assert tab.get_by_role("dialog", name="Token required").is_visible()
        for token, told in (("wrong", "requires a token"), ("0123456789abcdef", "not valid")):
            has(tab, "#token-why", told)
            tab.locator("#token-input").fill(token)
            tab.keyboard.press("Enter")
        tab.wait_for_selector("#task .shaded")
        tab.evaluate("sessionStorage.setItem('token', 'it was replaced')")
        tab.keyboard.press("1")
        tab.wait_for_selector("#token[open]")
        has(tab, "#token-why", "no longer valid")
        tab.keyboard.press("Escape")
        has(tab, "#problem", "was not saved and will come up again: a token is required")
        tab.refused()


@pytest.mark.slow
def test_odd_names_and_letters_that_turn(browser: Any, tmp_path: Path) -> None:
    """Columns called as JavaScript calls its own things; figures keep their places beside Hebrew; what turns letters is shown."""
    hebrew, turned = "\u05e9\u05dc\u05d5\u05dd", "a\u202eb"
    rows = {"__proto__": [1.5, 2.5, 7.5, 8.5] * 40, "constructor": ["a", "b"] * 80}
    labels = [hebrew, hebrew, turned, turned] * 40
    model = bb.weigh(bb.count(rows, labels), rows, labels)
    with ServedState.of(model, tmp_path / "state") as state:
        state.change(Put("1", {"__proto__": 8.0}))
        with pytest.raises(bb.BanburyError, match=r"not \. or \.\."):  # no address of a row can end so
            state.change(Put("..", {"constructor": "a"}))
        with opened(browser, state, "ask") as tab:
            tab.get_by_label("__proto__").fill("1.5")
            tab.wait_for_selector("#why table")
            assert tab.inner_text("#answer .lead").startswith(f"\u2068{hebrew}\u2069 ")
            assert "a\ufffdb" in tab.inner_text("#answer") and "\u202e" not in tab.inner_text("body")
            assert "__proto__" in tab.inner_text("#why")
            tab.goto(re.sub("#.*", "#label", tab.url))
            has(tab, "#task", "missing")
            tab.goto(re.sub("#.*", "#inspect", tab.url))
            has(tab, "#overview", "constructor")


@pytest.mark.slow
def test_several_labels_are_chosen_one_by_one(browser: Any, tmp_path: Path) -> None:
    with ServedState.of(labels_model(), tmp_path / "state") as state:
        state.change(Put("1", "cheap lunch"))
        with opened(browser, state, "label") as tab:
            tab.wait_for_selector("#task .shaded")
            tab.keyboard.press("1")
            tab.keyboard.press("3")
            tab.keyboard.press("Enter")
            counted(tab, state, 1)
            names = sorted(state.learner.current_model()[0].labels)  # type: ignore[union-attr]
            assert state.row("1")["label"] == [names[0], names[2]]
            has(tab, "#suspicious", "Not available when rows can have several labels")
            tab.goto(tab.url.replace("#label", "#inspect"))
            tab.wait_for_selector("#overview .cards")


@pytest.mark.slow
def test_hostile_texts_and_labels_are_shown_as_text(browser: Any, tmp_path: Path) -> None:
    model = bb.estimate(bb.count([HOSTILE, "lunch at noon"] * 3, target=[HOSTILE, "ham"] * 3))
    with ServedState.of(model, tmp_path / "state") as state:
        for k in range(6):
            state.change(Put(f"{HOSTILE[:30]}{k}", HOSTILE if k % 2 else "lunch", HOSTILE if k % 2 else "ham"))
        state.change(Put("long", "x" * 10 + " y" * 500_000))
        with opened(browser, state, "ask") as tab:
            tab.get_by_label("text").fill(HOSTILE)
            tab.wait_for_selector("#why table")
            assert "<script>" in tab.inner_text("#answer .lead")
            for view in ("label", "inspect"):
                tab.goto(re.sub("#.*", f"#{view}", tab.url))
                tab.wait_for_selector("#task .shaded" if view == "label" else "#overview .cards")
            assert "Banbury" in tab.title()
            assert tab.locator("main img, main script").count() == 0
            assert "<script>" in tab.inner_text("#overview")


def contrast(a: list[float], b: list[float]) -> float:
    def light(colour: list[float]) -> float:
        each = [c / 255 for c in colour[:3]]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in each]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


COLOURS = """() => [...document.querySelectorAll('main *, header *')].filter(n => n.checkVisibility() && [...n.childNodes].some(
    c => c.nodeType === 3 && c.data.trim()) && !n.closest('.shaded') && !(n instanceof SVGElement)).map(n => {
    let at = n, ground = 'rgba(0, 0, 0, 0)';
    while (at && /, 0\\)$/.test(ground)) { ground = getComputedStyle(at).backgroundColor; at = at.parentElement; }
    return [n.innerText.slice(0, 30), getComputedStyle(n).color, ground, n.className]; })"""


def nameless_nodes(tab: Any) -> list[str]:
    """Roles of what a screen reader stops at and cannot name."""
    tree = tab.context.new_cdp_session(tab).send("Accessibility.getFullAXTree")["nodes"]
    stops = [n for n in tree if not n["ignored"] and any(p["name"] == "focusable" for p in n.get("properties", ()))]
    assert len(stops) > 10
    return [n["role"]["value"] for n in stops if not n["name"]["value"].strip() and n["role"]["value"] != "main"]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_focus_contrast_and_width(browser: Any, tmp_path: Path, scheme: str) -> None:
    with ServedState.of(bb.estimate(bb.count(table(), target="flu")), tmp_path / "state") as state:
        rows = table(30)
        for k in range(30):
            state.change(
                Put(str(k), {n: c[k] for n, c in rows.items() if n != "flu"}, rows["flu"][k] if k % 2 else None)
            )
        with opened(browser, state, "ask", color_scheme=scheme, viewport={"width": 360, "height": 700}) as tab:
            tab.get_by_label("ward").select_option(label="a")
            tab.wait_for_selector("#why table")
            for view, ready in (("ask", "#why table"), ("label", "#history table"), ("inspect", "#overview .cards")):
                tab.goto(re.sub("#.*", f"#{view}", tab.url))
                tab.wait_for_selector(ready)
                assert tab.evaluate("document.documentElement.scrollWidth") <= 360, view
                nameless = (
                    "x => x.filter(x => !(x.labels?.length || x.ariaLabel || x.innerText.trim())).map(x => x.outerHTML)"
                )
                controls = tab.locator("main :is(button, input, select, textarea):visible").evaluate_all(nameless)
                assert not controls
                assert nameless_nodes(tab) == []
                for text, ink, ground, kind in tab.evaluate(COLOURS):
                    colours = [[float(x) for x in re.findall(r"[\d.]+", colour)] for colour in (ink, ground)]
                    if len(colours[1]) == 4 or "key" in kind:
                        continue  # see-through shades
                    assert contrast(*colours) >= 4.5, (view, text, ink, ground)
            tab.keyboard.press("Tab")
            assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_the_page_is_small_and_asks_nobody_else() -> None:
    assert sum(file.stat().st_size for file in set(files.FILES.values())) < 150_000
    for file in set(files.FILES.values()):
        text = file.read_text()
        assert "innerHTML" not in text and "eval(" not in text
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []
    assert "unsafe" not in files.POLICY


def test_a_port_is_checked_before_rows_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state"
    for words in (["label", str(pool(tmp_path)), "--state", str(state)], ["demo", str(state), "--page"]):
        assert main([*words, "--port", "99999"]) == 2
        assert "--port must be a whole number from 0 to 65,535. Got 99999 instead." in capsys.readouterr().err
    assert not state.exists()
