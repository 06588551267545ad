"""plot: draws a picture into a PNG or SVG file."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from banbury import errors, plots, quality
from banbury.cli import inputs, labels, output, settings
from banbury.cli.inputs import row_to_explain
from banbury.cli.settings import Keywords
from banbury.cli.validate import curve_of
from banbury.model.density import Density
from banbury.model.naive_bayes import Model
from banbury.model.networks import BeliefNetwork, has_tree
from banbury.plots.display import FORMATS, Display

Draw = TypeVar("Draw", bound=Callable[[Namespace], Display])


class Picture(NamedTuple):
    """A kind of picture: what it shows, how the command is used, and the function that draws it."""

    description: str  # what it shows, in words
    usage: str  # what follows the name of the picture
    draw: Callable[[Namespace], Display]


def plot(args: Namespace) -> None:
    """Draws the requested picture into a file, or lists all pictures."""
    if args.list:
        return _list_pictures(args)
    if args.picture is None:
        raise errors.BadSetting("no picture was named. See: banbury plot --list", setting="picture", value=None)
    if args.picture not in PICTURES:
        raise errors.unknown_choice("PICTURE", args.picture, PICTURES)
    args.output = f"{args.picture}.png" if args.output is None else args.output
    if os.path.splitext(args.output)[1].lower() not in FORMATS:
        raise errors.bad_setting("--output", args.output, f"a file whose name ends in {' or '.join(FORMATS)}")
    inputs.check_output(args)
    os.environ.setdefault("MPLBACKEND", "Agg")  # files are written, and no window is opened
    PICTURES[args.picture].draw(args).save(args.output, dpi=args.dpi)
    return output.result(
        args, {"picture": args.picture, "file": args.output}, f"Saved to {args.output} ({output.size(args.output)})."
    )


def _list_pictures(args: Namespace) -> None:
    """Prints all pictures with their usage, and those that are available only in Python."""
    pictures = [
        {"picture": name, "description": picture.description, "usage": f"banbury plot {name} {picture.usage}"}
        for name, picture in PICTURES.items()
    ]
    python_only = [
        {"picture": display.__name__, "description": description} for display, description in ONLY_IN_PYTHON.items()
    ]
    lines = [f"{picture['picture']:18} {picture['description']}\n{'':18}   {picture['usage']}" for picture in pictures]
    lines += [
        "",
        "Available only in Python:",
        *(f"  bb.plots.{picture['picture']}: {picture['description']}" for picture in python_only),
    ]
    output.result(args, {"pictures": pictures, "python_only": python_only}, "\n".join(lines), pictures)


# What they are drawn of ----------------------------------------------------------------------------------------------


def _file(args: Namespace, what: str) -> str:
    """Removes the first path from ``args.input``, sets ``args.model`` to it and returns it. Raises BadSetting if there
    is none; ``what``: what it is the file of, for the message.
    """
    if not args.input:
        raise _missing_input(args, what)
    args.model, *args.input = args.input
    return str(args.model)


def _missing_input(args: Namespace, what: str) -> errors.BadSetting:
    """Returns the error of a picture whose input is missing. ``what``: what is missing."""
    usage = f"banbury plot {args.picture} {PICTURES[args.picture].usage}"
    return errors.BadSetting(f"no {what} given. Usage: {usage}", setting="input", value=None)


def _model(args: Namespace) -> Model:
    """Returns the model in the file that the input names first, which is removed from ``args.input``."""
    return inputs.model(_file(args, what="model"))


@contextmanager
def _rows(args: Namespace, target: str | None, needed: bool = True) -> Iterator[Keywords]:
    """Opens the labelled rows and yields the arguments ``data`` and ``target`` with reading options; nothing if there
    are no rows and the picture does not need them. ``target``: the target of the model, if it says what it is;
    ``needed``: whether missing rows are an error.
    """
    if args.input:
        with inputs.open_labelled(args, needs_target=target is None) as data:  # the opened input
            yield {"data": data, "target": args.target, **settings.reading(args)}
    elif needed:
        raise _missing_input(args, "rows")
    else:
        yield {}


def _columns(args: Namespace, n: int, model: Model) -> list[str]:
    """Returns the names of the ``n`` columns to draw. Raises BadSetting if ``--columns`` names another number."""
    names = [] if args.columns is None else args.columns.split(",")
    if args.columns is not None and n == 1:
        names = [args.columns]  # of a name that has commas itself
    if not names and n == len(model.schema.columns) == 1:
        names = list(model.schema.columns)
    if len(names) != n:
        requirement = "the name of a column" if n == 1 else "the names of two columns of numbers, as A,B"
        columns = errors.listed(map(errors.shortened, model.schema.columns), most=20)
        raise errors.bad_setting("--columns", args.columns, f"{requirement} (of {columns})")
    return names


def _class(class_name: str | None, model: Any) -> Any:
    """Returns the class of a single-label model whose name is ``class_name``; None for None."""
    return None if class_name is None else settings.as_label(class_name, model.classes)


# Pictures ------------------------------------------------------------------------------------------------------------

PICTURES: dict[str, Picture] = {}


def _picture(description: str, usage: str) -> Callable[[Draw], Draw]:
    """Returns a decorator that registers a function as a picture under the function's name. ``description``: what the
    picture shows, in words; ``usage``: what follows its name on the command line.
    """

    def register(draw: Draw) -> Draw:
        """Registers ``draw``, a function named ``_name_of_picture``, as ``name-of-picture`` and returns it unchanged."""
        PICTURES[draw.__name__[1:].replace("_", "-")] = Picture(description, usage, draw)
        return draw

    return register


@_picture(
    "why a row gets its class: the evidence of each column or word, in decibans",
    "MODEL INPUT... [--row N | --text TEXT] [--against CLASS] [--n N]",
)
def _evidence(args: Namespace) -> plots.EvidenceDisplay:
    """Draws the evidence of a row: of the ``--n`` strongest columns or words, or 15."""
    model = _model(args)
    explanation = model.explain(row_to_explain(args, model), _class(args.against, model))
    return plots.EvidenceDisplay.from_explanation(explanation, n=args.n or 15)


@_picture(
    "the same row under two models: plain and weighed, or any two",
    "MODEL INPUT... [--row N | --text TEXT] [--peer MODEL] [--against CLASS] [--n N]",
)
def _compared_evidence(args: Namespace) -> plots.ComparedEvidenceDisplay:
    """Draws the evidence of a row under two models: plain and weighed, or this model and the one in ``--peer``."""
    path = _file(args, what="model")
    model = inputs.model(path)
    errors.require(
        args.peer is not None or model.weighing is not None,
        "--peer",
        None,
        f"the file of another model, because {path} is plain and has nothing to be compared with",
    )
    if args.peer is None:
        names = ("plain", "weighed")  # of both models, for the legend
        models = (model.weighed(weighing=None), model)
    else:
        names = (path, args.peer)
        models = (model, inputs.model(args.peer))
    row = row_to_explain(args, model)
    first = models[0].explain(row, _class(args.against, model))  # the explanation by the first model
    second = models[1].explain(row)  # of the winner against the runner-up; the classes have to be those of the first
    if {second.winner, second.against} != {first.winner, first.against}:
        second = models[1].explain(row, first.against if second.winner == first.winner else first.winner)
    explanations = dict(zip(names, (first, second), strict=True))
    return plots.ComparedEvidenceDisplay.from_explanations(explanations, n=args.n or 15)


@_picture(
    "the distribution of a column in each class, over a histogram of the rows",
    "MODEL [INPUT...] --columns COLUMN [--n N]",
)
def _likelihood(args: Namespace) -> plots.LikelihoodDisplay:
    """Draws P(value | class) of a column, over a histogram if rows are given: of ``--n`` values, or 20."""
    model = _model(args)
    [column] = _columns(args, n=1, model=model)
    with _rows(args, model.target, needed=False) as arguments:
        return plots.LikelihoodDisplay.from_model(model, column, n=args.n or 20, **arguments)


@_picture(
    "a kernel density with its bandwidth, a narrower one and a wider one", "MODEL --columns COLUMN [--class CLASS]"
)
def _bandwidth(args: Namespace) -> plots.BandwidthDisplay:
    """Draws a kernel density with three bandwidths."""
    model = _model(args)
    [column] = _columns(args, n=1, model=model)
    return plots.BandwidthDisplay.from_model(model, column, _class(args.label, model))


@_picture("the decision regions over two numeric columns, and the rows", "MODEL [INPUT...] --columns A,B")
def _boundary(args: Namespace) -> plots.DecisionBoundaryDisplay:
    """Draws the decision regions of two columns, and the rows if given."""
    model = _model(args)
    columns = _columns(args, n=2, model=model)
    with _rows(args, model.target, needed=False) as arguments:
        return plots.DecisionBoundaryDisplay.from_model(model, columns, **arguments)


@_picture("the density of the rows over two numeric columns, whatever their class", "MODEL INPUT... --columns A,B")
def _density(args: Namespace) -> plots.DensityDisplay:
    """Draws the density of two columns of the rows."""
    model = _model(args)
    columns = _columns(args, n=2, model=model)
    with _rows(args, target="") as arguments:
        source = model._read(arguments["data"], settings.reading(args))
        return plots.DensityDisplay.from_density(Density.from_model(model), columns, source)


@_picture(
    "a ruler for each column, to read off the evidence for a class and add it up",
    "MODEL [INPUT...] [--class CLASS] [--against CLASS] [--row N] [--n N]",
)
def _nomogram(args: Namespace) -> plots.NomogramDisplay:
    """Draws the nomogram of a class (``--class``, or the last) with the ``--n`` strongest columns, or 12, and the row
    in ``--row`` on it.
    """
    model = _model(args)
    label = model.classes[-1] if args.label is None else _class(args.label, model)
    with _rows(args, model.target, needed=False) as arguments:
        if arguments and args.row is not None:
            arguments["row"] = row_to_explain(args, model)
        return plots.NomogramDisplay.from_model(model, label, _class(args.against, model), n=args.n or 12, **arguments)


@_picture(
    "what a model has learned: the evidence of every value, column by column",
    "MODEL [--class CLASS] [--against CLASS] [--n N]",
)
def _shapes(args: Namespace) -> plots.ShapesDisplay:
    """Draws what a model has learned of each column: of the ``--n`` strongest, or 12."""
    model = _model(args)
    return plots.shapes(model, _class(args.label, model), _class(args.against, model), n=args.n or 12)


@_picture("how often predictions are correct, against how confident they are", "MODEL INPUT... [--target COLUMN]")
def _calibration(args: Namespace) -> plots.CalibrationDisplay:
    """Draws the calibration of a model on the rows."""
    model = _model(args)
    with _rows(args, model.target) as arguments:
        return plots.CalibrationDisplay.from_model(model, **arguments)


@_picture("which classes are mistaken for which", "MODEL INPUT... [--target COLUMN] [--shares]")
def _confusion(args: Namespace) -> plots.ConfusionMatrixDisplay:
    """Draws the confusion matrix of a model on the rows."""
    model = _model(args)
    with _rows(args, model.target) as arguments:
        evaluation = quality.evaluate(model, arguments.pop("data"), **arguments)
    return plots.ConfusionMatrixDisplay.from_cross_validation(evaluation, values="shares" if args.shares else "counts")


@_picture("how well each label is predicted, against how many rows have it", "MODEL INPUT... [--target COLUMN]")
def _labels(args: Namespace) -> plots.LabelsDisplay:
    """Draws the F1 of each label of a multi-label model on the rows."""
    path = _file(args, what="model")
    model = inputs.load_kept(path)
    if not inputs.is_labels(model):
        raise errors.BadFile(
            f"{path} does not contain a multi-label model. Fit one: banbury fit rows.csv --target COLUMN "
            f"--target-delimiter ';' -o {path}",
            path=path,
        )
    with _rows(args, target="") as arguments:
        if args.target is not None:
            arguments["target"] = labels.target(args, arguments["data"])
        return plots.LabelsDisplay.from_model(model, **arguments)


@_picture(
    "accuracy against the number of training rows",
    "INPUT... --target COLUMN [--sizes A,B,C] [--peer logistic_regression] [--weigh]",
)
def _learning_curve(args: Namespace) -> plots.LearningCurveDisplay:
    """Draws the learning curve of the model that `fit` would save."""
    if not args.input:
        raise _missing_input(args, "rows")
    # With the options of `learning-curve` that `plot` does not have.
    curve_args = Namespace(**{**vars(args), "text": [], "repeats": None, "test": 1 / 3})
    return plots.LearningCurveDisplay.from_learning_curve(curve_of(curve_args))


@_picture("which nodes of a network or tree depend on which", "NETWORK")
def _network(args: Namespace) -> plots.NetworkDisplay:
    """Draws a belief network, or the network of a tree model."""
    path = _file(args, what="network")
    network = inputs.load_kept(path)
    if isinstance(network, Model) and has_tree(network):
        network = BeliefNetwork.from_model(network)
    if not isinstance(network, BeliefNetwork):
        raise errors.BadFile(
            f"{path} does not contain a belief network. Fit one: banbury fit rows.csv --target COLUMN --tan -o {path}",
            path=path,
        )
    return plots.NetworkDisplay.from_network(network)


ONLY_IN_PYTHON: dict[type[Display], str] = {
    plots.ConvergenceDisplay: "the log likelihood after each step of fitting a bb.SemiSupervisedClassifier or bb.Mixture",
    plots.PosteriorDisplay: "how the posterior of bb.Hypotheses moves with each observation",
}
