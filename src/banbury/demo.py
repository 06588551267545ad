"""The demo: docstrings of Python's own library, sorted by the module they are from. The main job, on real data, in seconds."""

from __future__ import annotations

import ast
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import compress
from pathlib import Path
from textwrap import dedent, fill
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console  # noqa: TID253
from rich.rule import Rule  # noqa: TID253
from rich.text import Text  # noqa: TID253

import banbury as bb
from banbury import errors
from banbury.arrays import Real
from banbury.calibration import reliability

WIDTH = 80
MANY = 8  # mistakes of one sort that catch the eye
FAMILIES = {"text": "text", "parameters": "poisson", "lines": "histogram"}
EXPLAINED = "urllib.robotparser.RobotFileParser.read"
FORGOTTEN = "tarfile"
ASKED = "tarfile.is_tarfile"


def main(folder: str | os.PathLike[str] = "banbury-demo") -> None:
    """Prints the tour, and leaves a model and a report in the folder.

    Figures depend on the version of Python, whose docstrings these are.
    """
    start = time.monotonic()
    n_rows, version = len(bb.datasets.docstrings()["text"]), platform.python_version()
    place = _made(folder)
    page = _Page()
    page.say(
        f"From which module is a docstring? Banbury learns it from {n_rows:,} docstrings of twelve modules of Python {version}. "
        "Every figure below is computed now, and every line after >>> can be pasted into Python."
    )
    for step in (count, validate, confusion, explain, calibrate, forget):
        step(page)
    keep(page, place)
    your_own(page)
    took = f"All of this took {time.monotonic() - start:.0f} seconds."
    page.say(f"{took} Another Python has other docstrings, and other figures.")


# The steps ------------------------------------------------------------------------------------------------------------


def count(page: _Page) -> None:
    page.title("What was counted")
    page.run(
        f"""
        import banbury as bb
        docs = bb.datasets.docstrings()
        families = {json.dumps(FAMILIES)}
        tally = bb.count(docs, target="module", features=families)
        print(tally)
        """
    )
    page.say("One model of all these columns, each with a family that suits it:")
    page.pairs(
        ("text", "a bag of words of two or more letters or digits, in lower case"),
        ("kind", "one word of a few: categorical"),
        ("parameters", "a small count, so we chose Poisson"),
        ("lines", "a long tail that no bell curve fits, so we chose a histogram"),
        ("private", "yes or no: Bernoulli"),
        ("name", "different in every row, and so left out without being told"),
    )


def validate(page: _Page) -> None:
    page.title("How often it is right")
    page.run(
        """
        text = bb.cross_validate(docs["text"], target=docs["module"], folds=5)
        one = bb.cross_validate(docs, target="module", features=families, folds=5)
        auto = bb.cross_validate(docs, target="module", features=families, folds=5,
                                 alpha="auto")
        """
    )
    text, one, auto = page.known("text", "one", "auto")
    most_frequent = one.classes[int(one.confusion.sum(axis=1).argmax())]
    page.bars(
        (f"always answer {most_frequent!r}", one.majority, ""),
        ("text alone, α = 1", float(text.accuracy), f"± {text.accuracy.error:.1%}"),
        ("all columns, α = 1", float(one.accuracy), f"± {one.accuracy.error:.1%}"),
        ('all columns, α = "auto"', float(auto.accuracy), f"± {auto.accuracy.error:.1%}"),
    )
    page.say(
        "Each row was judged by a model that had not seen it, and exactly: the tally of four fifths is that of all rows minus "
        "a fifth, so nothing is counted again. α is added to every count, which makes a word not seen yet rare instead of "
        'impossible. "auto" chooses it by log loss: above anew within each four fifths, and now for all rows.'
    )
    page.answer(
        """
        tuned = bb.tune(docs, target="module", features=families)
        tuned.best["alpha"]
        """
    )


def confusion(page: _Page) -> None:
    page.title("What it takes for what")
    table = page.run("auto.confusion")
    [auto] = page.known("auto")
    page.squares(table, auto.labels.tolist())
    wrong = table.copy()
    np.fill_diagonal(wrong, 0)
    worst = np.argsort(-wrong, axis=None, kind="stable")[:3]
    pairs = [(auto.labels[i // len(wrong)], auto.labels[i % len(wrong)], wrong.flat[i]) for i in worst]
    mistakes = ", ".join(f"{true} for {answer} ({n} times)" for true, answer, n in pairs)
    how = "Down: where a docstring is from. Across: the answer. Last: how many are right."
    page.say(f"{how} Most often it takes {mistakes}.")


def explain(page: _Page) -> None:
    page.title("Why: one docstring, word by word")
    [docs] = page.known("docs")
    why = page.run(
        f"""
        i = docs["name"].index("{_there(docs, EXPLAINED)}")
        row = {{name: column[i] for name, column in docs.items()}}
        unseen = tally - tally.count(row)
        bb.estimate(unseen, alpha=tuned.best["alpha"]).explain(row)
        """
    )
    page.evidence(why)
    page.say(
        "This model has never seen the row: it was subtracted. Evidence is weighed in decibans: +3 doubles the odds, +10 makes "
        "them ten times as long. The prior and all the pieces add up to the sum, and the sum is the answer."
    )


def calibrate(page: _Page) -> None:
    page.title("Probabilities that mean what they say")
    page.run(
        """
        held_out = {name: column[::5] for name, column in docs.items()}
        learned = {name: [value for i, value in enumerate(column) if i % 5]
                   for name, column in docs.items()}
        modules, truth = learned.pop("module"), held_out.pop("module")
        clf = bb.NaiveBayesClassifier(families, alpha="auto",
                                      calibrate="temperature").fit(learned, modules)
        steps = bb.NaiveBayesClassifier(families, alpha=clf.alpha_,
                                        calibrate="isotonic").fit(learned, modules)
        before = clf.model_.calibrated(None).posterior(held_out)
        after = clf.predict_proba(held_out)
        after_steps = steps.predict_proba(held_out)
        """
    )
    held_out, truth, clf = page.known("held_out", "truth", "clf")
    before, after, after_steps = page.known("before", "after", "after_steps")
    answers = clf.model_.labels.searchsorted(truth)
    page.measures(
        ["log loss", "calibration error", "claims", "right"],
        ("before", _honesty(before, answers)),
        (f"after: {clf.calibration_}", _honesty(after, answers)),
        ("after: isotonic", _honesty(after_steps, answers)),
    )
    page.say(
        f"Measured on every fifth row, {len(truth):,} in all, from which nothing was learned. Log loss punishes being sure and "
        "wrong. Calibration error is how far what it claims is from how often it is right; beside it, what it claims and gets "
        "right on average. A temperature divides all evidence by one number; isotonic learns a staircase for each class. "
        "Which of the two serves better depends on the data, and this is how to find out. "
        "This is the mistake that the temperature humbles most:"
    )
    humbled = np.where(before.argmax(axis=1) == answers, -1.0, before.max(axis=1) - after.max(axis=1))
    worst = int(humbled.argmax())
    page.quote(held_out["text"][worst])
    page.pairs(
        ("truth", truth[worst]),
        ("before", _ranked(clf.model_.labels, before[worst])),
        ("after", _ranked(clf.model_.labels, after[worst])),
    )


def forget(page: _Page) -> None:
    page.title("A module forgotten, and learned back")
    page.answer(
        f"""
        rows = {{name: [value for value, module in zip(column, docs["module"])
                       if module == "{FORGOTTEN}"] for name, column in docs.items()}}
        part = tally.count(rows)
        without = tally - part
        without.n_rows, len(without.classes), "{FORGOTTEN}" in without.classes
        """
    )
    docs, tally, without, tuned = page.known("docs", "tally", "without", "tuned")
    others = [module != FORGOTTEN for module in docs["module"]]
    same = without == tally.count({name: list(compress(column, others)) for name, column in docs.items()})
    alone = f"The tally of the other modules, counted alone, is identical: {same}."
    page.say(f"{alone} Asked about a docstring of {FORGOTTEN}:")
    i = docs["name"].index(_there(docs, ASKED))
    row = {name: column[i] for name, column in docs.items()}
    models = [bb.estimate(known, alpha=tuned.best["alpha"]) for known in (tally, without)]
    page.quote(row["text"])
    answers = [_ranked(model.labels, model.posterior(row)[0]) for model in models]
    page.pairs(*zip(("before", "forgotten"), answers, strict=True))
    page.say("Learned back, is it the tally it was? And is every probability of every row the same, to the last bit?")
    page.answer("without + part == tally")
    page.answer(
        """
        back = bb.estimate(without + part).posterior(docs)
        (back == bb.estimate(tally).posterior(docs)).all()
        """
    )


def keep(page: _Page, place: Path) -> None:
    page.title("A model in a file, and a report")
    file, sheet = place / "docstrings.banbury", place / "report.html"
    file_name, sheet_name = (json.dumps(str(path), ensure_ascii=False) for path in (file, sheet))
    page.answer(
        f"""
        model = tuned.model.calibrated(clf.calibration_)
        bb.save(model, {file_name})
        bb.load({file_name}).tally == tally
        """
    )
    page.run(f'bb.report(model, docs, target="module", path={sheet_name})')
    safe = "loading the model runs nothing that is in it, and the report opens in a browser"
    page.say(f"Both can be sent to others: {safe}.")
    page.links(file, sheet)


def your_own(page: _Page) -> None:
    page.title("The same with your own data")
    page.say("A folder with a sub-folder for each class, or a table with a column to predict:")
    page.shell(
        """
        banbury fit mail/ -o mail.banbury
        banbury fit orders.csv --target status -o orders.banbury
        banbury predict orders.banbury new-orders.csv
        banbury explain mail.banbury --text "free lunch at the meeting"
        """
    )
    page.say("In Python:")
    page.shell(
        """
        model = bb.estimate(bb.count("mail/"))
        model = bb.estimate(bb.count("orders.csv", target="status"))
        """,
        prompt="",
    )


# What they need -------------------------------------------------------------------------------------------------------


def _made(folder: str | os.PathLike[str]) -> Path:
    """The folder, which is made if need be, and can be written to."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return place
    except OSError as problem:
        text = f"cannot write into the folder {place}: {problem.strerror or problem}. Name one that may be written to."
        raise errors.BadFile(text, path=str(place)) from None


def _there(docs: dict[str, list[Any]], name: str) -> str:
    """This name; where this Python does not have it, the last one of its module."""
    names: list[str] = docs["name"]
    return name if name in names else [other for other in names if other.startswith(name.partition(".")[0])][-1]


def _honesty(posteriors: Real, truth: NDArray[np.int64]) -> list[str]:
    """Log loss, calibration error, the mean probability of the answers, and the share of them that is right."""
    from sklearn.metrics import log_loss

    lost = float(log_loss(truth, posteriors, labels=range(posteriors.shape[1])))
    claimed, right = float(posteriors.max(axis=1).mean()), float((posteriors.argmax(axis=1) == truth).mean())
    return [f"{lost:.3f}", f"{reliability(posteriors, truth).error:.3f}", f"{claimed:.1%}", f"{right:.1%}"]


def _ranked(labels: NDArray[Any], posterior: Real) -> str:
    """The three best; never all or nothing, which is not what a model says."""
    best = [(labels[c], posterior[c]) for c in np.argsort(-posterior, kind="stable")[:3]]
    shares = ["> 99.9%" if share > 0.999 else "< 0.1%" if share < 0.001 else f"{share:.1%}" for _, share in best]
    return "   ".join(f"{label} {share}" for (label, _), share in zip(best, shares, strict=True))


# How it is printed ----------------------------------------------------------------------------------------------------


class _Page:
    """Rich on a terminal; where it is piped the same words without colour, 80 columns wide."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # where α and █ cannot be written
        self.console = Console(highlight=False, soft_wrap=False)
        self.console.width = min(self.console.width, WIDTH) if self.console.is_terminal else WIDTH
        self.n_titles = 0
        self.below_title = True
        self.names: dict[str, Any] = {"print": self.result}  # of what was run

    def known(self, *names: str) -> list[Any]:
        """What was given these names by what was run."""
        return [self.names[name] for name in names]

    def run(self, source: str) -> Any:
        """Shows lines to paste into Python, and runs them; what they come to, where the last is an expression."""
        self.code(source)
        *lines, last = ast.parse(dedent(source)).body
        exec(compile(ast.Module(lines, []), "<demo>", "exec"), self.names)
        if isinstance(last, ast.Expr):
            return eval(compile(ast.Expression(last.value), "<demo>", "eval"), self.names)
        exec(compile(ast.Module([last], []), "<demo>", "exec"), self.names)

    def answer(self, source: str) -> None:
        """Runs lines, and shows what they come to."""
        self.result(self.run(source))

    def title(self, text: str) -> None:
        self.n_titles += 1
        self.console.print()
        self.console.print(Rule(Text(f"{self.n_titles}  {text}", "bold"), align="left", style="dim"))
        self.below_title = True

    def gap(self) -> None:
        """A blank line between paragraphs; none below a title."""
        if not self.below_title:
            self.console.print()
        self.below_title = False

    def say(self, text: str) -> None:
        """A paragraph."""
        self.gap()
        self.console.print(Text(fill(text, self.console.width)))

    def pairs(self, *rows: tuple[str, str]) -> None:
        """A word, and what is to be said of it."""
        width = max(len(name) for name, _ in rows)
        for name, text in rows:
            self._line(Text.assemble("  ", (f"{name:{width}}", "bold"), f"  {text}"))

    def result(self, answer: Any) -> None:
        """What Python answers, as it is."""
        for line in str(answer).splitlines():
            self._line(Text(line), "ellipsis")

    def code(self, source: str) -> None:
        """Lines to paste into Python."""
        self.gap()
        for line in dedent(source).strip().splitlines():
            prompt = "... " if line.startswith((" ", ")")) else ">>> "
            self._line(Text.assemble((prompt, "dim"), (line, "cyan")))

    def shell(self, source: str, prompt: str = "$ ") -> None:
        """Lines to paste into a terminal."""
        for line in dedent(source).strip().splitlines():
            self._line(Text.assemble("  ", (prompt, "dim"), (line, "cyan")))

    def quote(self, text: str) -> None:
        """A docstring's first paragraph, on one line if it fits."""
        paragraph = " ".join(text.partition("\n\n")[0].split())
        self.console.print(Text(fill(f"“{paragraph}”", self.console.width), "italic"))

    def bars(self, *rows: tuple[str, float, str]) -> None:
        """Shares, drawn."""
        width = max(len(name) for name, _, _ in rows)
        for name, share, error in rows:
            bar = ("█" * round(30 * share), "green")
            self._line(Text.assemble(f"  {name:{width}}  {share:6.1%} {error:7}  ", bar))

    def squares(self, table: NDArray[Any], names: Sequence[str]) -> None:
        """A square table of counts: what is right in green, what is wrong in red, and the share that is right."""
        width = max(map(len, names))
        head = "".join(f" {name[:4]:>4}" for name in names)
        self._line(Text(f"{'':{width}}{head}     ", "dim"))
        for i, (name, row) in enumerate(zip(names, table, strict=True)):
            line = Text(f"{name:{width}}")
            for j, n in enumerate(row):
                wrong = "bold red" if n >= MANY else "" if n else "dim"
                line.append(f" {n or '·':>4}", "bold green" if i == j else wrong)
            share = row[i] / row.sum()
            self._line(line.append(f" {share:4.0%}", "dim"))

    def measures(self, names: Sequence[str], *rows: tuple[str, list[str]]) -> None:
        """Numbers under their names."""
        width = max(len(name) for name, _ in rows)
        head = "".join(f"  {name:>8}" for name in names)
        self._line(Text(f"  {'':{width}}{head}", "dim"))
        for name, values in rows:
            cells = "".join(f"  {value:>{max(8, len(column))}}" for column, value in zip(names, values, strict=True))
            self._line(Text.assemble(f"  {name:{width}}", (cells, "bold")))

    def links(self, *paths: Path) -> None:
        """Files, which many terminals open on a click."""
        for path in paths:
            size = f"{path.stat().st_size / 1000:,.0f} kB"
            self._line(Text.assemble("  ", (str(path), f"bold link {path.resolve().as_uri()}"), f"  {size}"))

    def evidence(self, why: bb.Explanation) -> None:
        """The text with its words coloured by what they say, and the explanation."""
        text = Text(why.texts["text"])
        for piece in why.evidence:  # strong evidence is bold, and next to none has no colour
            strength = "bold " if abs(piece.decibans) >= 3 else ""
            colour = f"{strength}{'green' if piece.decibans > 0 else 'red'}" if abs(piece.decibans) >= 1 else ""
            for start, end in piece.positions:
                text.stylize(colour, start, end)
        self.console.print(Text("“").append_text(text).append("”"))
        for line in str(why).splitlines():
            start = len(line.rstrip("+-…"))
            self._line(Text.assemble(line[:start], (line[start:], "green" if "+" in line[start:] else "red")))

    def _line(self, line: Text, overflow: Literal["ignore", "ellipsis"] = "ignore") -> None:
        """One line, whatever its length; or as much of it as there is room for."""
        line.rstrip()
        self.console.print(line, no_wrap=True, overflow=overflow, crop=overflow != "ignore")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2])
    except errors.BanburyError as problem:
        sys.exit(f"banbury demo: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
