"""Photographs the page of `banbury demo --page`, into docs/screenshots: `python -m docs.make_screenshots`. It needs Chromium."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parent / "screenshots"
ASKED = "Return True if name points to a tar archive that we are able to handle, else return False."


def kept(tab: Page, name: str, height: int) -> None:
    picture = Image.open(
        io.BytesIO(tab.screenshot(clip={"x": 0, "y": 0, "width": 1000, "height": height}, full_page=True))
    )
    picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=256).save(FOLDER / f"{name}.png", optimize=True)
    print(FOLDER / f"{name}.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        words = [sys.executable, "-m", "banbury", "demo", folder, "--page", "--port", "8765"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None and server.stdout.readline()
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1000, "height": 800}, device_scale_factor=1)
            tab.goto("http://127.0.0.1:8765/#ask")
            tab.get_by_label("text").fill(ASKED)
            tab.get_by_label("kind").select_option(label="function")
            tab.wait_for_selector("#why table")
            kept(tab, "page-ask", 1000)
            tab.goto("http://127.0.0.1:8765/#label")
            tab.check("#shading")
            tab.wait_for_selector("#suspicious table")
            tab.wait_for_selector("#task .word")
            kept(tab, "page-label", 760)
            browser.close()
            server.terminate()


if __name__ == "__main__":
    main()
