"""Messages as a shell's user meets them: keywords are options, and nothing in them moves the cursor."""

from __future__ import annotations

import ast
import re
import shlex
from argparse import Namespace

OPTIONS = (
    "against alpha beside bins by calibrate class_from class_prior classes_at comment costs delimiter features folds format "
    "groups headers how missing missing_values names quote repeats scoring seed share sizes skip_lines target "
    "target_delimiter text threads weigh weights"
)
_KEYWORD = re.compile(rf"(?<![\w.(,-])({OPTIONS.replace(' ', '|')})=(?:'([^']*)'|\"([^\"]*)\"|(\d+)|\[?\.\.\.\]?)?")
# What the library says to Python, and how it is said here.
PHRASES = {
    "header=False, or columns=[...]": "--no-header, or --names",
    "header=False": "--no-header",
    "header=True": "--header",
    "the columns with columns=": "the columns with --names",
    "bb.count(..., features=...)": "banbury tally count and --features",
    "bb.Text(min_count=..., max_words=...)": "--text min_count=... or --text max_words=...",
    "of bb.Text": "of --text",
    "bb.Bernoulli(threshold=...)": "--features COLUMN=bernoulli,threshold=...",
    "bb.Bernoulli(yes=...)": "--features COLUMN=bernoulli,yes=...",
    "bb.Histogram() or bb.KernelDensity()": "histogram or kernel_density",
    "bb.Histogram(start=..., width=...)": "--features COLUMN=histogram,start=...,width=...",
    " Count the other rows with network.count_more(rows), which keeps this network's structure and bins.": "",
    ", for instance with pandas.cut(...).astype(str)": "",
    "label must be one of the classes": "--class must be one of the classes",
    "Got None instead.": "It was not given.",
    "with bb.EvidenceClassifier()": "with banbury fit --weigh",
    "with bb.TANClassifier()": "with banbury fit --tan",
    "with bb.plots.shapes(model), or the evidence as it was counted: model.weighed(None)": "with banbury plot shapes",
}
# What only a verb that counts can do about a value.
OTHER_FAMILY = (
    "Fix the value, list it in missing_values=, or choose another family for the column in features=.",
    "Fix the value, or list it in missing_values=.",
)
# The library counts rows from 0, as Python does; --row counts from 1.
_ROW = re.compile(r"(?<=\brow )[\d,]+(?= of column )|(?<=the weight of row )[\d,]+|(?<=begins at row )[\d,]+")
_FAMILY = re.compile(r"features=\{(?:'([^']*)'|\.\.\.): (?:None|'(\w+)')\}")
_TOGETHER = re.compile(r"features=\{(\(.+\)): bb\.(\w+)\((?:(\w+)='(\w+)')?\)\}")
_SETTING = re.compile(rf"^({OPTIONS.replace(' ', '|')}) must be\b")


def printable(text: str) -> str:
    r"""The text with control characters spelt out, so that a name in the data cannot write over the terminal.

    >>> printable("no column '\x1b[2J' in a.csv")
    "no column '\\x1b[2J' in a.csv"
    """
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def for_the_shell(message: str, args: Namespace | None = None) -> str:
    """The message of the library, with its keywords as options, and with no name of a temporary file.

    >>> for_the_shell("Name the columns with columns= if the file has no header.")
    'Name the columns with --names if the file has no header.'
    >>> for_the_shell("Smooth with how='mean' to have the evidence weighed.")
    'Smooth with --how mean to have the evidence weighed.'
    >>> for_the_shell("row 0 of column 'x' in t.csv is 2, and a Bernoulli column holds 0 and 1.")
    "row 1 of column 'x' in t.csv is 2, and a Bernoulli column holds 0 and 1."
    >>> for_the_shell("Leave the column out with features={'job title': None}, or join its rare values first.")
    "Leave the column out with --features 'job title=none', or join its rare values first."
    >>> for_the_shell("how must be one of 'mle', 'map'. Got 'mpa' instead.")
    "--how must be one of 'mle', 'map'. Got 'mpa' instead."
    >>> for_the_shell("Model the two together with features={('a', 'b c'): bb.Gaussian(covariance='full')}.")
    "Model the two together with --features 'a+b c=gaussian,covariance=full'."
    """
    if args is not None and not hasattr(args, "features"):
        message = message.replace(*OTHER_FAMILY)
    spool = getattr(args, "spool", None)
    if spool:
        message = message.replace(spool, "standard input")
    if getattr(args, "threads", None) is not None:
        message = message.replace("BANBURY_THREADS", "--threads")
    message = _ROW.sub(lambda match: f"{int(match[0].replace(',', '')) + 1:,}", message)
    message = _FAMILY.sub(_family, message)
    message = _TOGETHER.sub(_together, message)
    for phrase, ours in PHRASES.items():
        message = message.replace(phrase, ours)
    return _SETTING.sub(lambda match: f"{_option(match)} must be", _KEYWORD.sub(_option, message))


def _option(match: re.Match[str]) -> str:
    value = (match[2] or match[3] or match[4]) if match.re is _KEYWORD else None
    return f"--{match[1].replace('_', '-')}" + (f" {shlex.quote(value)}" if value else "")


def _family(match: re.Match[str]) -> str:
    return "--features " + shlex.quote(f"{match[1] or 'COLUMN'}={match[2] or 'none'}")


def _together(match: re.Match[str]) -> str:
    setting = f",{match[3]}={match[4]}" if match[3] else ""
    return "--features " + shlex.quote(f"{'+'.join(ast.literal_eval(match[1]))}={match[2].lower()}{setting}")
