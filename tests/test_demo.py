"""The demo runs to its end and keeps its promises; its docstrings are the same every time, and cost no side effect."""

from __future__ import annotations

import doctest
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

import banbury as bb
from banbury import datasets, demo, errors

TITLES = [
    "Count",
    "Validate",
    "See what the model confuses",
    "Explain an answer",
    "Calibrate",
    "Forget",
    "Save and report",
    "Use your own data",
]


def run(*arguments: str, flags: tuple[str, ...] = (), **more: str) -> subprocess.CompletedProcess[str]:
    """Run the demo as `make demo` does; a warning ends it."""
    command = [sys.executable, "-W", "error", *flags, "-m", "banbury.demo", *arguments]
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
    environment = {**plain, "PYTHONIOENCODING": "utf-8", **more}
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environment)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the demo makes, the same for all workers of one test run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "demo" / "new" / "folder"


@pytest.fixture(scope="session")
def printed(folder: Path) -> str:
    """The output of the one run that all tests read: one worker runs the demo, and the others wait for it."""
    result = folder.parents[1] / "result.json"
    try:
        result.parent.mkdir()
    except FileExistsError:
        while not result.exists():
            time.sleep(0.1)
    else:
        done = run(str(folder))
        unfinished = result.with_suffix(".part")
        unfinished.write_text(json.dumps([done.returncode, done.stderr, done.stdout]))
        unfinished.rename(result)
    returncode, stderr, stdout = json.loads(result.read_text())
    assert (returncode, stderr) == (0, "")
    return stdout


def section(printed: str, title: str) -> str:
    """The text below a title."""
    return re.split(r"^\d  .* ─+$", printed, flags=re.MULTILINE)[1 + TITLES.index(title)]


def paragraphs(printed: str) -> list[str]:
    """The lines that are neither code nor a result: those after a blank line, up to the next title."""
    return re.findall(r"\n\n(?!\d  )((?:.+\n)+)", printed)


@pytest.mark.slow
def test_every_step_is_there_in_order(printed: str) -> None:
    assert re.findall(r"^\d  (.*) ─+$", printed, flags=re.MULTILINE) == TITLES


@pytest.mark.slow
def test_piped_it_is_plain_text_and_paragraphs_and_titles_fit_80_columns(printed: str, folder: Path) -> None:
    assert "\x1b" not in printed
    lines = [line for line in printed.splitlines() if "─" in line]
    lines += [line for text in paragraphs(printed) for line in text.splitlines() if str(folder) not in line]
    assert len(lines) > 25
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.slow
def test_all_columns_of_all_modules_are_counted(printed: str) -> None:
    shown = section(printed, "Count")
    modules = datasets.docstrings()["module"]
    assert f"Tally of {len(modules):,} rows, 12 classes, 5 features" in shown
    for column, family in {"text": "text", "kind": "categorical", "lines": "histogram", "private": "bernoulli"}.items():
        assert re.search(rf"^  {column} +{family} ", shown, re.MULTILINE)
    assert "left out: name" in shown


@pytest.mark.slow
def test_every_column_and_tuning_add_to_the_accuracy(printed: str) -> None:
    text, plain, tuned = map(float, re.findall(r"(0\.\d+) ±", section(printed, "Validate")))
    majority = float(re.findall(r"majority (\S+)\)", section(printed, "See what the model confuses"))[0])
    assert 2 * majority < text < plain < tuned < 1


@pytest.mark.slow
def test_the_evidence_of_the_docstring_adds_up(printed: str) -> None:
    shown = section(printed, "Explain an answer")
    *weights, total = map(float, re.findall(r"^  (?:prior|sum|\w+ += .*?) +([+-]\d+\.\d\d)", shown, re.MULTILINE))
    assert len(weights) > 5
    assert abs(sum(weights) - total) < 0.01 * len(weights)


@pytest.mark.slow
def test_calibration_lowers_the_log_loss(printed: str) -> None:
    raw, temperature, isotonic = map(
        float, re.findall(r"^'log loss (\S+),", section(printed, "Calibrate"), re.MULTILINE)
    )
    assert max(temperature, isotonic) < raw


@pytest.mark.slow
def test_the_forgotten_module_is_gone_and_comes_back(printed: str) -> None:
    modules = datasets.docstrings()["module"]
    results = re.findall(r"^(?!>>>|\.\.\.)(\S.*)$", section(printed, "Forget").partition("\n\n")[0], re.MULTILINE)
    assert results == [f"({len(modules) - modules.count('tarfile')}, False)", "True", "True", "True"]


@pytest.mark.slow
def test_the_model_and_the_report_are_left_in_the_folder(printed: str, folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["docstrings.banbury", "report.html"]
    model = bb.load(folder / "docstrings.banbury")
    assert isinstance(model, bb.Model)
    docs = datasets.docstrings()
    assert (model.predict(docs) == docs["module"]).mean() > 0.9  # of the rows it learned from
    assert "</html>" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_code_is_python_and_names_only_what_it_made(printed: str) -> None:
    """What was run is what is shown: the examples compile one by one, and no name comes from elsewhere."""
    examples = doctest.DocTestParser().get_examples(printed)
    assert len(examples) > 20
    for example in examples:
        compile(example.source, "demo", "single")
    assert [example.source for example in examples if "import" in example.source] == ["import banbury as bb\n"]


def test_a_python_without_docstrings_is_told_apart(tmp_path: Path) -> None:
    done = run(str(tmp_path / "new"), flags=("-OO",))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("banbury demo: found no docstrings in asyncio")
    assert "-OO" in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_counted(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.BadFile, match="cannot write into the folder"):
        demo.main(tmp_path / "file" / "folder")
    assert capsys.readouterr().out == ""


def test_a_terminal_gets_the_same_words_in_colour(monkeypatch, capsys) -> None:
    def shown() -> str:
        page = demo._Page()
        page.title("A title")
        page.run("def double(x):\n    return 2 * x\ndouble(21)\nNone")
        page.say("A sentence that is long enough to be broken into two lines, " * 2)
        return capsys.readouterr().out

    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    piped = shown()
    assert ">>> def double(x):\n...     return 2 * x\n>>> double(21)\n42\n>>> None\nA sentence" in piped
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = shown()
    assert "\x1b" not in piped
    assert "\x1b[36m>>> double(21)" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == piped


def test_output_that_takes_ascii_only_gets_question_marks(monkeypatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, "ascii"))
    demo._Page().title("A title")
    sys.stdout.flush()
    assert buffer.getvalue().startswith(b"\n1  A title ???")


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
