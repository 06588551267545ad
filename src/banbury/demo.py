"""The demo: which module of Python's library is a docstring from? The toolkit on real data, in about ten seconds."""

from __future__ import annotations

import ast
import os
import platform
import sys
import tempfile
import time
from io import TextIOWrapper
from pathlib import Path
from textwrap import dedent, fill
from typing import Any

from rich.console import Console  # noqa: TID253
from rich.text import Text  # noqa: TID253

from banbury import datasets, errors

PARAGRAPH_WIDTH = 80  # most characters of a line

# The title of each step, the statements that it runs, and a comment.
STEPS = [
    (
        "Count",
        """
        import banbury as bb
        docs = bb.datasets.docstrings()
        families = {"text": "text", "parameters": "poisson", "lines": "histogram"}
        tally = bb.count(docs, target="module", features=families)
        tally
        """,
        "One model covers every kind of column. We chose the families of three columns; Banbury chose the others, and left "
        "out the names because they are different in every row.",
    ),
    (
        "Validate",
        """
        text = bb.cross_validate(docs["text"], target=docs["module"], folds=5)
        plain = bb.cross_validate(docs, target="module", features=families, folds=5)
        tuned = bb.cross_validate(docs, target="module", features=families, folds=5,
                                  alpha="auto")
        text.accuracy, plain.accuracy, tuned.accuracy
        """,
        "The model had not seen the rows it was tested on, and yet nothing was counted twice: the tally of four folds is the "
        "tally of all rows minus the fifth fold, exactly. Tuning chooses alpha, the pseudo-count that keeps a new word from "
        "being impossible, and looks only at the four folds.",
    ),
    ("See what the model confuses", "tuned", "The last column shows what each module is most often mistaken for."),
    (
        "Explain an answer",
        """
        i = docs["name"].index("urllib.robotparser.RobotFileParser.read")
        row = {name: column[i] for name, column in docs.items()}
        row["text"]
        tuning = bb.tune(docs, target="module", features=families)
        tuning.best["alpha"]
        tuning.model.explain(row, held_out=True)
        """,
        "Evidence is measured in decibans: +3 doubles the odds, +10 multiplies them by ten. The prior and the pieces of "
        "evidence add up to the sum, and the sum is the answer. The row itself was taken out of the tally first.",
    ),
    (
        "Calibrate",
        """
        def quality(method):
            result = bb.cross_validate(docs, target="module", calibrate=method, folds=5,
                                       features=families, alpha=tuning.best["alpha"])
            return f"log loss {result.log_loss:.3f}, error {result.calibration_error:.3f}"
        quality(None)
        quality("temperature")
        quality("isotonic")
        """,
        "The log loss punishes confident mistakes. The error is how far the stated probabilities are, on average, from the "
        "share of correct answers. A temperature divides all evidence by one number; isotonic calibration fits a step "
        "function for each class. Which one is better depends on the data.",
    ),
    (
        "Forget",
        """
        def rows(keep):
            return {name: [value for value, module in zip(column, docs["module"])
                           if keep(module)] for name, column in docs.items()}
        gone = tally.count(rows(lambda module: module == "tarfile"))
        rest = tally - gone
        rest.n_rows, "tarfile" in rest.classes
        rest == tally.count(rows(lambda module: module != "tarfile"))
        rest + gone == tally
        posterior = bb.estimate(rest + gone).posterior(docs)
        bool((posterior == bb.estimate(tally).posterior(docs)).all())
        """,
        "After forgetting a module, the tally equals a tally that never counted it. After learning it back, every "
        "probability is the same to the last bit.",
    ),
    (
        "Save and report",
        """
        bb.save(tuning.model, MODEL)
        bb.load(MODEL).tally == tally
        report = bb.report(tuning.model, docs, target="module", path=REPORT)
        """,
        "You can send both files to other people. Loading the model does not run any code from the file, and the report "
        "opens in a browser:",
    ),
]

YOUR_OWN_DATA = """\
  $ banbury fit mail/ -o mail.banbury
  $ banbury fit orders.csv --target status -o orders.banbury
  $ banbury predict orders.banbury new-orders.csv
  $ banbury explain mail.banbury --text "free lunch at the meeting\""""


def main(folder: str | os.PathLike[str] = "banbury-demo") -> None:
    """Prints the tour, and leaves a model and a report in the folder.

    The figures depend on the version of Python, because its docstrings are the data.
    """
    start = time.monotonic()
    n_rows = len(datasets.docstrings()["text"])
    directory = _make_folder(folder)
    # By the name that stands for the path in the statements.
    files = {"MODEL": directory / "docstrings.banbury", "REPORT": directory / "report.html"}
    page = _Page()  # which prints
    page.say(
        f"Which module is a docstring from? Banbury learns the answer from {n_rows:,} docstrings of twelve modules of "
        f"Python {platform.python_version()}. Every figure is computed as you watch, and you can paste the code after "
        ">>> into Python."
    )
    for title, source, comment in STEPS:
        page.title(title)
        for name, path in files.items():
            source = source.replace(name, repr(str(path)))
        page.run(source)
        page.say(f"\n{comment}")
    for path in files.values():
        page.show(f"  {path}, {path.stat().st_size / 1000:,.0f} kB")
    page.title("Use your own data")
    page.say("All you need is a folder with a subfolder for each class, or a table with a column to predict:")
    page.show(YOUR_OWN_DATA, "cyan")
    page.say(f"\nThe tour took {time.monotonic() - start:.0f} seconds.")


def _make_folder(folder: str | os.PathLike[str]) -> Path:
    """Creates the folder if necessary and returns it. Raises BadFile if files cannot be written to it."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise errors.BadFile(
            f"cannot write into the folder {path}: {error.strerror or error}. Choose a writable folder.", path=str(path)
        ) from None


class _Page:
    """Prints the tour, in colour on a terminal."""

    def __init__(self) -> None:
        """Prepares stdout."""
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # for terminals that cannot print "±"
        self.console = Console(highlight=False, soft_wrap=True)
        # Characters of a line.
        self.width = min(self.console.width, PARAGRAPH_WIDTH) if self.console.is_terminal else PARAGRAPH_WIDTH
        self.n_titles = 0  # printed so far
        self.variables: dict[str, Any] = {}  # that the statements of the tour have set, by name

    def title(self, text: str) -> None:
        """Prints a heading with this text and the next number."""
        self.n_titles += 1
        line = f"{self.n_titles}  {text} "
        self.show(f"\n{line:─<{self.width}}", "bold")

    def say(self, text: str) -> None:
        """Prints a paragraph, broken into lines."""
        self.show("\n".join(fill(line, self.width) for line in text.split("\n")))

    def show(self, value: object, style: str = "") -> None:
        """Prints a value in a style of Rich, such as "bold"."""
        self.console.print(Text(str(value), style))

    def run(self, source: str) -> None:
        """Prints each statement of ``source`` after Python's prompt, runs it, and prints the value of an expression,
        unless it is None. Statements share ``self.variables``.
        """
        lines = dedent(source).strip().splitlines()
        for statement in ast.parse("\n".join(lines)).body:
            code = "\n... ".join(lines[statement.lineno - 1 : statement.end_lineno])
            self.show(f">>> {code}", "cyan")
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), "<demo>", "eval"), self.variables)
                if value is not None:
                    self.show(repr(value))
            else:
                exec(compile(ast.Module([statement], []), "<demo>", "exec"), self.variables)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2])
    except errors.BanburyError as problem:
        sys.exit(f"banbury demo: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
