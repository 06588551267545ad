"""What each verb takes, and its help. Nothing here imports the library.

A verb is a text: its group, name and summary; how it is called; examples to paste, after a $; and a line for each option, its
names, metavar and settings before the |, its help after it. ``# title`` begins a group of options, and lines after > describe it.
Of the settings ``=x`` is the default, ``!`` must be given, ``...`` may be repeated; ``+``, ``*`` and ``?``: how many words.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shutil
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from banbury import __version__

WIDTH = 100


class Usage(Exception):
    """Arguments that say nothing a command can do."""


class Verb(NamedTuple):
    """A command: its place in the help, what it does, how it is called, examples to paste, and its options as a text."""

    group: str
    name: str
    summary: str
    usage: str
    examples: Sequence[str]
    options: Sequence[str]


def parsed(words: Sequence[str]) -> argparse.Namespace | None:
    """The arguments of a command; None when help or the version was asked for, and has been printed."""
    if not words or words[0] in ("--help", "-h", "help"):
        if len(words) > 1 and words[0] == "help":
            return parsed([words[1], "--help"])
        print(overview(), end="")
        return None
    if words[0] in ("--version", "-V"):
        print(f"banbury {__version__}")
        return None
    verb = next((verb for verb in VERBS if verb.name == words[0]), None)
    if verb is None:
        names = [verb.name for verb in VERBS]
        if near := difflib.get_close_matches(words[0], names, n=1):
            raise Usage(f"there is no command {words[0]!r}. Did you mean: banbury {near[0]}")
        if words[0].startswith("-"):
            raise Usage(f"there is no option {words[0]!r} before a command. See: banbury --help")
        raise Usage(f"there is no command {words[0]!r}. The commands are {', '.join(names)}.")
    said = []
    for word in words[1:]:  # options may be written with underscores, as the library writes them
        name, equals, value = word.partition("=")
        said.append(name.replace("_", "-") + equals + value if word.startswith("--") else word)
    args = parser(verb).parse_args(said)
    args.verb, args.function = verb.name, verb.name.replace("-", "_")
    args.remembered = None  # how the data of a model were read, once it is loaded
    args.module = next(module for module, names in MODULES.items() if verb.name in names.split())
    return args


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
    groups = dict.fromkeys(verb.group for verb in VERBS)
    verbs = {group: [f"  {v.name:15} {v.summary}" for v in VERBS if v.group == group] for group in groups}
    return OVERVIEW.format(verbs="\n".join(line for group in groups for line in (group, *verbs[group])))


OVERVIEW = """\
usage: banbury COMMAND [OPTIONS]

Naive Bayes for text, tables and both: learning is counting, and tallies add and subtract.

{verbs}

examples:
  banbury fit mail/ -o mail.banbury
  banbury fit adult.csv --target income
  echo "cheap pills, free watches" | banbury predict mail.banbury -

`banbury COMMAND --help` lists the options of a command, with an example to paste. On a terminal the output is
made for reading; piped it is JSON. Exit codes: 0 done, 1 the data says no, 2 wrong usage, 130 interrupted.
"""


def parser(verb: Verb) -> argparse.ArgumentParser:
    examples = ["examples:" if len(verb.examples) > 1 else "example:", *(f"  {each}" for each in verb.examples)]
    called = f"banbury {verb.name}"
    epilog = "\n".join(examples)
    ways: Any = {"formatter_class": Formatter, "allow_abbrev": False, "add_help": False}
    made = Parser(called, usage=f"{called} {verb.usage}", description=verb.summary, epilog=epilog, **ways)
    group: Any = made
    for line in verb.options:
        if line.startswith("# "):
            group = made.add_argument_group(line[2:])
        elif line.startswith("> "):
            group.description = "\n".join(filter(None, [group.description, line[2:]]))
        else:
            _add(group, line)
    general = made.add_argument_group("output and help")
    kinds = general.add_mutually_exclusive_group()
    for kind, text in KINDS.items():
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=text)
    for line in GENERAL.splitlines():
        _add(general, line)
    general.add_argument("-h", "--help", action="help", help="show this help")
    return made


def _add(group: Any, line: str) -> None:
    """An option, or what stands without a name, as a line describes it."""
    said, _, text = line.partition(" | ")
    words = said.split()
    names = [word for word in words if word.startswith("-")] or words[:1]
    settings = words[len(names) :]
    if settings:
        made: dict[str, Any] = {"metavar": settings[0], **({"dest": "label"} if names == ["--class"] else {})}
        for word in settings[1:]:
            made |= SETTINGS.get(word) or ({"default": word[1:]} if word.startswith("=") else {"nargs": word})
    elif len(names) == 2:  # a flag and its opposite, neither of which may be said
        made = {"action": argparse.BooleanOptionalAction}
        del names[1]
    else:
        no, dest = re.fullmatch("--(no-)?(.+)", names[0]).groups()  # type: ignore[union-attr]
        made = {"action": "store_false" if no else "store_true", "dest": dest.replace("-", "_")}
    group.add_argument(*names, help=text, **made)


SETTINGS: dict[str, dict[str, Any]] = {
    "int": {"type": int},
    "float": {"type": float},
    "!": {"required": True},
    "...": {"action": "append", "default": []},
}
KINDS = {"json": "print JSON, as when piped", "csv": "print CSV", "table": "print for reading, as on a terminal"}
GENERAL = """\
--threads N int | use so many threads; the answer does not depend on it
--debug | show the traceback of an error"""


# Options that several verbs share ------------------------------------------------------------------------------------

INPUT = """\
input INPUT {} | a CSV, Parquet, NDJSON or ARFF file or a zip of one, a folder with a sub-folder per class, a \
pattern in quotes, several files, or - for stdin"""
FILE = "{} {} | what `banbury fit`, `count`, `merge`, `subtract` or `estimate` wrote"
INPUTS = INPUT.format("+")
MODEL = FILE.format("model", "MODEL")
OUTPUT = "-o --output FILE ! | the file to write; it is replaced as a whole, or not at all"
COUNTING = """\
# what is counted
--target COLUMN | the column of the classes, or last; of folders it is the sub-folder's name{sets}
--features FAMILY ... | FAMILY for all columns, or COLUMN=FAMILY (repeat it), with settings as in age=histogram,bins=20; \
'soil_*=FAMILY' is for all columns named so, COLUMN=none leaves one out, A+B=FAMILY takes several together. \
Families: bernoulli, categorical, quantile_tree, gaussian, exponential, gamma, log_normal, poisson, histogram, kernel_density, \
text; together: joint, gaussian,covariance=full, tied or shrunk, histogram, kernel_density{choose}
--text KEY=VALUE ... | a setting of all columns of text (repeat it): ngrams=2, tokens=mail, stop_words=a,the, \
model=complement, min_count=2{several}
--weights COLUMN | the column of the rows' weights
--missing HOW | a missing word or flag: skip it, or category (the default where evidence is weighed)"""
SETS = """. A column of lists, or A,B,C of flags, are sets of labels
--target-delimiter C | what divides labels in the target, of which a row may have several"""
CHOOSE = "; or choose: by how well they tell the classes of rows they have not seen"
READING = """\
# how it is read{before}
--names A,B,C | the names of the columns of a file that has no header
--header --no-header | the file has a header, or none: its columns are then 1, 2 and so on
--delimiter C | what divides columns (found out if not given); tab for a tab
--quote C | what quotes texts ("), or none
--comment C | pass over lines that begin with this character (none)
--skip-lines N int | pass over the first N lines
--missing-values A,B | the texts that mean missing, in place of the usual ones (the empty one, NA, N/A, n/a, NaN, \
nan, null, NULL, ?)
--format FORMAT | auto, csv or json of stdin; lines: each line is a text, and each of several files a class; text, mail \
or html: each file is one
--classes-at LEVEL int | which level of folders names the classes (1)
--class-from P=X,Q=Y | the classes of files by their names: the first pattern that fits
--headers NAMES | headers of mail to read with its text: keep, drop, or names (subject); columns, or columns,subject,from, \
makes a column of each"""
READING_AGAIN = READING.format(
    before="""
> What is not said here is as it was said of the data that the model was counted from."""
)
WITHOUT_TEXT = "\n".join(
    line
    for line in f"{COUNTING.format(sets='', choose='', several='')}\n{READING.format(before='')}".splitlines()
    if not line.startswith("--text KEY=VALUE")
)
SEVERAL = "; of several, as in model=multinomial,presence, the best is found"
COUNTED, COUNTED_OR_CHOSEN, TRIED = (
    f"{COUNTING.format(sets=sets, choose=choose, several=several)}\n{READING.format(before='')}"
    for sets, choose, several in (("", "", ""), (SETS, CHOOSE, ""), (SETS, CHOOSE, SEVERAL))
)
ESTIMATING = """\
# how it is estimated
--how HOW =mean | mle, map, mean (the default), predictive or gibbs{hows}
--alpha NUMBER ={alpha}{tuned}
--class-prior PRIOR | uniform, a number α for (n + α) / (N + αC), or CLASS=P,CLASS=P (the frequencies)
--seed N int =0 | what random choices follow from (0)"""
ADD_ONE = "1 | smoothing: 1 is add-one (the default)"
ESTIMATED, TUNED = (
    ESTIMATING.format(hows="", alpha=ADD_ONE, tuned=t)
    for t in ("", "; auto chooses it, as do several numbers: 0.1,1,10")
)
SEARCHED = ESTIMATING.format(
    hows=", or several: mean,predictive",
    alpha="auto",
    tuned=" | smoothing: a number, several such as 0.1,1,10, or auto (the default): 0.001 to 10, and models of texts",
)
FOLDS = "--folds K | cross-validate with so many folds (10; 3 from 2,000 rows on, unless --plain)"
WEIGH = """\
# what the evidence of columns is worth
--weigh | weigh it: columns, pairs of them, and what cells get wrong; if not said, the better is kept
--plain | leave it as it is counted"""
CALIBRATE = "--calibrate METHOD | make probabilities honest: temperature, platt or isotonic"
GROUPS = "--groups COLUMN | rows that share this column's value are never in different folds"
HOLD = """\
--hold MB float =256 | hold rows in memory up to so many megabytes of input (256); read larger input three times instead"""
TRUE_TARGET = "--target COLUMN | the column of the true classes, or last (the one the model learned)"

# The verbs -----------------------------------------------------------------------------------------------------------


def _verb(text: str) -> Verb:
    first, usage, *lines = text.strip().splitlines()
    examples = [line[2:] for line in lines if line.startswith("$ ")]
    return Verb(*first.split(" | "), usage, examples, lines[len(examples) :])  # type: ignore[call-arg]


MODULES = {  # in banbury.cli, and the verbs they hold
    "fit": "fit",
    "tallies": "count merge subtract estimate",
    "predict": "predict explain",
    "validate": "tune evaluate cross-validate learning-curve",
    "plot": "plot",
    "show": "diagnose show report demo",
    "labelling": "suspicious next",
    "export": "export",
    "serve": "serve",
    "label": "label",
}
VERBS = (
    _verb(f"""
learn | fit | Learn a model from labelled data, and say how good it is.
INPUT... [--target COLUMN] [-o FILE] [OPTIONS]
$ banbury fit mail/ -o mail.banbury
$ banbury fit adult.csv --target income -o adult.banbury
$ banbury fit adult.csv --target income --tan -o tree.banbury
{INPUTS}
-o --output FILE | the file to keep the model in
{COUNTED_OR_CHOSEN}
{TUNED}
{WEIGH}
# a tree in place of naive Bayes
--tan | let each column depend on one other beside the class, where that is beyond chance
--bins N | cut numbers into so many bins of about equal shares; or mdl, where the classes change (the default)
# how good it is
{FOLDS}
--no-cross-validate | do without
{CALIBRATE}
{HOLD}"""),
    _verb(f"""
learn | tune | Find the settings that say most of rows they have not seen, and keep the model they make.
INPUT... [--target COLUMN] [-o FILE] [OPTIONS]
$ banbury tune mail/ --text model=multinomial,presence --text min_count=1,2,5 -o mail.banbury
$ banbury tune adult.csv --target income --features choose --how mean,predictive
{INPUTS}
-o --output FILE | the file to keep the best model in
# what is best
--scoring SCORE =log_loss | log_loss (the default), accuracy, brier or macro_f1
{FOLDS}
{GROUPS}
{CALIBRATE}, and judge settings by what is calibrated
--weigh | compare with weighed evidence even where the classes look like measured numbers
--plain | do not compare with weighed evidence
{TRIED}
{SEARCHED}"""),
    _verb(f"""
learn | count | Count labelled data into a tally, to be merged, subtracted and estimated from.
INPUT... [--target COLUMN] -o FILE [OPTIONS]
$ banbury count january.csv --target churn -o january.banbury
$ banbury count february.csv --like january.banbury -o february.banbury
$ banbury count 'parts/*.parquet' --target churn --engine processes -o churn.banbury
{INPUTS}
{OUTPUT}
{COUNTING.format(sets=SETS, choose="", several="")}
--like FILE | count what this tally, model or network counted, to merge the two
# where it is counted
--engine ENGINE | on processes of this machine, or on a cluster: processes, dask://HOST:PORT, spark://HOST:PORT, sc://HOST:PORT \
(Spark Connect). Each file is a part, and the tally is the same
{READING.format(before="")}"""),
    _verb(f"""
learn | merge | Add tallies up: the same as counting all their rows at once.
FILE FILE... -o FILE
$ banbury merge january.banbury february.banbury -o winter.banbury
files FILE + | tallies, models or networks; what comes out is what the first is
{OUTPUT}"""),
    _verb(f"""
learn | subtract | Take tallies out of another: the same as never having counted their rows.
FILE FILE... -o FILE
$ banbury subtract winter.banbury january.banbury -o rest.banbury
files FILE + | a tally, model or network, and what to take out of it
{OUTPUT}"""),
    _verb(f"""
learn | estimate | Make a model from a tally under any prior, without counting again.
TALLY -o FILE [OPTIONS]
$ banbury estimate winter.banbury --how predictive --alpha 0.5 -o churn.banbury
{FILE.format("tally", "TALLY")}
{OUTPUT}
--features FAMILY ... | COLUMN=FAMILY with other settings of how it is estimated, such as age=gaussian,variance=shared (repeat it)
--text KEY=VALUE ... | such a setting of all columns of text: model=complement, min_count=2, max_words=5000 (repeat it)
{ESTIMATED}"""),
    _verb(f"""
use | predict | Classify rows, files or lines of text.
MODEL INPUT... [OPTIONS]
$ banbury predict adult.banbury new.csv --csv
$ echo "cheap pills, free watches" | banbury predict mail.banbury -
{MODEL}
{INPUTS}
--posteriors | the probability of every class, not of the answer alone
--top N int | of labels: the N most probable, whatever their thresholds
--at-least-one | of labels: the most probable one, where none is above its threshold
--costs TRUE:PREDICTED=N ... | what it costs to answer PREDICTED where TRUE is right (1, and 0 when right; below 0 is a gain; \
repeat it): the cheapest answer is given
--unsure P float | answer nothing where the probability is below this
{READING_AGAIN}"""),
    _verb(f"""
use | explain | Say why a row gets its class: the weight of every piece of evidence, in decibans.
MODEL [INPUT...] [--row N | --text TEXT] [OPTIONS]
$ banbury explain mail.banbury --text "free lunch at the meeting"
$ banbury explain adult.banbury new.csv --row 17
{MODEL}
{INPUT.format("*")}
--text TEXT | explain this text instead of a row of INPUT
--row N int | the row to explain; the first is 1, the default
--against CLASS | the class to weigh the answer against (the runner-up)
--label LABEL | of a model of labels: the label to explain (the most probable)
--held-out WHEN =auto | leave the row out of what the model has counted: yes, no, or auto, where INPUT is what was counted
{READING_AGAIN}"""),
    _verb(f"""
use | evaluate | Score a saved model on labelled data that it has not learned from.
MODEL INPUT... [--target COLUMN] [OPTIONS]
$ banbury evaluate adult.banbury test.csv
{MODEL}
{INPUTS}
{TRUE_TARGET}
{READING_AGAIN}"""),
    _verb("""
use | export | Write a model for use elsewhere: SQL for a database, ONNX, or one page that needs no server.
MODEL -o FILE [OPTIONS]
$ banbury export adult.banbury -o score.sql --dialect duckdb --source people --key id
$ banbury export mail.banbury -o ask.html
model MODEL | what `banbury fit` or `estimate` wrote
-o --output FILE ! | the file to write, which does not exist yet: .sql, .onnx or .html
--min-rows N int =0 | leave out values, stretches of numbers and words that fewer rows have
# of SQL
--dialect NAME | duckdb, postgres, sqlite or spark
--source TABLE | the table of the rows (rows)
--key COLUMN | its column that tells rows apart; if not said, rows are numbered
--name NAME | what the names of tables and views begin with (banbury)
--reasons | a view of the three strongest pieces of evidence of each answer, too"""),
    _verb("""
use | serve | Answer, explain, learn and forget over HTTP; what is acknowledged is never lost.
[MODEL] [--state DIR] [OPTIONS]
$ banbury serve mail.banbury --state mail-state
$ banbury serve --state mail-state --verify
model MODEL ? | what `banbury fit`, `count` or `estimate` wrote; it may be left out where the state was begun with it
--state DIR | the folder of what is learned: a log, snapshots and the model it was begun with. Without it nothing is learned
--learned INPUT | the rows that MODEL counted, to begin a state with: they get the ids 0000001, 0000002 and so on, and can then \
be moved, forgotten and refitted as all others
--refit N int | of a weighed model: learn weights again, beside the answers, after every N changes
--host HOST =127.0.0.1 | the address to listen at (127.0.0.1); another one needs --tokens
--port PORT int =8000 | the port to listen at (8000); 0 takes a free one
--tokens FILE | who may ask: a bearer token on each line, and behind it read, learn or both
# limits
--max-body MB float =8 | the largest request (8)
--max-rows N int =1000 | the most rows in one request (1000)
--max-requests N int =64 | the most requests at a time (64)
# the state
--verify | count all rows again, compare the digests, and end
--compact | drop the history but for the last change of each row, and end"""),
    _verb(f"""
use | label | Label rows by keyboard in a page, the most telling first, and learn from every answer.
INPUT... [--classes A,B] [--state DIR] [OPTIONS]
$ banbury label pool.csv --classes spam,ham --state labels
$ banbury label --state labels
input INPUT * | rows without labels: a CSV, Parquet or NDJSON file, a folder of texts; left out where the state was begun
--classes A,B | the classes to choose from; others can be added in the page
--several | rows may have several labels, or none
--state DIR =banbury-labels | the folder of what is learned (banbury-labels): a log, snapshots and the rows
--host HOST =127.0.0.1 | the address to listen at (127.0.0.1); another one needs --tokens
--port PORT int =8000 | the port to listen at (8000); 0 takes a free one
--tokens FILE | who may ask: a bearer token on each line, and behind it read, learn or both
{COUNTED}"""),
    _verb(f"""
look | cross-validate | Say how good a model of these data would be on rows it has not seen, exactly.
INPUT... [--target COLUMN] [OPTIONS]
$ banbury cross-validate adult.csv --target income --folds 10
{INPUTS}
--folds K | how many folds (10; 3 from 2,000 rows on, unless --plain), or loo to leave out one row at a time
{GROUPS}
{CALIBRATE}
{HOLD}
{WEIGH}
{COUNTED_OR_CHOSEN}
{TUNED}"""),
    _verb(f"""
look | learning-curve | Say how good it is after so many rows, on rows that are withheld.
INPUT... [--target COLUMN] [OPTIONS]
$ banbury learning-curve adult.csv --target income --sizes 100,1000,10000
{INPUTS}
--sizes A,B,C | numbers of rows, or shares such as 0.5 (about ten sizes)
--repeats N int | withhold so many times other rows (5; 1 of weighed evidence)
--test SHARE float ={1 / 3} | the share of rows to withhold (a third)
--beside LEARNER | have logistic_regression try the same rows
{WEIGH}
{COUNTED}
{ESTIMATED}"""),
    _verb(f"""
look | diagnose | Find what stands against naive Bayes: columns that repeat each other, and columns that tell nothing.
INPUT... [--target COLUMN] [OPTIONS]
$ banbury diagnose adult.csv --target income
{INPUTS}
--n N int =20 | list so many pairs of columns, and words of a text (20)
{COUNTED}"""),
    _verb(f"""
look | suspicious | Find rows whose labels look wrong: all other rows, left to judge them, say another.
INPUT... [--target COLUMN] [OPTIONS]
$ banbury suspicious mail/ --n 20
$ banbury suspicious adult.csv --target income --csv
{INPUTS}
--n N int =10 | list so many rows, the most suspicious first (10)
--by MEASURE =margin | margin: how far the label is behind another (the default); self_confidence: how probable it is
--groups COLUMN | rows that share this column's value do not speak for each other
{WEIGH}
{COUNTED}
{ESTIMATED}"""),
    _verb(f"""
look | next | Say which unlabelled rows to label next, so that few labels teach a model much.
MODEL INPUT... [OPTIONS]
$ banbury next mail.banbury unread.csv --n 20
$ banbury next adult.banbury half-labelled.csv --share 0.2 --csv
{MODEL}
{INPUTS}
--n N int =10 | so many rows (10)
--share P float =0.1 | this share of them at random (0.1), so that accuracy can be told
--labelled FILE | rows that have a label already; those of the input that have one are known
--seed N int =0 | what random choices follow from (0)
{READING_AGAIN}"""),
    _verb(f"""
look | show | Print what a file holds: schema, tally, model, network.
FILE [--informative N | --digest]
$ banbury show adult.banbury --informative 5
{FILE.format("file", "FILE")}
--informative N int | of a model the N values that best tell each class from the rest, as likelihood ratios
--digest | only a SHA-256 of all that was counted: equal where tallies are, so that forgetting can be proved"""),
    _verb(f"""
look | report | Write a web page about a model: what it is, how good it is, what it goes by, and where it errs.
MODEL INPUT... [-o FILE] [OPTIONS]
$ banbury report adult.banbury adult.csv -o report.html
{MODEL}
{INPUTS}
-o --output FILE =report.html | the page to write (report.html), replaced as a whole
{TRUE_TARGET}
--weights COLUMN | the column of the rows' weights
--title TEXT | what stands at the top of the page (the target and the data)
--no-alternatives | do not try what else could be made of the rows
--folds K int | cross-validate with so many folds (10; 3 of weighed evidence from 2,000 rows on)
--mistakes N int =10 | show the N worst mistakes (10)
--telling N int =10 | name N telling values of each class (10)
--seed N int =0 | what random choices follow from (0)
{READING_AGAIN}"""),
    _verb(f"""
look | plot | Draw a picture, by its name, into a PNG or SVG file: evidence, likelihood, calibration, ...
PICTURE [MODEL] [INPUT...] [-o FILE] [OPTIONS] | --list
$ banbury plot --list
$ banbury plot evidence adult.banbury new.csv --row 3 -o evidence.png
$ banbury plot likelihood adult.banbury adult.csv --columns age -o age.svg
$ banbury plot learning-curve adult.csv --target income --weigh -o curve.png
picture PICTURE ? | evidence, compared-evidence, likelihood, bandwidth, boundary, density, nomogram, calibration, confusion, \
labels, learning-curve, network or shapes
input INPUT * | the file of the model or network, but for learning-curve; then rows: a CSV, Parquet or NDJSON file, a folder \
with a sub-folder per class, a pattern in quotes, several files, or - for stdin
--list | say what each picture shows, and what it is drawn of
-o --output FILE | the picture to write, which ends in .png or .svg (PICTURE.png)
--dpi N int =100 | so many dots per inch of a PNG file (100)
# what is drawn
--columns A,B | the column that is drawn, or two of them
--row N int | the row that is explained, or marked; the first is 1
--text TEXT | explain this text instead of a row of INPUT
--class CLASS | the class that is drawn (of a nomogram the last one)
--against CLASS | the class to weigh it against (the runner-up)
--n N int | draw the N strongest columns, words or values
--shares | of confusion: shares of each class's rows, in place of their number
--beside OTHER | of compared-evidence another model; of learning-curve logistic_regression
--sizes A,B,C | of learning-curve: numbers of rows, or shares such as 0.5 (about ten sizes)
--weigh | of learning-curve: weigh the evidence of columns and pairs of them
--plain | of learning-curve: leave it as it is counted
{WITHOUT_TEXT}
{ESTIMATED}"""),
    _verb("""
look | demo | See it all at work on the docstrings of Python's own library; nothing is downloaded.
[FOLDER]
$ banbury demo
$ banbury demo --page
folder FOLDER ? =banbury-demo | the folder to leave a model and a report in (banbury-demo)
--page | serve the page instead, with rows to ask about, to label and to look at
--port PORT int =8000 | the port of the page (8000); 0 takes a free one"""),
)
