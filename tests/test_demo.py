"""The demo runs to its end and keeps what it promises; its docstrings are the same every time, and cost no side effect."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import banbury as bb
from banbury import datasets, demo, errors

TITLES = [
    "What was counted",
    "How often it is right",
    "What it takes for what",
    "Why: one docstring, word by word",
    "Probabilities that mean what they say",
    "A module forgotten, and learned back",
    "A model in a file, and a report",
    "The same with your own data",
]


def run(*arguments: str, flags: tuple[str, ...] = (), **more: str) -> subprocess.CompletedProcess[str]:
    """The demo as `make demo` runs it; a warning ends it."""
    command = [sys.executable, "-W", "error", *flags, "-m", "banbury.demo", *arguments]
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
    environment = {**plain, "PYTHONIOENCODING": "utf-8", **more}
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environment)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "new" / "folder"


@pytest.fixture(scope="module")
def printed(folder: Path) -> str:
    """What it prints where it is piped."""
    done = run(str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def section(printed: str, title: str) -> str:
    """What stands below a title."""
    return re.split(r"^\d  .* ─+$", printed, flags=re.MULTILINE)[1 + TITLES.index(title)]


def figures(text: str, line: str) -> list[float]:
    """The numbers of the line that begins so."""
    (found,) = re.findall(rf"^ *{re.escape(line)}(.*)$", text, flags=re.MULTILINE)
    return [float(number) for number in re.findall(r"\d+\.\d+", found)]


def test_every_step_is_there_in_order(printed: str) -> None:
    assert re.findall(r"^\d  (.*) ─+$", printed, flags=re.MULTILINE) == TITLES


def test_piped_it_is_plain_text_for_80_columns(printed: str, folder: Path) -> None:
    assert "\x1b" not in printed
    assert [line for line in printed.splitlines() if len(line) > 80 and str(folder) not in line] == []


def test_it_tells_how_many_docstrings_of_each_module_were_counted(printed: str) -> None:
    shown = section(printed, "What was counted")
    modules = datasets.docstrings()["module"]
    assert f"Tally of {len(modules):,} rows, 12 classes, 5 features" in shown
    for module in datasets.MODULES:
        assert re.search(rf"'{module}' +{modules.count(module)} ", shown)
    for column, family in {"text": "text", "kind": "categorical", **demo.FAMILIES, "private": "bernoulli"}.items():
        assert re.search(rf"^  {column} +{family} ", shown, re.MULTILINE)
    assert "left out: name" in shown


def test_it_learns_far_more_than_the_most_frequent_module(printed: str) -> None:
    shown = section(printed, "How often it is right")
    (majority, *_), (one, *_), (auto, *_) = (
        figures(shown, name) for name in ("always answer 'asyncio'", "all columns, α = 1", 'all columns, α = "auto"')
    )
    assert 0 < majority < one < 100
    assert 2 * majority < auto < 100


def test_every_row_is_in_the_confusion_table_once(printed: str) -> None:
    shown = section(printed, "What it takes for what")
    table = [
        [0 if cell == "·" else int(cell) for cell in line.split()[1:-1]]
        for line in shown.splitlines()
        if line.split()[:1] and line.split()[0] in datasets.MODULES and line.endswith("%")
    ]
    assert [len(row) for row in table] == [12] * 12
    modules = datasets.docstrings()["module"]
    assert [sum(row) for row in table] == [modules.count(module) for module in datasets.MODULES]


def test_the_evidence_of_the_docstring_adds_up(printed: str) -> None:
    shown = section(printed, "Why: one docstring, word by word")
    weights = [float(x) for x in re.findall(r"^  (?:prior|\w+ += .*?) +([+-]\d+\.\d\d)", shown, re.MULTILINE)]
    (total,) = figures(shown, "sum")
    assert len(weights) > 5
    assert abs(sum(weights) - total) < 0.01 * len(weights)


def test_probabilities_before_and_after_are_compared_on_rows_not_learned_from(printed: str) -> None:
    shown = section(printed, "Probabilities that mean what they say")
    n_held_out = len(datasets.docstrings()["text"][::5])
    assert f"every fifth row, {n_held_out:,} in all" in " ".join(shown.split())
    assert re.search(r"^ +log loss +calibration error +claims +right$", shown, re.MULTILINE)
    table = re.findall(r"^  (before|after: \w+).*? +(\d\.\d+) +(\d\.\d+) +(\S+)% +(\S+)%$", shown, re.MULTILINE)
    assert [name for name, *_ in table] == ["before", "after: temperature", "after: isotonic"]
    before, temperature, _ = table
    assert before[1:4] != temperature[1:4]
    assert before[4] == temperature[4]  # a temperature changes no answer
    assert re.search(r"^  truth +\w+\n  before +\w+ \S+%.*\n  after +\w+ \S+%", shown, re.MULTILINE)


def test_the_forgotten_module_is_gone_and_comes_back(printed: str) -> None:
    shown = section(printed, "A module forgotten, and learned back")
    modules = datasets.docstrings()["module"]
    assert f"({len(modules) - modules.count('tarfile')}, 11, False)" in shown
    assert "is identical: True." in " ".join(shown.split())
    before, forgotten = re.findall(r"^  (?:before|forgotten) +(\w+) ", shown, re.MULTILINE)
    assert (before, forgotten == "tarfile") == ("tarfile", False)
    assert ">>> without + part == tally\nTrue\n" in shown
    assert ">>> (back == bb.estimate(tally).posterior(docs)).all()\nTrue\n" in shown


def test_the_model_and_the_report_are_left_in_the_folder(printed: str, folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["docstrings.banbury", "report.html"]
    model = bb.load(folder / "docstrings.banbury")
    assert isinstance(model, bb.Model)
    assert model.calibration is not None
    docs = datasets.docstrings()
    assert (model.predict(docs) == docs["module"]).mean() > 0.9  # of the rows it learned from
    assert "</html>" in (folder / "report.html").read_text(encoding="utf-8")


def test_every_line_of_code_it_shows_can_be_pasted(
    printed: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = printed.replace(str(folder), "there")
    Path("there").mkdir()
    known: dict[str, object] = {}
    shown = [example.source for example in doctest.DocTestParser().get_examples(source)]
    for line in shown:
        exec(compile(line, "demo", "single"), known)
    assert len(shown) > 20
    assert isinstance(known["model"], bb.Model)
    assert sorted(os.listdir("there")) == ["docstrings.banbury", "report.html"]


def test_it_can_be_run_again_where_no_greek_can_be_written(printed: str, folder: Path) -> None:
    again = run(str(folder), PYTHONIOENCODING="ascii")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.isascii()
    plain = [line for line in printed.splitlines() if line.isascii() and "seconds" not in line]
    assert len(plain) > 60
    assert [line for line in plain if line not in again.stdout] == []


def test_a_python_without_docstrings_is_told_apart(tmp_path: Path) -> None:
    done = run(str(tmp_path / "new"), flags=("-OO",))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("banbury demo: no docstrings in asyncio")
    assert "-OO" in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run(str(tmp_path / "file" / "folder"))
    assert (done.returncode, done.stdout) == (1, "")
    assert str(tmp_path / "file" / "folder") in done.stderr
    assert "Traceback" not in done.stderr
    with pytest.raises(errors.BadFile, match="cannot write into the folder"):
        demo.main(tmp_path / "file")


def test_a_terminal_gets_the_same_words_in_colour(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown() -> str:
        page = demo._Page()
        page.title("A title")
        page.code("f(\n    x)")
        page.say("A sentence that is long enough to be broken into two lines, " * 2)
        page.bars(("half", 0.5, "± 1.0%"))
        page.squares(np.array([[9, 12], [0, 3]]), ["spam", "ham"])
        model = bb.estimate(bb.count(["free money", "lunch at noon"], target=["spam", "ham"]))
        page.evidence(model.explain("free lunch, free money"))
        return capsys.readouterr().out

    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    piped = shown()
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = shown()
    assert "\x1b" not in piped
    assert re.search(r"\x1b\[1;32mfree", coloured)  # strong evidence
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == piped
    assert ">>> f(\n...     x)\n" in piped


# The docstrings


def test_docstrings_come_from_twelve_modules_in_full() -> None:
    docs = datasets.docstrings()
    assert sorted(set(docs["module"])) == datasets.MODULES == sorted(datasets.MODULES)
    assert min(docs["module"].count(module) for module in datasets.MODULES) > 50
    assert len({len(column) for column in docs.values()}) == 1
    assert 1_500 < len(docs["text"]) < 4_000
    assert set(docs["kind"]) == {"function", "method", "property", "class"}
    assert set(docs["private"]) == {False, True}
    assert all(name.split(".")[0] == module for name, module in zip(docs["name"], docs["module"], strict=True))


def test_no_docstring_is_empty_or_there_twice() -> None:
    docs = datasets.docstrings()
    assert all(text.strip() for text in docs["text"])
    assert len(set(docs["text"])) == len(docs["text"])
    assert len(set(docs["name"])) == len(docs["name"])
    assert min(docs["lines"]) == 1
    assert min(n for n in docs["parameters"] if n is not None) == 0


def row(docs: Mapping[str, list[object]], name: str) -> dict[str, object]:
    return {column: values[docs["name"].index(name)] for column, values in docs.items()}


def test_a_docstring_stands_beside_what_it_describes() -> None:
    import logging

    docs = datasets.docstrings()
    found = row(docs, "logging.Logger.addHandler")
    assert found["text"] == "Add the specified handler to this logger."
    assert " ".join((logging.Logger.addHandler.__doc__ or "").split()) == found["text"]
    assert (found["kind"], found["parameters"], found["lines"], found["private"]) == ("method", 2, 1, False)
    assert row(docs, "decimal.Decimal.sqrt")["kind"] == "method"  # which is written in C
    assert row(docs, "collections.OrderedDict.move_to_end")["module"] == "collections"
    assert "collections.Counter.keys" not in docs["name"]  # inherited from dict


def test_the_same_docstrings_come_in_the_same_order_and_quietly() -> None:
    code = """if True:
        import socket, subprocess, sys, threading, zlib
        def refuse(*_, **__): raise AssertionError("a side effect")
        socket.socket.__init__ = subprocess.Popen.__init__ = threading.Thread.start = refuse
        from banbury import datasets
        found = datasets.docstrings()
        assert found == datasets.docstrings()
        sys.stdout.write(str(zlib.crc32(repr(found).encode())))
    """
    said = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    assert [(one.returncode, one.stderr) for one in said] == [(0, ""), (0, "")]
    assert said[0].stdout == said[1].stdout
    assert said[0].stdout.isdigit()


def test_docstrings_changed_by_their_user_are_whole_the_next_time() -> None:
    n_rows = len(datasets.docstrings()["text"])
    datasets.docstrings()["text"].clear()
    assert len(datasets.docstrings()["text"]) == n_rows
