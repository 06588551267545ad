"""Display: what all pictures have in common, with their colours, marks and names."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.model.naive_bayes import model_of

# Okabe and Ito's colours, which colour-blind readers can tell apart, the darkest first; yellow is too light for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A4FBF", "#888888")
LINES = ("-", "--", ":", "-.")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
FOR = COLOURS[0]  # evidence for a class, evidence against it, and their sum
AGAINST = COLOURS[1]
SUM = "#767676"
FAINT = "#BBBBBB"
FORMATS = (".png", ".svg")
LONGEST_NAME = 24  # characters
LETTERS_PER_INCH = 125  # letters of font size 1 per inch
MOST_LEGEND_LINES = 12  # in a column of a legend, which then is two inches high
STYLE: dict[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}


def text_colour() -> Any:
    """Returns the colour of text in the current style: dark on light, or light on dark."""
    return import_matplotlib().rcParams["text.color"]


class Display:
    """A picture. ``plot`` draws it, and ``save`` writes it to a file."""

    ax_: Any = None  # the axes, or an array of them, once the picture is drawn
    figure_: Any = None  # matplotlib's

    @classmethod
    def from_estimator(cls, estimator: Any, *rows: Any, **settings: Any) -> Self:
        """Draws the model of a fitted estimator. ``rows`` and ``settings``: all other arguments of ``from_model``.
        Raises an error for a picture that does not show a model.
        """
        draw_model: Any = getattr(cls, "from_model", None)
        if draw_model is None:
            raise errors.bad_setting("from_estimator", cls.__name__, "used with a picture of a model")
        return draw_model(model_of(estimator), *rows, **settings)  # type: ignore[no-any-return]

    def plot(self, ax: Any = None) -> Self:
        """Draws the picture, on ``ax`` if given, and returns the display."""
        with import_matplotlib().rc_context(STYLE):
            self._draw(ax)
            self._wrap()
        return self

    def _draw(self, ax: Any) -> None:
        """Draws the picture on ``ax``, or on new axes."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str], dpi: int = 100) -> Self:
        """Saves the picture to a file whose name ends with .png or .svg, and returns the display. ``dpi``: pixels per
        inch of a .png. Raises an error for another ending, or if the file cannot be written.
        """
        path = Path(path)
        if path.suffix.lower() not in FORMATS:
            raise errors.unknown_choice("the ending of a picture's file", path.suffix, FORMATS)
        if self.figure_ is None:
            self.plot()
        svg = path.suffix.lower() == ".svg"  # otherwise .png
        with import_matplotlib().rc_context({"svg.hashsalt": "banbury"}):  # the same picture is the same file
            try:
                self.figure_.savefig(path, dpi=dpi, metadata={"Date": None} if svg else None)
            except OSError as problem:
                raise errors.unwritable_file(path, problem.strerror or str(problem)) from None
        return self

    def _begin(self, ax: Any, width: float, height: float) -> Any:
        """Returns the axes to draw on: those given, or new ones of this size in inches. Stores them and the figure."""
        if ax is None:
            ax = import_matplotlib().pyplot.subplots(figsize=(width, height), layout="constrained")[1]
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax

    def _wrap(self) -> None:
        """Breaks titles and axis labels into lines that are no wider than the axes."""
        self.figure_.draw_without_rendering()  # settles the positions of the axes
        for ax in np.atleast_1d(self.ax_):
            # In inches; a position is a share of the figure.
            width = self.figure_.get_figwidth() * (ax.get_position().width or 1.0)
            ax.set_title(_fill_lines(ax.get_title("left"), width / STYLE["axes.titlesize"]))
            ax.set_xlabel(_fill_lines(ax.get_xlabel(), width / STYLE["axes.labelsize"]))


def _fill_lines(text: str, width: float) -> str:
    """Returns the text broken into lines at most ``width`` wide. ``width``: in inches, divided by the font size in
    points.
    """
    # In letters, at least 20.
    return "\n".join(textwrap.fill(line, max(int(LETTERS_PER_INCH * width), 20)) for line in text.splitlines())


def check_type(what: str, subject: Any, kind: type, expected: str) -> None:
    """Raises BadSetting unless ``subject`` has the type ``kind``. ``what``: what it is, such as "the model", and
    ``expected``: what it must be, for the message.
    """
    errors.require(isinstance(subject, kind), what, type(subject).__name__, expected)


def import_matplotlib() -> Any:
    """Imports matplotlib, or raises an error that says how to install it."""
    try:
        import matplotlib
        import matplotlib.pyplot
    except ImportError:
        text = "pictures need matplotlib, which is not installed. Install it with: pip install 'banbury[plots]'. "
        text += "Without it, models, explanations and results can still be printed."
        raise errors.MissingLibrary(text, library="matplotlib") from None
    return matplotlib


def logarithmic(ax: Any, multiples: tuple[float, ...], tick_format: str) -> None:
    """Makes the horizontal axis logarithmic with ticks at these multiples of powers of ten. ``tick_format``: the format
    of tick labels, as for ``format``.
    """
    ticker = import_matplotlib().ticker  # a module
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=multiples))
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda number, _: format(number, tick_format)))
    ax.xaxis.set_minor_locator(ticker.NullLocator())
    draw_level_lines(ax)


def legend_beside(ax: Any, handles: Sequence[Any] | None = None, title: str | None = None) -> None:
    """Adds a legend to the right of the axes, where it hides nothing. ``handles``: the drawn lines and marks that it
    lists; everything with a label unless given.

    Matplotlib's "best" location depends on how busy the machine is, because it gives up after a second with a warning.
    """
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    n_columns = -(-len(handles) // MOST_LEGEND_LINES)  # rounded up
    ax.legend(handles=handles, title=title, ncols=n_columns, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def draw_level_lines(ax: Any) -> None:
    """Draws pale grid lines behind everything else."""
    ax.grid(axis="y", color="#E5E5E5", linewidth=0.8)
    ax.set_axisbelow(True)


def colour(class_number: int) -> str:
    """Returns the colour of the class with this number; beyond eight classes colours repeat."""
    return COLOURS[class_number % len(COLOURS)]


def line_style(class_number: int) -> str:
    """Returns the line style of the class with this number; beyond eight classes colours repeat with other line styles."""
    return LINES[class_number // len(COLOURS) % len(LINES)]


def mark(class_number: int) -> str:
    """Returns the mark of the class with this number, which differs from that of the class of the same colour."""
    return MARKS[(class_number + class_number // len(COLOURS)) % len(MARKS)]


def short_name(label: Any, longest: int = LONGEST_NAME) -> str:
    """Returns a class, feature or value as a text of at most ``longest`` characters, cut at the end. What matplotlib
    would interpret is escaped ("$") or follows a space (a leading "_"), which may make the text a little longer.
    """
    text = f"{label:,.6g}" if isinstance(label, (float, np.floating)) else "missing" if label is None else str(label)
    text = "".join(character if character.isprintable() else " " for character in text)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def short_names(labels: Sequence[Any], longest: int = LONGEST_NAME) -> list[str]:
    """Returns a name of at most ``longest`` characters for each label: the beginnings of long ones or, if these are not
    distinct, their endings. Labels that differ only in the middle get equal names.
    """
    beginnings = [short_name(label, longest) for label in labels]
    if len(set(beginnings)) == len(beginnings):
        return beginnings
    return [
        text if len(str(label)) <= longest else "…" + short_name(str(label)[1 - longest :], longest)
        for text, label in zip(beginnings, labels, strict=True)
    ]


def format_decibans(weight: float) -> str:
    """Returns a weight of evidence in decibans as text with its sign and one decimal; "∞" if it is not a number."""
    if not np.isfinite(weight):
        return "∞" if np.isnan(weight) else "+∞" if weight > 0 else "−∞"
    return f"{weight:+.1f}".replace("-", "−") if abs(weight) >= 0.05 else "0.0"
