"""The commands, their options and their help, declared here and nowhere else. Nothing in this file imports the library.

A command is a text. Its first line has the group in the overview, the name, the module of ``banbury.cli`` that holds the
function, and a summary; the second shows how it is called. Then come examples to paste, after a ``$``, and one line for each
option: names, metavar and settings before the ``|``, help after it. ``# title`` begins a group of options, and lines after ``>``
describe it. ``usual:`` lists the options that ``--help`` shows; ``--help-all`` shows all of them.
Settings: ``=x`` is the default, ``!`` means required, ``...`` means repeatable; ``+``, ``*`` and ``?`` say how many words.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shutil
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from banbury import __version__

WIDTH = 100  # most characters of a line of help


class Usage(Exception):
    """The arguments do not make a valid command."""


class Verb(NamedTuple):
    """A command: where it stands in the help, which module holds it, how it is called, examples, and its options."""

    group: str  # in the overview
    name: str  # as it is typed, such as "tally count"
    module: str  # of banbury.cli
    summary: str
    usage: str  # how it is called, without its name
    examples: Sequence[str]  # to paste
    usual: frozenset[str]  # the options that --help shows, such as "--output"; empty for all
    options: Sequence[str]  # a line for each, as the module describes it

    @property
    def function(self) -> str:
        """The function in ``module`` that carries out the command: ``learning_curve``, or ``count`` of ``tally count``."""
        return self.name.split()[-1].replace("-", "_")


def parse(words: Sequence[str]) -> argparse.Namespace | None:
    """Parses ``words``, those of a command line, and returns the options with the command's name, module and function.
    Prints help or the version if asked, and then returns None. Raises Usage for anything invalid.
    """
    if words and words[0] == "help":
        words = [*words[1:], "--help"]
    if not words or words[0] in ("--help", "-h", "--help-all"):
        print(overview(), end="")
        return None
    if words[0] in ("--version", "-V"):
        print(f"banbury {__version__}")
        return None
    if words[0] == "tally" and (len(words) == 1 or words[1] in ("--help", "-h", "--help-all")):
        print(TALLY_OVERVIEW.format(verbs="\n".join(_summaries("tally"))), end="")
        return None
    # The declaration of the command that the first words name.
    verb = next((verb for verb in VERBS if verb.name.split() == list(words[: len(verb.name.split())])), None)
    if verb is None:
        raise _unknown_command(words)
    options = []  # the words after the command
    for word in words[len(verb.name.split()) :]:  # options may be written with underscores, as the library writes them
        name, equals, setting = word.partition("=")
        options.append(name.replace("_", "-") + equals + setting if word.startswith("--") else word)
    args = parser(verb, all_options="--help-all" in options).parse_args(options)
    args.verb = verb.name
    args.module = verb.module
    args.function = verb.function
    args.remembered = None  # how the data of a model were read, once it is loaded
    return args


def _unknown_command(words: Sequence[str]) -> Usage:
    """Returns the usage error of an unknown command, with a suggestion. ``words``: those of the command line."""
    typed = " ".join(words[:2]) if words[0] == "tally" else words[0]
    names = [verb.name for verb in VERBS]
    name_by_last_word = {name.split()[-1]: name for name in names}  # such as "merge": "tally merge"
    if matches := difflib.get_close_matches(words[-1] if words[0] == "tally" else typed, name_by_last_word, n=1):
        return Usage(f"unknown command {typed!r}. Did you mean: banbury {name_by_last_word[matches[0]]}")
    if typed.startswith("-"):
        return Usage(f"options go after the command, but {typed!r} comes before it. See: banbury --help")
    return Usage(f"unknown command {typed!r}. Commands: {', '.join(names)}.")


# Help ----------------------------------------------------------------------------------------------------------------


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Formats the help of a command, with options as ``-o, --output FILE``, whichever Python formats them."""

    def __init__(self, prog: str) -> None:
        """``prog``: the name of the command."""
        width = min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH)
        super().__init__(prog, max_help_position=28, width=width)  # characters

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Returns an option in the help: its names, then its metavar once. argparse, which calls this, would repeat the
        metavar after each name.
        """
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {self._format_args(action, action.dest.upper())}"


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are exceptions."""

    def error(self, message: str) -> NoReturn:
        """Raises Usage, where argparse would end the program."""
        raise Usage(f"{message}. See: {self.prog} --help")


def overview() -> str:
    """Returns what ``banbury --help`` prints."""
    groups = dict.fromkeys(verb.group for verb in VERBS if verb.group != "tally")  # their names, in order
    return OVERVIEW.format(verbs="\n".join(line for group in groups for line in (group, *_summaries(group))))


def _summaries(group: str) -> list[str]:
    """Returns a line with name and summary for each command of the group; the first group ends with ``banbury tally``."""
    lines = [f"  {verb.name:15} {verb.summary}" for verb in VERBS if verb.group == group]
    return [*lines, f"  {'tally':15} {TALLY_SUMMARY}"] if group == VERBS[0].group else lines


TALLY_SUMMARY = "Count, merge, subtract and estimate: tallies in files."
OVERVIEW = """\
usage: banbury COMMAND [OPTIONS]

Naive Bayes for text, tables and both: learning is counting, and tallies add and subtract.

{verbs}

examples:
  banbury fit mail/ -o mail.banbury
  banbury fit adult.csv --target income
  echo "cheap pills, free watches" | banbury predict mail.banbury -

`banbury COMMAND --help` lists the most used options of a command, with an example to paste; `--help-all` lists
all of them. The output is a table on a terminal and JSON in a pipe.
Exit codes: 0 success, 1 the data could not be processed, 2 wrong usage, 130 interrupted.
"""
TALLY_OVERVIEW = """\
usage: banbury tally COMMAND [OPTIONS]

A tally holds raw counts, without smoothing. Tallies add and subtract exactly, and a model can be made from any of them.

{verbs}

example:
  banbury tally count january.csv --target churn -o january.banbury
  banbury tally count february.csv --like january.banbury -o february.banbury
  banbury tally merge january.banbury february.banbury -o winter.banbury
  banbury tally estimate winter.banbury -o churn.banbury
"""


def parser(verb: Verb, all_options: bool = False) -> argparse.ArgumentParser:
    """Returns the argument parser of a command. It accepts all options. ``all_options``: whether its help shows all of
    them, or only the usual ones.
    """
    title = "examples:" if len(verb.examples) > 1 else "example:"
    command = f"banbury {verb.name}"
    epilog = "\n".join([title, *(f"  {example}" for example in verb.examples)])
    # Of argparse.
    settings: Any = {"formatter_class": Formatter, "allow_abbrev": False, "add_help": False}
    command_parser = Parser(
        command, usage=f"{command} {verb.usage}", description=verb.summary, epilog=epilog, **settings
    )
    options = command_parser.add_argument_group("options")  # the group of all options in the short help
    group: Any = command_parser  # to which the next option belongs in the long help
    for line in verb.options:
        if line.startswith(("# ", "> ")):
            if all_options and line.startswith("# "):
                group = command_parser.add_argument_group(line[2:])
            elif all_options:
                group.description = "\n".join(filter(None, [group.description, line[2:]]))
            continue
        # Whether the help shows this line even if it is no usual option, as it does positional arguments, without a dash.
        is_always_shown = all_options or not verb.usual or not line.startswith("-")
        target_group = group if all_options or not line.startswith("-") else options
        _add(target_group, line, visible=is_always_shown or not verb.usual.isdisjoint(line.partition(" | ")[0].split()))
    # The group for the options that every command has.
    general = command_parser.add_argument_group("output and help") if all_options else options
    format_group = general.add_mutually_exclusive_group()
    for output_format, text in KINDS.items():
        help_text = text if all_options or f"--{output_format}" in verb.usual else argparse.SUPPRESS
        format_group.add_argument(
            f"--{output_format}", dest="kind", action="store_const", const=output_format, help=help_text
        )
    for line in GENERAL.splitlines():
        _add(general, line, visible=all_options)
    general.add_argument("-h", "--help", action="help", help="show this help" if all_options else "show these options")
    general.add_argument("--help-all", action="help", help="show all options")
    return command_parser


def _add(group: Any, line: str, visible: bool = True) -> None:
    """Adds the option that ``line``, such as ``--bins N int | number of bins``, describes to ``group``, a group of
    options of argparse. ``visible``: whether the help shows it.
    """
    declaration, _, text = line.partition(" | ")  # text: the help
    tokens = declaration.split()  # names of the option, its metavar, its settings
    names = [token for token in tokens if token.startswith("-")] or tokens[:1]
    settings = tokens[len(names) :]  # the metavar, then settings; none for a flag
    if settings:
        keywords: dict[str, Any] = {"metavar": settings[0], **({"dest": "label"} if names == ["--class"] else {})}
        for token in settings[1:]:
            keywords |= SETTINGS.get(token) or ({"default": token[1:]} if token.startswith("=") else {"nargs": token})
    elif len(names) == 2:  # a flag and its opposite; without either the value is None
        keywords = {"action": argparse.BooleanOptionalAction}
        del names[1]
    else:
        # "no-" or None, and the name of the attribute.
        negation, dest = re.fullmatch("--(no-)?(.+)", names[0]).groups()  # type: ignore[union-attr]
        keywords = {"action": "store_false" if negation else "store_true", "dest": dest.replace("-", "_")}
    group.add_argument(*names, help=text if visible else argparse.SUPPRESS, **keywords)


SETTINGS: dict[str, dict[str, Any]] = {  # what each setting means to argparse
    "int": {"type": int},
    "float": {"type": float},
    "!": {"required": True},
    "...": {"action": "append", "default": []},
}
KINDS = {  # output formats with their help
    "json": "print JSON, the default in a pipe",
    "csv": "print CSV",
    "table": "print a table, the default on a terminal",
}
GENERAL = """\
--threads N int | number of threads; the answer does not depend on it
--debug | show the traceback of an error"""


# Options that several commands share ---------------------------------------------------------------------------------

INPUT = """\
input INPUT {} | a CSV, Parquet, NDJSON or ARFF file or a zip of one, a folder with a sub-folder per class, a \
quoted pattern, several files, or - for stdin"""
FILE = "{} {} | a file written by `banbury fit`, `tune` or `tally`"
INPUTS = INPUT.format("+")
MODEL = FILE.format("model", "MODEL")
OUTPUT = "-o --output FILE ! | the file to write; an existing file is replaced completely or not at all"
COUNTING = """\
# what is counted
--target COLUMN | the column with the classes, or last; in a folder, the names of the sub-folders are the classes{sets}
--features FAMILY ... | FAMILY for all columns, or COLUMN=FAMILY (repeatable), with settings as in age=histogram,bins=20; \
'soil_*=FAMILY' matches columns by name, COLUMN=none leaves a column out, A+B=FAMILY models columns jointly. \
Families: bernoulli, categorical, quantile_tree, gaussian, exponential, gamma, log_normal, poisson, histogram, kernel_density, \
text; for columns modelled jointly: joint, gaussian,covariance=full, tied or shrunk, histogram, kernel_density{choose}
--text KEY=VALUE ... | a setting for all text columns (repeatable): ngrams=2, tokens=mail, stop_words=a,the, \
model=complement, min_count=2{several}
--weights COLUMN | the column with the row weights
--missing HOW | how to treat a missing word or flag: skip it, or count it as a category (the default with weighed evidence)"""
SETS = """. A column of lists, or several flags A,B,C, gives each row a set of labels
--target-delimiter C | the character that separates labels in the target"""
CHOOSE = "; or choose, which picks the family that predicts held-out rows best"
READING = """\
# how it is read{before}
--names A,B,C | column names for a file without a header
--header --no-header | whether the file has a header; without one the columns are called 1, 2 and so on
--delimiter C | the column delimiter (detected by default); write tab for a tab
--quote C | the quotation mark ("), or none
--comment C | skip lines that begin with this character (none)
--skip-lines N int | skip the first N lines
--missing-values A,B | the values that mean missing, instead of the usual ones (an empty value, NA, N/A, n/a, NaN, \
nan, null, NULL, ?)
--format FORMAT | auto, csv or json for stdin; lines: each line is a text, and each of several files is a class; text, mail \
or html: each file is a text
--classes-at LEVEL int | the level of sub-folders whose names are the classes (1)
--class-from P=X,Q=Y | take the class from the file name: the first matching pattern decides
--headers NAMES | which mail headers to read with the text: keep, drop, or their names (subject); columns, or columns,subject, \
makes each header a column"""
READING_AGAIN = READING.format(
    before="""
> By default, data are read in the same way as the training data."""
)
WITHOUT_TEXT = "\n".join(
    line
    for line in f"{COUNTING.format(sets='', choose='', several='')}\n{READING.format(before='')}".splitlines()
    if not line.startswith("--text KEY=VALUE")
)
SEVERAL = "; with several values, as in model=multinomial,presence, the best is chosen"
COUNTED, COUNTED_OR_CHOSEN, TRIED = (
    f"{COUNTING.format(sets=sets, choose=choose, several=several)}\n{READING.format(before='')}"
    for sets, choose, several in (("", "", ""), (SETS, CHOOSE, ""), (SETS, CHOOSE, SEVERAL))
)
ESTIMATING = """\
# how it is estimated
--how HOW =mean | mle, map, mean (the default), predictive or gibbs{hows}
--alpha NUMBER ={alpha}{tuned}
--class-prior PRIOR | uniform, a number α for (n + α) / (N + αC), or CLASS=P,CLASS=P (the class frequencies by default)
--seed N int =0 | the seed of random choices (0)"""
ADD_ONE = "1 | smoothing: 1 is add-one (the default)"
ESTIMATED, TUNED = (
    ESTIMATING.format(hows="", alpha=ADD_ONE, tuned=t)
    for t in ("", "; auto, or a list such as 0.1,1,10, picks the best")
)
SEARCHED = ESTIMATING.format(
    hows=", or several: mean,predictive",
    alpha="auto",
    tuned=" | smoothing: a number, a list such as 0.1,1,10, or auto (the default), which tries 0.001 to 10 and the text models",
)
FOLDS = "--folds K | number of cross-validation folds (10; 3 from 2,000 rows on, unless --plain)"
WEIGH = """\
# how evidence is weighed
--weigh | learn weights for columns and pairs of columns, and corrections for single cells; by default \
the better of plain and weighed is kept
--plain | use plain naive Bayes"""
CALIBRATE = "--calibrate METHOD | calibrate probabilities: temperature, platt or isotonic"
GROUPS = "--groups COLUMN | keep rows that share a value of this column in the same fold"
HOLD = """\
--hold MB float =256 | hold up to this many megabytes of input in memory (256); larger input is read three times instead"""
TRUE_TARGET = "--target COLUMN | the column of the true classes, or last (the target of the model)"

# The commands --------------------------------------------------------------------------------------------------------


def _verb(text: str) -> Verb:
    """Returns the command that a text describes: group, name, module and summary; usage; then examples, usual options
    and option lines.
    """
    head, usage, *lines = text.strip().splitlines()
    examples = [line[2:] for line in lines if line.startswith("$ ")]
    usual_options = frozenset(name for line in lines if line.startswith("usual: ") for name in line.split()[1:])
    options = [line for line in lines if not line.startswith(("$ ", "usual: "))]
    group, name, module, summary = head.split(" | ")
    return Verb(group, name, module, summary, usage, examples, usual_options, options)


VERBS = tuple(
    map(
        _verb,
        f"""
learn | fit | fit | Learn a model from labelled data and estimate its accuracy.
INPUT... [--target COLUMN] [-o FILE] [OPTIONS]
$ banbury fit mail/ -o mail.banbury
$ banbury fit adult.csv --target income -o adult.banbury
$ banbury fit adult.csv --target income --tan -o tree.banbury
usual: --output --target --features --text --alpha --weigh --folds --calibrate
{INPUTS}
-o --output FILE | the file to save the model in
{COUNTED_OR_CHOSEN}
{TUNED}
{WEIGH}
# a tree instead of naive Bayes
--tan | let each column depend on one other column as well as the class, if the dependence is significant
--bins N | cut numbers into N bins of about equal size; or mdl, which cuts where the classes change (the default)
# how good it is
{FOLDS}
--no-cross-validate | skip cross-validation
{CALIBRATE}
{HOLD}

learn | tune | validate | Find the settings that predict held-out rows best, and save the model they make.
INPUT... [--target COLUMN] [-o FILE] [OPTIONS]
$ banbury tune mail/ --text model=multinomial,presence --text min_count=1,2,5 -o mail.banbury
$ banbury tune adult.csv --target income --features choose --how mean,predictive
usual: --output --target --features --text --how --alpha --scoring --folds
{INPUTS}
-o --output FILE | the file to save the best model in
# what is best
--scoring SCORE =log_loss | log_loss (the default), accuracy, brier or macro_f1
{FOLDS}
{GROUPS}
{CALIBRATE}, and score the calibrated model
--weigh | compare with weighed evidence even if the classes look like measurements
--plain | do not compare with weighed evidence
{TRIED}
{SEARCHED}

tally | tally count | tallies | Count labelled data into a tally.
INPUT... [--target COLUMN] -o FILE [OPTIONS]
$ banbury tally count january.csv --target churn -o january.banbury
$ banbury tally count february.csv --like january.banbury -o february.banbury
$ banbury tally count 'parts/*.parquet' --target churn --engine processes -o churn.banbury
usual: --output --target --features --text --weights --like --engine --names
{INPUTS}
{OUTPUT}
{COUNTING.format(sets=SETS, choose="", several="")}
--like FILE | use the schema of this tally, model or network, so that the two can be merged
# where it is counted
--engine ENGINE | count on processes of this machine or on a cluster: processes, dask://HOST:PORT, spark://HOST:PORT, \
sc://HOST:PORT (Spark Connect). Each file is a partition, and the tally is the same
{READING.format(before="")}

tally | tally merge | tallies | Add tallies, as if all their rows had been counted at once.
FILE FILE... -o FILE
$ banbury tally merge january.banbury february.banbury -o winter.banbury
files FILE + | tallies, models or networks; the output is the same kind as the first file
{OUTPUT}

tally | tally subtract | tallies | Subtract tallies from another, as if their rows had never been counted.
FILE FILE... -o FILE
$ banbury tally subtract winter.banbury january.banbury -o rest.banbury
files FILE + | a tally, model or network, and what to subtract from it
{OUTPUT}

tally | tally estimate | tallies | Make a model from a tally with any prior, without counting again.
TALLY -o FILE [OPTIONS]
$ banbury tally estimate winter.banbury --how predictive --alpha 0.5 -o churn.banbury
{FILE.format("tally", "TALLY")}
{OUTPUT}
--features FAMILY ... | COLUMN=FAMILY with different estimation settings, such as age=gaussian,variance=shared (repeatable)
--text KEY=VALUE ... | an estimation setting for all text columns: model=complement, min_count=2, max_words=5000 (repeatable)
{ESTIMATED}

use | predict | predict | Classify rows, files or lines of text.
MODEL INPUT... [OPTIONS]
$ banbury predict adult.banbury new.csv --csv
$ echo "cheap pills, free watches" | banbury predict mail.banbury -
usual: --posteriors --top --at-least-one --costs --unsure --format --names --csv
{MODEL}
{INPUTS}
--posteriors | print the probability of every class, not only of the predicted one
--top N int | for label sets: the N most probable labels, regardless of their thresholds
--at-least-one | for label sets: predict the most probable label if none is above its threshold
--costs TRUE:PREDICTED=N ... | the cost of predicting PREDICTED when TRUE is correct (default: 1, or 0 if correct; negative is \
a gain; repeatable): the cheapest class is predicted
--unsure P float | make no prediction if the probability is below P
{READING_AGAIN}

use | explain | predict | Explain the prediction for a row: the weight of every piece of evidence, in decibans.
MODEL [INPUT...] [--row N | --text TEXT] [OPTIONS]
$ banbury explain mail.banbury --text "free lunch at the meeting"
$ banbury explain adult.banbury new.csv --row 17
usual: --text --row --against --label --held-out --format --names --json
{MODEL}
{INPUT.format("*")}
--text TEXT | explain this text instead of a row of INPUT
--row N int | the row to explain; the first is 1, the default
--against CLASS | the class to compare with (the runner-up)
--label LABEL | for label sets: the label to explain (the most probable)
--held-out WHEN =auto | leave the row out of the model's counts: yes, no, or auto: yes if INPUT is the training data
{READING_AGAIN}

use | evaluate | validate | Score a saved model on labelled data that it was not trained on.
MODEL INPUT... [--target COLUMN] [OPTIONS]
$ banbury evaluate adult.banbury test.csv
usual: --target --names --header --delimiter --missing-values --format --class-from --json
{MODEL}
{INPUTS}
{TRUE_TARGET}
{READING_AGAIN}

use | export | export | Write a model for use elsewhere: SQL for a database, ONNX, or one page that needs no server.
MODEL -o FILE [OPTIONS]
$ banbury export adult.banbury -o score.sql --dialect duckdb --source people --key id
$ banbury export mail.banbury -o ask.html
model MODEL | a file written by `banbury fit`, `tune` or `tally estimate`
-o --output FILE ! | the file to write, which must not exist yet: .sql, .onnx or .html
--min-rows N int =0 | leave out values, intervals and words that occur in fewer than N rows
# for SQL
--dialect NAME | duckdb, postgres, sqlite or spark
--source TABLE | the table with the rows (rows)
--key COLUMN | the column that identifies a row; by default rows are numbered
--name NAME | the prefix of the names of tables and views (banbury)
--reasons | add a view with the three strongest pieces of evidence for each prediction

use | serve | serve | Predict, explain, learn and forget over HTTP; an acknowledged change is never lost.
[MODEL] [--state DIR] [OPTIONS]
$ banbury serve mail.banbury --state mail-state
$ banbury serve --state mail-state --verify
usual: --state --learned --refit --host --port --tokens --verify --compact
model MODEL ? | a file written by `banbury fit`, `tune` or `tally`; not needed if the state exists
--state DIR | the folder that stores what is learned: a log, snapshots and the initial model. Without it, nothing is learned
--learned INPUT | when creating a state, the rows that MODEL was trained on: they get the ids 0000001, 0000002 and so on, and \
can then be relabelled, forgotten and refitted like any other row
--refit N int | for weighed evidence: relearn the weights in the background after every N changes
--host HOST =127.0.0.1 | the address to listen on (127.0.0.1); any other address needs --tokens
--port PORT int =8000 | the port to listen on (8000); 0 picks a free port
--tokens FILE | who has access: a bearer token on each line, followed by read, learn or both
# limits
--max-body MB float =8 | the maximum size of a request (8)
--max-rows N int =1000 | the maximum number of rows per request (1000)
--max-requests N int =64 | the maximum number of concurrent requests (64)
# the state
--verify | recount all rows, compare the digests, and exit
--compact | discard the history except the last change of each row, and exit

use | label | label | Label rows by keyboard on a web page, the most informative first, and learn from each label.
INPUT... [--classes A,B] [--state DIR] [OPTIONS]
$ banbury label pool.csv --classes spam,ham --state labels
$ banbury label --state labels
usual: --classes --several --state --features --text --host --port --tokens
input INPUT * | rows without labels: a CSV, Parquet or NDJSON file, or a folder of texts; not needed if the state exists
--classes A,B | the classes to choose from; more can be added on the page
--several | a row can have several labels, or none
--state DIR =banbury-labels | the folder that stores what is learned (banbury-labels): a log, snapshots and the rows
--host HOST =127.0.0.1 | the address to listen on (127.0.0.1); any other address needs --tokens
--port PORT int =8000 | the port to listen on (8000); 0 picks a free port
--tokens FILE | who has access: a bearer token on each line, followed by read, learn or both
{COUNTED}

look | cross-validate | validate | Cross-validate exactly: estimate how well a model predicts rows it has not seen.
INPUT... [--target COLUMN] [OPTIONS]
$ banbury cross-validate adult.csv --target income --folds 10
usual: --target --folds --groups --features --text --alpha --weigh --calibrate
{INPUTS}
--folds K | number of folds (10; 3 from 2,000 rows on, unless --plain), or loo to leave out one row at a time
{GROUPS}
{CALIBRATE}
{HOLD}
{WEIGH}
{COUNTED_OR_CHOSEN}
{TUNED}

look | learning-curve | validate | Show how accuracy grows with the number of training rows, measured on held-out rows.
INPUT... [--target COLUMN] [OPTIONS]
$ banbury learning-curve adult.csv --target income --sizes 100,1000,10000
usual: --target --sizes --repeats --test --peer --features --weigh --alpha
{INPUTS}
--sizes A,B,C | numbers of training rows, or shares such as 0.5 (about ten sizes by default)
--repeats N int | how many times to repeat with different held-out rows (5; 1 with weighed evidence)
--test SHARE float ={1 / 3} | the share of rows to hold out (a third)
--peer LEARNER | also draw the curve of logistic_regression, on the same rows
{WEIGH}
{COUNTED}
{ESTIMATED}

look | diagnose | show | Find what limits naive Bayes: columns that repeat each other, and uninformative columns.
INPUT... [--target COLUMN] [OPTIONS]
$ banbury diagnose adult.csv --target income
usual: --target --n --features --text --weights --missing --names --format
{INPUTS}
--n N int =20 | how many pairs of columns, and words of a text, to list (20)
{COUNTED}

look | suspicious | labelling | Find rows whose labels look wrong to a model trained on all other rows.
INPUT... [--target COLUMN] [OPTIONS]
$ banbury suspicious mail/ --n 20
$ banbury suspicious adult.csv --target income --csv
usual: --target --n --by --groups --features --text --weigh --csv
{INPUTS}
--n N int =10 | how many rows to list, the most suspicious first (10)
--by MEASURE =margin | margin: how far the label trails the most probable other label (the default); \
self_confidence: how probable the label is
--groups COLUMN | a row is never judged by a model trained on rows that share its value of this column
{WEIGH}
{COUNTED}
{ESTIMATED}

look | next | labelling | Choose the unlabelled rows whose labels would help the model most.
MODEL INPUT... [OPTIONS]
$ banbury next mail.banbury unread.csv --n 20
$ banbury next adult.banbury half-labelled.csv --share 0.2 --csv
usual: --n --share --labelled --seed --format --names --csv --json
{MODEL}
{INPUTS}
--n N int =10 | how many rows to choose (10)
--share P float =0.1 | the share of these rows to choose at random (0.1), so that accuracy can be estimated
--labelled FILE | rows that already have a label; labelled rows in the input are recognised automatically
--seed N int =0 | the seed of random choices (0)
{READING_AGAIN}

look | show | show | Print the contents of a file: schema, tally, model or network.
FILE [--informative N | --digest]
$ banbury show adult.banbury --informative 5
{FILE.format("file", "FILE")}
--informative N int | for a model: the N values that best separate each class from the rest, as likelihood ratios
--digest | print only a SHA-256 of all counts: two digests are equal exactly when the tallies are, which proves forgetting

look | report | show | Write a web page about a model: its contents, its accuracy, its evidence and its mistakes.
MODEL INPUT... [-o FILE] [OPTIONS]
$ banbury report adult.banbury adult.csv -o report.html
usual: --output --target --title --folds --mistakes --informative --no-alternatives --weights
{MODEL}
{INPUTS}
-o --output FILE =report.html | the page to write (report.html)
{TRUE_TARGET}
--weights COLUMN | the column with the row weights
--title TEXT | the title of the page (the target and the data)
--no-alternatives | do not try other models on the same rows
--folds K int | number of cross-validation folds (as many as `fit` used)
--mistakes N int =10 | show the N worst mistakes (10)
--informative N int =10 | show the N most informative values of each class (10)
--seed N int =0 | the seed of random choices (0)
{READING_AGAIN}

look | plot | plot | Draw a picture by name, as PNG or SVG: evidence, likelihood, calibration, ...
PICTURE [MODEL] [INPUT...] [-o FILE] [OPTIONS] | --list
$ banbury plot --list
$ banbury plot evidence adult.banbury new.csv --row 3 -o evidence.png
$ banbury plot likelihood adult.banbury adult.csv --columns age -o age.svg
$ banbury plot learning-curve adult.csv --target income --weigh -o curve.png
usual: --list --output --columns --row --text --class --against --n
picture PICTURE ? | evidence, compared-evidence, likelihood, bandwidth, boundary, density, nomogram, calibration, confusion, \
labels, learning-curve, network or shapes
input INPUT * | the model or network file (none for learning-curve), then rows: a CSV, Parquet or NDJSON file, a folder \
with a sub-folder per class, a quoted pattern, several files, or - for stdin
--list | list the pictures, what each one shows and what it needs
-o --output FILE | the picture file to write, .png or .svg (PICTURE.png)
--dpi N int =100 | dots per inch of a PNG file (100)
# what is drawn
--columns A,B | the column to draw, or two columns
--row N int | the row to explain or to mark; the first is 1
--text TEXT | explain this text instead of a row of INPUT
--class CLASS | the class to draw (for a nomogram, the last class)
--against CLASS | the class to compare with (the runner-up)
--n N int | draw the N strongest columns, words or values
--shares | for confusion: shares of each class's rows instead of counts
--peer OTHER | for compared-evidence: another model; for learning-curve: logistic_regression
--sizes A,B,C | for learning-curve: numbers of training rows, or shares such as 0.5 (about ten sizes by default)
--weigh | for learning-curve: weigh the evidence of columns and pairs of columns
--plain | for learning-curve: use plain naive Bayes
{WITHOUT_TEXT}
{ESTIMATED}

look | demo | show | See everything at work on the docstrings of Python's standard library; nothing is downloaded.
[FOLDER]
$ banbury demo
$ banbury demo --page
folder FOLDER ? =banbury-demo | the folder for a model and a report (banbury-demo)
--page | serve the web page instead, with rows to classify, label and explore
--port PORT int =8000 | the port of the web page (8000); 0 picks a free port""".split("\n\n"),
    )
)
