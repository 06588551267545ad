"""The demo: docstrings of Python's own library, sorted by the module they are from. The main job, on real data, in seconds."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

import banbury as bb
from banbury import errors
from banbury.calibration import reliability

Docs = dict[str, list[Any]]
Real = NDArray[np.float64]

WIDTH = 80
FAMILIES = {"parameters": "poisson", "lines": "histogram"}
EXPLAINED = "urllib.robotparser.RobotFileParser.read"
FORGOTTEN = "tarfile"
ASKED = "tarfile.is_tarfile"


def main(folder: str | os.PathLike[str] = "banbury-demo") -> None:
    """Prints the tour, and leaves a model and a report in the folder.

    Figures depend on the version of Python, whose docstrings these are.
    """
    start = time.monotonic()
    docs = bb.datasets.docstrings()
    place = _made(folder)
    page = _Page()
    page.say("Which module of Python's standard library is a docstring from? Here is how Banbury learns to tell. ")
    tally = count(page, docs)
    tuned, found = validate(page, docs)
    confusion(page, found)
    explain(page, docs, tally, tuned.best["alpha"])
    classifier = calibrate(page, docs)
    forget(page, docs, tally, tuned.best["alpha"])
    keep(page, docs, tuned.model.calibrated(classifier.calibration_), place)
    your_own(page)
    page.say(f"\nAll this took {time.monotonic() - start:.0f} seconds, with the docstrings of Python {platform.python_version()}.")


# The steps ------------------------------------------------------------------------------------------------------------


def count(page: _Page, docs: Docs) -> bb.Tally:
    page.title("What was counted")
    page.code(
        """
        import banbury as bb
        docs = bb.datasets.docstrings()
        families = {"parameters": "poisson", "lines": "histogram"}
        tally = bb.count(docs, target="module", features=families)
        print(tally)
        """
    )
    tally = bb.count(docs, target="module", features=FAMILIES)
    page.result(str(tally))
    page.say(
        "One model for text, categories and numbers together. Texts, kinds and flags were known by their types. "
        "Two columns got another family by hand: a number of parameters is a small count, so Poisson; lines have a long "
        "tail that no bell curve fits, so a histogram. Words are runs of two or more letters or digits, in lower case. "
        "Names tell nothing about the next row, so they were left out."
    )
    return tally


def validate(page: _Page, docs: Docs) -> tuple[bb.Tuning, bb.CrossValidation]:
    page.title("How often it is right")
    page.code(
        """
        text = bb.cross_validate(docs["text"], target=docs["module"], folds=5)
        one = bb.cross_validate(docs, target="module", features=families, folds=5)
        auto = bb.cross_validate(docs, target="module", features=families, folds=5,
                                 alpha="auto")
        """
    )
    text = bb.cross_validate(docs["text"], target=docs["module"], folds=5)
    one = bb.cross_validate(docs, target="module", features=FAMILIES, folds=5)
    auto = bb.cross_validate(docs, target="module", features=FAMILIES, folds=5, alpha="auto")
    page.bars(
        [
            (f"always answer {_most_frequent(one)!r}", one.majority, ""),
            ("text alone, α = 1", float(text.accuracy), f"± {text.accuracy.error:.1%}"),
            ("all columns, α = 1", float(one.accuracy), f"± {one.accuracy.error:.1%}"),
            ('all columns, α = "auto"', float(auto.accuracy), f"± {auto.accuracy.error:.1%}"),
        ]
    )
    page.say(
        "Every row was judged by a model that had not seen it. That model is exact, and cheap: the tally of all rows "
        'minus the tally of a fifth. α is how many times each word is thought to have been seen before counting; "auto" '
        "chooses it anew within each four fifths. Of all rows it chooses:"
    )
    page.code(
        """
        tuned = bb.tune(docs, target="module", features=families)
        tuned.best["alpha"]
        """
    )
    tuned = bb.tune(docs, target="module", features=FAMILIES)
    page.result(str(tuned.best["alpha"]))
    return tuned, auto


def confusion(page: _Page, found: bb.CrossValidation) -> None:
    page.title("What it takes for what")
    page.code("auto.confusion")
    page.squares(found.confusion, found.labels.tolist())
    wrong = found.confusion.copy()
    np.fill_diagonal(wrong, 0)
    worst = np.argsort(-wrong, axis=None, kind="stable")[:3]
    pairs = [(found.labels[i // len(wrong)], found.labels[i % len(wrong)], wrong.flat[i]) for i in worst]
    told = ", ".join(f"{true} for {given} ({n} times)" for true, given, n in pairs)
    page.say(f"Down: where a docstring is from. Across: the answer. Most often it takes {told}.")


def explain(page: _Page, docs: Docs, tally: bb.Tally, alpha: float) -> None:
    page.title("Why: one docstring, word by word")
    page.code(
        f"""
        row = {{name: column[docs["name"].index("{EXPLAINED}")]
               for name, column in docs.items()}}
        unseen = tally - tally.count(row)
        bb.estimate(unseen, alpha=tuned.best["alpha"]).explain(row)
        """
    )
    row = _row(docs, EXPLAINED)
    why = bb.estimate(tally - tally.count(row), alpha=alpha).explain(row)
    page.evidence(why)
    page.say(
        "The model answers without ever having seen this row: it was subtracted. A deciban is a step of evidence: +3 "
        "doubles the odds, +10 makes them ten times as long. The prior and the pieces add up to the sum, which is the answer."
    )


def calibrate(page: _Page, docs: Docs) -> bb.NaiveBayesClassifier:
    page.title("Probabilities that mean what they say")
    page.code(
        """
        held_out = {name: column[::5] for name, column in docs.items()}
        learned = {name: [value for i, value in enumerate(column) if i % 5]
                   for name, column in docs.items()}
        modules, truth = learned.pop("module"), held_out.pop("module")
        clf = bb.NaiveBayesClassifier(families, alpha="auto", calibrate="temperature")
        after = clf.fit(learned, modules).predict_proba(held_out)
        before = clf.model_.calibrated(None).posterior(held_out)
        """
    )
    held_out = {name: column[::5] for name, column in docs.items()}
    learned = {name: [value for i, value in enumerate(column) if i % 5] for name, column in docs.items()}
    modules, truth = learned.pop("module"), held_out.pop("module")
    clf = bb.NaiveBayesClassifier(FAMILIES, alpha="auto", calibrate="temperature").fit(learned, modules)
    steps = bb.NaiveBayesClassifier(FAMILIES, alpha=clf.alpha_, calibrate="isotonic").fit(learned, modules)
    before, after = clf.model_.calibrated(None).posterior(held_out), clf.predict_proba(held_out)
    answers = clf.model_.labels.searchsorted(truth)
    page.measures(
        ["log loss", "calibration error"],
        [
            ("before", _honesty(before, answers)),
            (f"after: {clf.calibration_}", _honesty(after, answers)),
            ('after: calibrate="isotonic"', _honesty(steps.predict_proba(held_out), answers)),
        ],
    )
    page.say(
        f"Measured on every fifth row, {len(truth):,} of them, which nothing was learned from. Log loss is dear where it is sure and "
        "wrong; calibration error is how far what it claims is from how often it is right. Lower is better, and * marks the "
        "lowest. Naive Bayes is too sure of itself, most of all of its worst mistake here:"
    )
    sure = np.where(before.argmax(axis=1) == answers, 0.0, before.max(axis=1))
    worst = int(sure.argmax())
    page.quote(held_out["text"][worst])
    page.say(f"  {'truth':14}{truth[worst]}")
    page.say(f"  {'before':14}{_ranked(clf.model_.labels, before[worst])}")
    page.say(f"  {'after':14}{_ranked(clf.model_.labels, after[worst])}")
    return clf


def forget(page: _Page, docs: Docs, tally: bb.Tally, alpha: float) -> None:
    page.title("A module forgotten, and learned back")
    page.code(
        f"""
        rows = {{name: [value for value, module in zip(column, docs["module"])
                       if module == "{FORGOTTEN}"] for name, column in docs.items()}}
        part = tally.count(rows)
        without = tally - part
        without.n_rows, len(without.classes), "{FORGOTTEN}" in without.classes
        """
    )
    part = tally.count(_rows(docs, FORGOTTEN, True))
    without = tally - part
    page.result(str((without.n_rows, len(without.classes), FORGOTTEN in without.classes)))
    same = without == tally.count(_rows(docs, FORGOTTEN, False))
    page.say(f"The same as if the other modules had been counted alone? {same}. Asked where this is from, it said and says:")
    asked = _row(docs, ASKED)
    page.quote(asked["text"])
    for when, known in (("before", tally), ("forgotten", without), ("learned back", without + part)):
        model = bb.estimate(known, alpha=alpha)
        page.say(f"  {when:14}{_ranked(model.labels, model.posterior(asked)[0])}")
    page.code("without + part == tally")
    page.result(str(without + part == tally))


def keep(page: _Page, docs: Docs, model: bb.Model, place: Path) -> None:
    page.title("A model in a file, and a report")
    file, sheet = place / "docstrings.banbury", place / "report.html"
    page.code(
        f"""
        model = tuned.model.calibrated(clf.calibration_)
        bb.save(model, {str(file)!r})
        bb.report(model, docs, target="module", path={str(sheet)!r})
        """
    )
    bb.save(model, file)
    report(model, docs, sheet)
    for path, what in ((file, "loading it runs nothing that is in it"), (sheet, "open it in a browser")):
        page.say(f"{path}  ({path.stat().st_size / 1000:,.0f} kB): {what}")


def report(model: bb.Model, docs: Docs, path: Path) -> None:
    bb.report(model, docs, target="module", path=path)


def your_own(page: _Page) -> None:
    page.title("The same with your own data")
    page.say("A folder with a sub-folder for each class, or a table with a column to predict:")
    page.shell(
        """
        banbury fit mail/ -o mail.banbury
        banbury fit orders.csv --target status -o orders.banbury
        banbury predict orders.banbury new-orders.csv
        banbury explain orders.banbury new-orders.csv
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
        raise errors.unwritable_folder(place, problem.strerror or str(problem)) from None


def _row(docs: Docs, name: str) -> dict[str, Any]:
    i = docs["name"].index(name)
    return {column: values[i] for column, values in docs.items()}


def _rows(docs: Docs, module: str, wanted: bool) -> Docs:
    """The rows of a module, or of all others."""
    chosen = [(one == module) == wanted for one in docs["module"]]
    return {name: list(compress(column, chosen)) for name, column in docs.items()}


def _most_frequent(found: bb.CrossValidation) -> Any:
    return found.classes[int(found.confusion.sum(axis=1).argmax())]


def _honesty(posteriors: Real, truth: NDArray[np.int64]) -> list[float]:
    """Log loss and calibration error."""
    from sklearn.metrics import log_loss

    return [float(log_loss(truth, posteriors, labels=range(posteriors.shape[1]))), reliability(posteriors, truth).error]


def _ranked(labels: NDArray[Any], posterior: Real, most: int = 3) -> str:
    best = np.argsort(-posterior, kind="stable")[:most]
    return "   ".join(f"{labels[c]} {posterior[c]:.1%}" for c in best)


# How it is printed ----------------------------------------------------------------------------------------------------


class _Page:
    """Rich on a terminal; where it is piped the same words without colour, 80 columns wide."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=False)
        self.console.width = min(self.console.width, WIDTH) if self.console.is_terminal else WIDTH
        self.n_titles = 0

    def title(self, text: str) -> None:
        self.n_titles += 1
        self.console.print()
        self.console.print(Rule(Text(f"{self.n_titles}  {text}", "bold"), align="left", style="dim"))

    def say(self, text: str) -> None:
        self.console.print(Text(text))

    def result(self, text: str) -> None:
        """What Python answers, as it is."""
        self.console.print(Text(text), no_wrap=True, overflow="ignore", crop=False)

    def code(self, source: str) -> None:
        """Lines to paste into Python."""
        lines = dedent(source).strip().splitlines()
        for line in lines:
            prompt = "... " if line.startswith((" ", ")")) else ">>> "
            self.console.print(Text.assemble((prompt, "dim"), (line, "cyan")), no_wrap=True, overflow="ignore", crop=False)

    def shell(self, source: str, prompt: str = "$ ") -> None:
        """Lines to paste into a terminal."""
        for line in dedent(source).strip().splitlines():
            self.console.print(Text.assemble("  ", (prompt, "dim"), (line, "cyan")))

    def quote(self, text: str) -> None:
        """A docstring's first paragraph, on one line if it fits."""
        self.console.print(Text(f"“{_paragraph(text)}”", "italic"))

    def bars(self, rows: Sequence[tuple[str, float, str]]) -> None:
        """Shares, drawn."""
        width = max(len(name) for name, _, _ in rows)
        for name, share, error in rows:
            bar = ("█" * round(30 * share), "green")
            self.console.print(Text.assemble(f"  {name:{width}}  {share:6.1%} {error:7}  ", bar))

    def squares(self, table: NDArray[Any], names: Sequence[str]) -> None:
        """A square table of counts: what is right in green, what is wrong in red, and the share that is right."""
        width = max(map(len, names))
        head = "".join(f" {name[:4]:>4}" for name in names)
        self.console.print(Text(f"{'':{width}}{head}  hit", "dim"))
        for i, (name, row) in enumerate(zip(names, table, strict=True)):
            line = Text(f"{name:{width}}")
            for j, n in enumerate(row):
                line.append(f" {n or '·':>4}", "bold green" if i == j else "red" if n else "dim")
            share = row[i] / row.sum()
            self.console.print(line.append(f" {share:4.0%}", "dim"), no_wrap=True, crop=False)

    def measures(self, names: Sequence[str], rows: Sequence[tuple[str, list[float]]]) -> None:
        """Numbers under their names; the lowest of each is marked."""
        width = max(len(name) for name, _ in rows)
        lowest = [min(values) for values in zip(*(values for _, values in rows), strict=True)]
        self.console.print(Text(f"  {'':{width}}" + "".join(f"  {name:>17} " for name in names), "dim"))
        for name, values in rows:
            line = Text(f"  {name:{width}}")
            for value, low in zip(values, lowest, strict=True):
                line.append(f"  {value:17.3f}{'*' if value == low else ' '}", "bold green" if value == low else "")
            self.console.print(line)

    def evidence(self, why: bb.Explanation) -> None:
        """The text with its words coloured by what they say, and the explanation."""
        text = Text(why.texts["text"])
        for piece in why.evidence:
            for start, end in piece.positions:
                text.stylize(_colour(piece.decibans), start, end)
        self.console.print(Text("“").append_text(text).append("”"))
        for line in str(why).splitlines():
            self.console.print(Text(line, {"+": "green", "-": "red"}.get(line[-1:], "")), no_wrap=True, crop=False)


def _colour(decibans: float) -> str:
    strong = "bold " if abs(decibans) >= 3 else ""
    return strong + ("green" if decibans > 0 else "red")


def _paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2])
    except errors.BanburyError as problem:
        sys.exit(f"banbury demo: {problem}")
