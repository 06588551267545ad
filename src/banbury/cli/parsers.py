"""What each verb takes, and its help. Nothing here imports the library."""

from __future__ import annotations

import argparse
import difflib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from banbury import __version__

WIDTH = 100
FILE = "what `banbury fit`, `count`, `merge`, `subtract` or `estimate` wrote"
INPUT = "a CSV, Parquet or NDJSON file, a folder with a sub-folder per class, a pattern in quotes, several files, or - for stdin"
AS_BEFORE = (
    "A model does not know how its data were read: give the same --format, --headers, --missing-values\n"
    "and --names here as there, or its answers and their score are those of another reading."
)


class Usage(Exception):
    """Arguments that say nothing a command can do."""


@dataclass(frozen=True)
class Verb:
    """A command: its place in the help, how it is called, an example to paste, its options, and the module of its function."""

    name: str
    group: str
    summary: str
    usage: str
    examples: Sequence[str]
    options: Callable[[argparse.ArgumentParser], None]
    module: str

    @property
    def function(self) -> str:
        return self.name.replace("-", "_")


def parsed(given: Sequence[str]) -> argparse.Namespace | None:
    """The arguments of a command; None when help or the version was asked for, and has been printed."""
    if not given or given[0] in ("--help", "-h", "help"):
        if len(given) > 1 and given[0] == "help":
            return parsed([given[1], "--help"])
        print(overview(), end="")
        return None
    if given[0] in ("--version", "-V"):
        print(f"banbury {__version__}")
        return None
    verb = next((verb for verb in VERBS if verb.name == given[0]), None)
    if verb is None:
        raise Usage(_unknown(given[0]))
    found = parser(verb).parse_args(_dashed(given[1:]))
    found.verb, found.module, found.function = verb.name, verb.module, verb.function
    return found


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, [verb.name for verb in VERBS], n=1)
    if near:
        return f"there is no command {name!r}. Did you mean: banbury {near[0]}"
    if name.startswith("-"):
        return f"there is no option {name!r} before a command. See: banbury --help"
    return f"there is no command {name!r}. The commands are {', '.join(verb.name for verb in VERBS)}."


def _dashed(given: Sequence[str]) -> list[str]:
    """Options may be written with underscores, as the library writes them."""
    return [_with_dashes(word) if word.startswith("--") else word for word in given]


def _with_dashes(word: str) -> str:
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


# Help ----------------------------------------------------------------------------------------------------------------


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Options as ``-o, --output FILE``, whichever Python formats them."""

    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH)
        super().__init__(prog, max_help_position=28, width=width)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {self._format_args(action, action.dest.upper())}"


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message}. See: {self.prog} --help")


def overview() -> str:
    lines = ["usage: banbury COMMAND [OPTIONS]", ""]
    lines += ["Naive Bayes for text, tables and both: learning is counting, and tallies add and subtract.", ""]
    for group in dict.fromkeys(verb.group for verb in VERBS):
        lines += [group, *(f"  {verb.name:15} {verb.summary}" for verb in VERBS if verb.group == group)]
    lines += ["", "examples:", "  banbury fit mail/ -o mail.banbury", "  banbury fit adult.csv --target income"]
    lines += ['  echo "cheap pills, free watches" | banbury predict mail.banbury -', ""]
    lines += [
        "`banbury COMMAND --help` lists the options of a command, with an example to paste. On a terminal the output is"
    ]
    lines += [
        "made for reading; piped it is JSON. Exit codes: 0 done, 1 the data says no, 2 wrong usage, 130 interrupted."
    ]
    return "\n".join(lines) + "\n"


def parser(verb: Verb) -> argparse.ArgumentParser:
    epilog = "\n".join(
        ["examples:" if len(verb.examples) > 1 else "example:", *(f"  {each}" for each in verb.examples)]
    )
    made = Parser(
        f"banbury {verb.name}",
        usage=f"banbury {verb.name} {verb.usage}",
        description=verb.summary,
        epilog=epilog,
        formatter_class=Formatter,
        allow_abbrev=False,
        add_help=False,
    )
    verb.options(made)
    general = made.add_argument_group("output and help")
    kinds = general.add_mutually_exclusive_group()
    kinds.add_argument("--json", dest="kind", action="store_const", const="json", help="print JSON, as when piped")
    kinds.add_argument("--csv", dest="kind", action="store_const", const="csv", help="print CSV")
    kinds.add_argument(
        "--table", dest="kind", action="store_const", const="table", help="print for reading, as on a terminal"
    )
    general.add_argument(
        "--threads", type=int, metavar="N", help="use so many threads; the answer does not depend on it"
    )
    general.add_argument("--debug", action="store_true", help="show the traceback of an error")
    general.add_argument("-h", "--help", action="help", help="show this help")
    return made


# Options that several verbs share ------------------------------------------------------------------------------------


def _input(made: argparse.ArgumentParser, nargs: str = "+") -> None:
    made.add_argument("input", nargs=nargs, metavar="INPUT", help=INPUT)


def _file(made: argparse.ArgumentParser, name: str = "model") -> None:
    made.add_argument(name, metavar=name.upper(), help=FILE)


def _output(made: argparse.ArgumentParser, required: bool = True) -> None:
    what = (
        "the file to write; it is replaced as a whole, or not at all" if required else "the file to keep the model in"
    )
    made.add_argument("-o", "--output", metavar="FILE", required=required, help=what)


def _counting(made: argparse.ArgumentParser, like: bool = False, choose: bool = False) -> None:
    group = made.add_argument_group("what is counted")
    group.add_argument(
        "--target", metavar="COLUMN", help="the column of the classes; of folders it is the sub-folder's name"
    )
    families = (
        "FAMILY for all columns, or COLUMN=FAMILY (repeat it), with settings as in age=histogram,bins=20; COLUMN=none "
    )
    families += (
        "leaves one out, A+B=FAMILY takes several together. Families: bernoulli, categorical, gaussian, poisson, "
    )
    families += (
        "histogram, kernel_density, text; together: joint, gaussian,covariance=full or tied, histogram, kernel_density"
    )
    families += "; or choose: by how likely they find rows they have not seen" if choose else ""
    group.add_argument("--features", metavar="FAMILY", action="append", default=[], help=families)
    text = "a setting of all columns of text (repeat it): ngrams=2, tokens=mail, stop_words=a,the, model=complement, min_count=2"
    group.add_argument("--text", metavar="KEY=VALUE", action="append", default=[], help=text)
    group.add_argument("--weights", metavar="COLUMN", help="the column of the rows' weights")
    group.add_argument(
        "--missing", metavar="HOW", default="skip", help="a missing word or flag: skip it (the default), or category"
    )
    if like:
        group.add_argument(
            "--like", metavar="FILE", help="count what this tally, model or network counted, to merge the two"
        )
    _reading(made)


def _reading(made: argparse.ArgumentParser, again: bool = False) -> None:
    group = made.add_argument_group("how it is read", AS_BEFORE if again else None)
    group.add_argument("--names", metavar="A,B,C", help="the names of the columns of a file that has no header")
    group.add_argument("--delimiter", metavar="C", help="what divides columns (found out if not given); tab for a tab")
    group.add_argument(
        "--missing-values",
        metavar="A,B",
        help="the texts that mean missing, in place of the usual ones (the empty one, NA, NaN, null, ?)",
    )
    form = "auto, csv or json of stdin; lines: each line is a text; text, mail or html: each file is one"
    group.add_argument("--format", metavar="FORMAT", default="auto", help=form)
    group.add_argument("--headers", metavar="NAMES", help="headers of mail to read: keep, drop, or names (subject)")


def _estimating(made: argparse.ArgumentParser, tuned: bool = False) -> None:
    group = made.add_argument_group("how it is estimated")
    group.add_argument("--how", metavar="HOW", default="mean", help="mle, map, mean (the default), predictive or gibbs")
    several = "; auto chooses it, as do several numbers: 0.1,1,10" if tuned else ""
    group.add_argument("--alpha", metavar="NUMBER", default="1", help=f"smoothing: 1 is add-one (the default){several}")
    prior = "uniform, a number α for (n + α) / (N + αC), or CLASS=P,CLASS=P (the frequencies)"
    group.add_argument("--class-prior", metavar="PRIOR", help=prior)
    group.add_argument("--seed", metavar="N", type=int, default=0, help="what random choices follow from (0)")


def _hold(group: Any) -> None:
    text = "hold rows in memory up to so many megabytes of input (256); read larger input twice instead"
    group.add_argument("--hold", metavar="MB", type=float, default=256.0, help=text)


# The verbs -----------------------------------------------------------------------------------------------------------


def _fit(made: argparse.ArgumentParser) -> None:
    _input(made)
    _output(made, required=False)
    _counting(made, choose=True)
    _estimating(made, tuned=True)
    group = made.add_argument_group("a tree in place of naive Bayes")
    group.add_argument(
        "--tan",
        action="store_true",
        help="let each column depend on one other beside the class, where that is beyond chance",
    )
    bins = "cut numbers into so many bins of about equal shares; or mdl, where the classes change (the default)"
    group.add_argument("--bins", metavar="N", help=bins)
    group = made.add_argument_group("how good it is")
    group.add_argument("--folds", metavar="K", default="10", help="cross-validate with so many folds (10)")
    group.add_argument("--no-cross-validate", dest="cross_validate", action="store_false", help="do without")
    group.add_argument(
        "--calibrate", metavar="METHOD", help="make probabilities honest: temperature, platt or isotonic"
    )
    _hold(group)


def _count(made: argparse.ArgumentParser) -> None:
    _input(made)
    _output(made)
    _counting(made, like=True)


def _merge(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "files", nargs="+", metavar="FILE", help="tallies, models or networks; what comes out is what the first is"
    )
    _output(made)


def _subtract(made: argparse.ArgumentParser) -> None:
    made.add_argument("files", nargs="+", metavar="FILE", help="a tally, model or network, and what to take out of it")
    _output(made)


def _estimate(made: argparse.ArgumentParser) -> None:
    _file(made, "tally")
    _output(made)
    _estimating(made)
    families = (
        "COLUMN=FAMILY with other settings of how it is estimated, such as age=gaussian,variance=shared (repeat it)"
    )
    made.add_argument("--features", metavar="FAMILY", action="append", default=[], help=families)
    text = "such a setting of all columns of text: model=complement, min_count=2, max_words=5000 (repeat it)"
    made.add_argument("--text", metavar="KEY=VALUE", action="append", default=[], help=text)


def _of(made: argparse.ArgumentParser) -> None:
    made.add_argument("--of", metavar="NODE", help="of a network: the node that is asked for (its target)")


def _predict(made: argparse.ArgumentParser) -> None:
    _file(made)
    _input(made)
    _of(made)
    made.add_argument(
        "--posteriors", action="store_true", help="the probability of every class, not of the answer alone"
    )
    costs = (
        "what it costs to answer PREDICTED where TRUE is right (1, and 0 when right; below 0 is a gain; repeat it): "
    )
    costs += "the cheapest answer is given"
    made.add_argument("--costs", metavar="TRUE:PREDICTED=N", action="append", default=[], help=costs)
    made.add_argument("--unsure", metavar="P", type=float, help="answer nothing where the probability is below this")
    _reading(made, again=True)


def _evaluate(made: argparse.ArgumentParser) -> None:
    _file(made)
    _input(made)
    made.add_argument("--target", metavar="COLUMN", help="the column of the true classes (the one the model learned)")
    _reading(made, again=True)


def _explain(made: argparse.ArgumentParser) -> None:
    _file(made)
    _input(made, "*")
    made.add_argument("--text", metavar="TEXT", help="explain this text instead of a row of INPUT")
    made.add_argument("--row", metavar="N", type=int, help="the row to explain; the first is 1, the default")
    made.add_argument("--against", metavar="CLASS", help="the class to weigh the answer against (the runner-up)")
    _of(made)
    _reading(made, again=True)


def _cross_validate(made: argparse.ArgumentParser) -> None:
    _input(made)
    made.add_argument(
        "--folds", metavar="K", default="10", help="how many folds (10), or loo to leave out one row at a time"
    )
    made.add_argument(
        "--groups", metavar="COLUMN", help="rows that share this column's value are never in different folds"
    )
    _counting(made, choose=True)
    _estimating(made, tuned=True)
    _hold(made)


def _learning_curve(made: argparse.ArgumentParser) -> None:
    _input(made)
    made.add_argument("--sizes", metavar="A,B,C", help="numbers of rows, or shares such as 0.5 (about ten sizes)")
    made.add_argument("--repeats", metavar="N", type=int, default=5, help="withhold so many times other rows (5)")
    made.add_argument(
        "--test", metavar="SHARE", type=float, default=1 / 3, help="the share of rows to withhold (a third)"
    )
    made.add_argument("--beside", metavar="LEARNER", help="have logistic_regression try the same rows")
    _counting(made)
    _estimating(made)


def _show(made: argparse.ArgumentParser) -> None:
    _file(made, "file")
    text = "of a model the N values that best tell each class from the rest, as likelihood ratios"
    made.add_argument("--informative", metavar="N", type=int, help=text)
    text = "only a SHA-256 of all that was counted: equal where tallies are, so that forgetting can be proved"
    made.add_argument("--digest", action="store_true", help=text)


def _report(made: argparse.ArgumentParser) -> None:
    _file(made)
    _input(made)
    made.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="report.html",
        help="the page to write (report.html), replaced as a whole",
    )
    made.add_argument("--target", metavar="COLUMN", help="the column of the true classes (the one the model learned)")
    made.add_argument("--weights", metavar="COLUMN", help="the column of the rows' weights")
    made.add_argument("--title", metavar="TEXT", help="what stands at the top of the page")
    made.add_argument("--folds", metavar="K", type=int, default=10, help="cross-validate with so many folds (10)")
    made.add_argument("--mistakes", metavar="N", type=int, default=10, help="show the N worst mistakes (10)")
    made.add_argument("--telling", metavar="N", type=int, default=10, help="name N telling values of each class (10)")
    made.add_argument("--seed", metavar="N", type=int, default=0, help="what random choices follow from (0)")
    _reading(made)


def _demo(made: argparse.ArgumentParser) -> None:
    text = "the folder to leave a model and a report in (banbury-demo)"
    made.add_argument("folder", nargs="?", metavar="FOLDER", default="banbury-demo", help=text)


LEARN, USE, LOOK = "learn", "use", "look"

VERBS = (
    Verb(
        "fit",
        LEARN,
        "Learn a model from labelled data, and say how good it is.",
        "INPUT... [--target COLUMN] [-o FILE] [OPTIONS]",
        [
            "banbury fit mail/ -o mail.banbury",
            "banbury fit adult.csv --target income -o adult.banbury",
            "banbury fit adult.csv --target income --tan -o tree.banbury",
        ],
        _fit,
        "learning",
    ),
    Verb(
        "count",
        LEARN,
        "Count labelled data into a tally, to be merged, subtracted and estimated from.",
        "INPUT... [--target COLUMN] -o FILE [OPTIONS]",
        [
            "banbury count january.csv --target churn -o january.banbury",
            "banbury count february.csv --like january.banbury -o february.banbury",
        ],
        _count,
        "learning",
    ),
    Verb(
        "merge",
        LEARN,
        "Add tallies up: the same as counting all their rows at once.",
        "FILE FILE... -o FILE",
        ["banbury merge january.banbury february.banbury -o winter.banbury"],
        _merge,
        "learning",
    ),
    Verb(
        "subtract",
        LEARN,
        "Take tallies out of another: the same as never having counted their rows.",
        "FILE FILE... -o FILE",
        ["banbury subtract winter.banbury january.banbury -o rest.banbury"],
        _subtract,
        "learning",
    ),
    Verb(
        "estimate",
        LEARN,
        "Make a model from a tally under any prior, without counting again.",
        "TALLY -o FILE [OPTIONS]",
        ["banbury estimate winter.banbury --how predictive --alpha 0.5 -o churn.banbury"],
        _estimate,
        "learning",
    ),
    Verb(
        "predict",
        USE,
        "Classify rows, files or lines of text.",
        "MODEL INPUT... [OPTIONS]",
        [
            "banbury predict adult.banbury new.csv --csv",
            'echo "cheap pills, free watches" | banbury predict mail.banbury -',
        ],
        _predict,
        "using",
    ),
    Verb(
        "explain",
        USE,
        "Say why a row gets its class: the weight of every piece of evidence, in decibans.",
        "MODEL [INPUT...] [--row N | --text TEXT] [OPTIONS]",
        [
            'banbury explain mail.banbury --text "free lunch at the meeting"',
            "banbury explain adult.banbury new.csv --row 17",
        ],
        _explain,
        "using",
    ),
    Verb(
        "evaluate",
        USE,
        "Score a saved model on labelled data that it has not learned from.",
        "MODEL INPUT... [--target COLUMN] [OPTIONS]",
        ["banbury evaluate adult.banbury test.csv"],
        _evaluate,
        "using",
    ),
    Verb(
        "cross-validate",
        LOOK,
        "Say how good a model of these data would be on rows it has not seen, exactly.",
        "INPUT... [--target COLUMN] [OPTIONS]",
        ["banbury cross-validate adult.csv --target income --folds 10"],
        _cross_validate,
        "looking",
    ),
    Verb(
        "learning-curve",
        LOOK,
        "Say how good it is after so many rows, on rows that are withheld.",
        "INPUT... [--target COLUMN] [OPTIONS]",
        ["banbury learning-curve adult.csv --target income --sizes 100,1000,10000"],
        _learning_curve,
        "looking",
    ),
    Verb(
        "show",
        LOOK,
        "Print what a file holds: schema, tally, model, network.",
        "FILE [--informative N | --digest]",
        ["banbury show adult.banbury --informative 5"],
        _show,
        "looking",
    ),
    Verb(
        "report",
        LOOK,
        "Write a web page about a model: what it is, how good it is, what it goes by, and where it errs.",
        "MODEL INPUT... [-o FILE] [OPTIONS]",
        ["banbury report adult.banbury adult.csv -o report.html"],
        _report,
        "looking",
    ),
    Verb(
        "demo",
        LOOK,
        "See it all at work on the docstrings of Python's own library; nothing is downloaded.",
        "[FOLDER]",
        ["banbury demo"],
        _demo,
        "looking",
    ),
)
