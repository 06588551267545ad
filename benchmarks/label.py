"""The page in a browser: how soon it is painted with a large model, and how soon a key press is answered among many labels.

    python -m benchmarks.label [--labelled 20000] [--words 1800000]

Chromium is driven by Playwright. A key press is answered when the next row stands in the page; it is durable soon after.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import banbury as bb
from banbury.service.state import Put, ServedState, Together
from benchmarks import machine

WATCH = """() => { window.waits = []; addEventListener('keydown', () => { window.pressed = performance.now(); }, true);
    new MutationObserver(() => {
        if (window.pressed) { window.waits.push(performance.now() - window.pressed); window.pressed = 0; } })
    .observe(document.getElementById('task'), { childList: true }); }"""
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labelled", type=int, default=20_000, help="texts that have a label (20,000)")
    parser.add_argument(
        "--words", type=int, default=1_800_000, help="words of the large model (1,800,000: some 100 MB)"
    )
    options = parser.parse_args()
    print(f"{machine.description()}\n")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        large = Path(folder) / "large.banbury"
        bb.save(bb.estimate(many_words(options.words)), large)
        with served([str(large)]) as url:
            paints = []
            for _ in range(5):
                tab = browser.new_page()
                tab.goto(f"{url}/#ask", wait_until="load")
                tab.wait_for_selector("textarea")
                paints.append(tab.evaluate(PAINTED))
                tab.close()
        size = large.stat().st_size / 1e6
        print(f"first paint, model of {size:.0f} MB: {min(paints):.0f} ms at best, {max(paints):.0f} ms at worst of 5")
        state = Path(folder) / "state"
        labelled(state, options.labelled)
        with served(["--state", str(state)]) as url:
            waits = sorted(pressed(browser.new_page(), f"{url}/#label"))
        print(
            f"key press, {options.labelled:,} texts labelled: {waits[len(waits) // 2]:.0f} ms in the middle, "
            f"{waits[-1]:.0f} ms at worst of {len(waits)}"
        )
        browser.close()


def texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(f"w{int(rng.paretovariate(0.7)) % 50_000}" for _ in range(30)) for _ in range(n)]


def many_words(n: int) -> bb.Tally:
    rows = [" ".join(f"word{k}" for k in range(at, min(at + 1_000, n))) for at in range(0, n, 1_000)]
    return bb.count([*rows, *rows[::2]], target=[f"class {k % 10}" for k in range(len(rows) + len(rows[::2]))])


def labelled(folder: Path, n: int) -> None:
    some = texts(n + 500, 1)
    schema = bb.count(some[:1000], target=["spam", "ham"] * 500)
    with ServedState.of(schema - schema, folder) as state:
        puts = [
            Put(f"{k:07}", text, ("spam" if "w9 " in text else "ham") if k < n else None) for k, text in enumerate(some)
        ]
        for at in range(0, len(puts), 1_000):
            state.change(Together(tuple(puts[at : at + 1_000])))


def pressed(tab: Page, url: str) -> list[float]:
    tab.goto(url)
    tab.wait_for_selector("#task .shaded")
    tab.wait_for_timeout(3_000)  # what stands beside is measured first
    tab.evaluate(WATCH)
    for k in range(40):
        tab.keyboard.press("12"[k % 2])
        tab.wait_for_timeout(250)
    return list(tab.evaluate("() => window.waits"))


@contextmanager
def served(words: list[str]) -> Iterator[str]:
    command = [sys.executable, "-m", "banbury", "serve", *words, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        told = ""
        while not told.rstrip().endswith("}"):
            told += server.stdout.readline()
        try:
            yield json.loads(told)["url"]
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
