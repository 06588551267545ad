"""Turns messages of the library into messages for the shell: keywords become options, control characters are escaped."""

from __future__ import annotations

import ast
import re
import shlex
from argparse import Namespace

OPTIONS = (
    "against alpha bins by calibrate class_from class_prior classes_at comment costs delimiter features folds format "
    "groups headers how missing missing_values names peer quote repeats scoring seed share sizes skip_lines target "
    "target_delimiter text threads weigh weights"
)
# The keyword, and its value: quoted in one of two ways, or a number.
_KEYWORD = re.compile(rf"(?<![\w.(,-])({OPTIONS.replace(' ', '|')})=(?:'([^']*)'|\"([^\"]*)\"|(\d+)|\[?\.\.\.\]?)?")
# Phrases for Python users, and the same for the shell.
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
# Advice for commands that count, and the shorter advice for others.
OTHER_FAMILY = (
    "Fix the value, list it in missing_values=, or choose another family for the column in features=.",
    "Fix the value, or list it in missing_values=.",
)
# The library counts rows from 0, as Python does; --row counts from 1.
_ROW = re.compile(r"(?<=\brow )[\d,]+(?= of column )|(?<=the weight of row )[\d,]+|(?<=begins at row )[\d,]+")
# The column and its family; the columns of a block with its family, a setting and its value; the name of a setting.
_FAMILY = re.compile(r"features=\{(?:'([^']*)'|\.\.\.): (?:None|'(\w+)')\}")
_BLOCK = re.compile(r"features=\{(\(.+\)): bb\.(\w+)\((?:(\w+)='(\w+)')?\)\}")
_SETTING = re.compile(rf"^({OPTIONS.replace(' ', '|')}) must be\b")


def printable(text: str) -> str:
    r"""Returns the text with control characters escaped, so that a name in the data cannot control the terminal.

    >>> printable("no column '\x1b[2J' in a.csv")
    "no column '\\x1b[2J' in a.csv"
    """
    return "".join(
        character if character.isprintable() or character in "\n\t" else repr(character)[1:-1] for character in text
    )


def for_the_shell(message: str, args: Namespace | None = None) -> str:
    """Returns the message with the library's keywords as options, rows numbered from 1, and without names of temporary
    files. ``args``: the options of the command, if they were parsed.

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
    temporary_path = getattr(args, "spool", None)  # of the file with standard input
    if temporary_path:
        message = message.replace(temporary_path, "standard input")
    if getattr(args, "threads", None) is not None:
        message = message.replace("BANBURY_THREADS", "--threads")
    message = _ROW.sub(lambda match: f"{int(match[0].replace(',', '')) + 1:,}", message)
    message = _FAMILY.sub(_family, message)
    message = _BLOCK.sub(_block, message)
    for phrase, shell_phrase in PHRASES.items():
        message = message.replace(phrase, shell_phrase)
    return _SETTING.sub(lambda match: f"{_option(match)} must be", _KEYWORD.sub(_option, message))


def _option(match: re.Match[str]) -> str:
    """Returns the option for a keyword that _KEYWORD or _SETTING has matched (group 1), with its value if there is one
    (group 2, 3 or 4 of _KEYWORD).
    """
    value = (match[2] or match[3] or match[4]) if match.re is _KEYWORD else None  # as text
    return f"--{match[1].replace('_', '-')}" + (f" {shlex.quote(value)}" if value else "")


def _family(match: re.Match[str]) -> str:
    """Returns the option for a matched ``features={column: family}``. Groups: the column and the family, None for any
    column and for no family.
    """
    return "--features " + shlex.quote(f"{match[1] or 'COLUMN'}={match[2] or 'none'}")


def _block(match: re.Match[str]) -> str:
    """Returns the option for a matched ``features={(columns): bb.Family(...)}``, a block of several columns. Groups:
    the tuple of columns as Python writes it, the family, and the name and value of a setting, if it has one.
    """
    setting = f",{match[3]}={match[4]}" if match[3] else ""
    return "--features " + shlex.quote(f"{'+'.join(ast.literal_eval(match[1]))}={match[2].lower()}{setting}")
