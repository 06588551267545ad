"""What tests of the command line share: a shell with a terminal, in which ``banbury`` is this package."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
READY = Path(__file__).with_name("ready.py")
BLOCK = re.compile(r"```console\n(.*?)```", re.S)


def environment(folder: Path, address: str = "") -> dict[str, str]:
    """One in which ``banbury`` is found, the terminal is 100 wide, and no progress is shown.

    With the address of :func:`ready` commands are done there.
    """
    command = f'"{sys.executable}" -IS "{READY}" "{address}"' if address else f'"{sys.executable}" -m banbury'
    bin_folder = folder / ".bin"
    bin_folder.mkdir(exist_ok=True)
    script = bin_folder / "banbury"
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    script.chmod(0o755)
    path = os.pathsep.join([str(bin_folder), os.environ.get("PATH", "")])
    known = {"PATH": path, "PYTHONPATH": str(SOURCE), "COLUMNS": "100", "BANBURY_PROGRESS": "0", "NO_COLOR": "1"}
    return {**os.environ, **known}


@contextmanager
def ready() -> Iterator[str]:
    """The address of a process that has imported all that commands need: for many of them where the start is not the point."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/ready"
        with subprocess.Popen(
            [sys.executable, READY, address], env={**os.environ, "PYTHONPATH": str(SOURCE)}
        ) as server:
            try:
                while not Path(address).exists() and server.poll() is None:
                    time.sleep(0.05)
                yield address
            finally:
                server.terminate()


def on_a_terminal(command: str, folder: Path, address: str = "", **more: str) -> tuple[str, int]:
    """What a terminal shows of a command, and its exit code; with the address of :func:`ready`, of one that is done there."""
    ours, its = pty.openpty()
    shown: list[bytes] = []
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(folder, address) | more,
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
    ) as process:
        reader = threading.Thread(target=_read, args=(ours, shown))
        reader.start()
        code = process.wait()
        os.close(its)
        reader.join()
    os.close(ours)
    return b"".join(shown).decode().replace("\r\n", "\n"), code


def _read(terminal: int, shown: list[bytes]) -> None:
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            return
        if not piece:
            return
        shown.append(piece)


def examples(page: Path) -> list[tuple[str, str]]:
    """The commands of a page and what they are said to print; lines that begin with ``> `` go on with a command."""
    found: list[tuple[list[str], list[str]]] = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(([line[2:]], []))
            elif line.startswith("> ") and not found[-1][1]:
                found[-1][0].append(line[2:])
            else:
                found[-1][1].append(line)
    return [("\n".join(command), "\n".join(shown).rstrip()) for command, shown in found]
