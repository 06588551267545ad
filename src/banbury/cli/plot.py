"""plot: each picture by its name, in a PNG or SVG file."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from banbury import errors, plots, quality
from banbury.cli import inputs, labels, output, settings
from banbury.cli.inputs import row_to_explain
from banbury.cli.validate import curve_of
from banbury.model.density import Density
from banbury.model.naive_bayes import Model
from banbury.model.networks import BeliefNetwork, has_tree
from banbury.plots.display import FORMATS, Display

Draw = TypeVar("Draw", bound=Callable[[Namespace], Display])


class Picture(NamedTuple):
    """What is drawn, what it is drawn of, and how."""

    shows: str
    usage: str
    draw: Callable[[Namespace], Display]


def plot(args: Namespace) -> None:
    """Draws a picture into a file, or lists all of them."""
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
    drawn = f"Saved to {args.output} ({output.size(args.output)})."
    return output.result(args, {"picture": args.picture, "file": args.output}, drawn)


def _list_pictures(args: Namespace) -> None:
    pictures = [
        {"picture": name, "shows": picture.shows, "usage": f"banbury plot {name} {picture.usage}"}
        for name, picture in PICTURES.items()
    ]
    only = [{"picture": display.__name__, "shows": shows} for display, shows in IN_PYTHON.items()]
    lines = [f"{picture['picture']:18} {picture['shows']}\n{'':18}   {picture['usage']}" for picture in pictures]
    lines += [
        "",
        "Available only in Python:",
        *(f"  bb.plots.{picture['picture']}: {picture['shows']}" for picture in only),
    ]
    output.result(args, {"pictures": pictures, "in_python": only}, "\n".join(lines), pictures)


# What they are drawn of ----------------------------------------------------------------------------------------------


def _file(args: Namespace, what: str) -> str:
    """The file of a model, which comes before the rows."""
    if not args.input:
        raise _lacking(args, what)
    args.model, *args.input = args.input
    return str(args.model)


def _lacking(args: Namespace, what: str) -> errors.BadSetting:
    usage = f"banbury plot {args.picture} {PICTURES[args.picture].usage}"
    return errors.BadSetting(f"no {what} given. Usage: {usage}", setting="input", value=None)


def _model(args: Namespace) -> Model:
    return inputs.model(_file(args, "model"))


@contextmanager
def _rows(args: Namespace, target: str | None, needed: bool = True) -> Iterator[Any]:
    """Labelled rows; None where there are none and none are needed."""
    if not args.input:
        if needed:
            raise _lacking(args, "rows")
        yield None
        return
    with inputs.open_labelled(args, needs_target=target is None) as data:
        yield data


def _columns(args: Namespace, n: int, model: Model) -> list[str]:
    named = [] if args.columns is None else args.columns.split(",")
    if args.columns is not None and n == 1:
        named = [args.columns]  # of a name that has commas itself
    if not named and n == len(model.schema.columns) == 1:
        named = list(model.schema.columns)
    if len(named) != n:
        requirement = "the name of a column" if n == 1 else "the names of two columns of numbers, as A,B"
        columns = errors.listed(map(errors.shortened, model.schema.columns), 20)
        raise errors.bad_setting("--columns", args.columns, f"{requirement} (of {columns})")
    return named


def _class(class_name: str | None, model: Any) -> Any:
    return None if class_name is None else settings.as_label(class_name, model.classes)


# Pictures ------------------------------------------------------------------------------------------------------------

PICTURES: dict[str, Picture] = {}


def _picture(shows: str, usage: str) -> Callable[[Draw], Draw]:
    """Makes a picture of a function, under its name."""

    def named(draw: Draw) -> Draw:
        PICTURES[draw.__name__[1:].replace("_", "-")] = Picture(shows, usage, draw)
        return draw

    return named


@_picture(
    "why a row gets its class: the evidence of each column or word, in decibans",
    "MODEL INPUT... [--row N | --text TEXT] [--against CLASS] [--n N]",
)
def _evidence(args: Namespace) -> plots.EvidenceDisplay:
    model = inputs.model(_file(args, "model"))
    explanation = model.explain(row_to_explain(args, model), _class(args.against, model))
    return plots.EvidenceDisplay.from_explanation(explanation, n=args.n or 15)


@_picture(
    "the same row under two models: plain and weighed, or any two",
    "MODEL INPUT... [--row N | --text TEXT] [--beside MODEL] [--against CLASS] [--n N]",
)
def _compared_evidence(args: Namespace) -> plots.ComparedEvidenceDisplay:
    path = _file(args, "model")
    model = inputs.model(path)
    requirement = f"the file of another model, because {path} is plain and has nothing to be compared with"
    errors.require(args.beside is not None or model.weighing is not None, "--beside", None, requirement)
    if args.beside is None:
        names = ("plain", "weighed")
        both = (model.weighed(None), model)
    else:
        names = (path, args.beside)
        both = (model, inputs.model(args.beside))
    row = row_to_explain(args, model)
    first = both[0].explain(row, _class(args.against, model))
    second = both[1].explain(row)
    if {second.winner, second.against} != {first.winner, first.against}:
        second = both[1].explain(row, first.against if second.winner == first.winner else first.winner)
    shown = dict(zip(names, (first, second), strict=True))
    return plots.ComparedEvidenceDisplay.from_explanations(shown, n=args.n or 15)


@_picture(
    "the distribution of a column in each class, over a histogram of the rows",
    "MODEL [INPUT...] --columns COLUMN [--n N]",
)
def _likelihood(args: Namespace) -> plots.LikelihoodDisplay:
    model = _model(args)
    [column] = _columns(args, 1, model)
    with _rows(args, model.target, needed=False) as data:
        how = {} if data is None else settings.reading(args)
        return plots.LikelihoodDisplay.from_model(model, column, data, args.target, n=args.n or 20, **how)


@_picture(
    "a kernel density with its bandwidth, a narrower one and a wider one", "MODEL --columns COLUMN [--class CLASS]"
)
def _bandwidth(args: Namespace) -> plots.BandwidthDisplay:
    model = _model(args)
    [column] = _columns(args, 1, model)
    return plots.BandwidthDisplay.from_model(model, column, _class(args.label, model))


@_picture("the decision regions over two numeric columns, and the rows", "MODEL [INPUT...] --columns A,B")
def _boundary(args: Namespace) -> plots.DecisionBoundaryDisplay:
    model = _model(args)
    columns = _columns(args, 2, model)
    with _rows(args, model.target, needed=False) as data:
        how = {} if data is None else settings.reading(args)
        return plots.DecisionBoundaryDisplay.from_model(model, columns, data, args.target, **how)


@_picture("the density of the rows over two numeric columns, whatever their class", "MODEL INPUT... --columns A,B")
def _density(args: Namespace) -> plots.DensityDisplay:
    model = _model(args)
    columns = _columns(args, 2, model)
    with _rows(args, "") as data:
        rows = model._read(data, settings.reading(args))
        return plots.DensityDisplay.from_density(Density.from_model(model), columns, rows)


@_picture(
    "a ruler for each column, to read off the evidence for a class and add it up",
    "MODEL [INPUT...] [--class CLASS] [--against CLASS] [--row N] [--n N]",
)
def _nomogram(args: Namespace) -> plots.NomogramDisplay:
    model = _model(args)
    label = model.classes[-1] if args.label is None else _class(args.label, model)
    with _rows(args, model.target, needed=False) as data:
        how: dict[str, Any] = {} if data is None else {"data": data, "target": args.target, **settings.reading(args)}
        if data is not None and args.row is not None:
            how["row"] = row_to_explain(args, model)
        return plots.NomogramDisplay.from_model(model, label, _class(args.against, model), n=args.n or 12, **how)


@_picture(
    "what a model has learned: the evidence of every value, column by column",
    "MODEL [--class CLASS] [--against CLASS] [--n N]",
)
def _shapes(args: Namespace) -> plots.ShapesDisplay:
    model = _model(args)
    return plots.shapes(model, _class(args.label, model), _class(args.against, model), n=args.n or 12)


@_picture("how often predictions are correct, against how confident they are", "MODEL INPUT... [--target COLUMN]")
def _calibration(args: Namespace) -> plots.CalibrationDisplay:
    model = inputs.model(_file(args, "model"))
    with _rows(args, model.target) as data:
        return plots.CalibrationDisplay.from_model(model, data, args.target, **settings.reading(args))


@_picture("which classes are mistaken for which", "MODEL INPUT... [--target COLUMN] [--shares]")
def _confusion(args: Namespace) -> plots.ConfusionMatrixDisplay:
    model = inputs.model(_file(args, "model"))
    with _rows(args, model.target) as data:
        evaluation = quality.evaluate(model, data, args.target, **settings.reading(args))
    return plots.ConfusionMatrixDisplay.from_cross_validation(evaluation, values="shares" if args.shares else "counts")


@_picture("how well each label is predicted, against how many rows have it", "MODEL INPUT... [--target COLUMN]")
def _labels(args: Namespace) -> plots.LabelsDisplay:
    path = _file(args, "model")
    model = inputs.load_kept(path)
    if not inputs.is_labels(model):
        text = f"{path} does not contain a multi-label model. Fit one: banbury fit rows.csv --target COLUMN "
        raise errors.BadFile(text + f"--target-delimiter ';' -o {path}", path=path)
    with _rows(args, "") as data:
        target = None if args.target is None else labels.target(args, data)
        return plots.LabelsDisplay.from_model(model, data, target, **settings.reading(args))


@_picture(
    "accuracy against the number of training rows",
    "INPUT... --target COLUMN [--sizes A,B,C] [--beside logistic_regression] [--weigh]",
)
def _learning_curve(args: Namespace) -> plots.LearningCurveDisplay:
    if not args.input:
        raise _lacking(args, "rows")
    curve_args = Namespace(**{**vars(args), "text": [], "repeats": None, "test": 1 / 3})
    return plots.LearningCurveDisplay.from_learning_curve(curve_of(curve_args))


@_picture("which nodes of a network or tree depend on which", "NETWORK")
def _network(args: Namespace) -> plots.NetworkDisplay:
    path = _file(args, "network")
    network = inputs.load_kept(path)
    if isinstance(network, Model) and has_tree(network):
        network = BeliefNetwork.from_model(network)
    if not isinstance(network, BeliefNetwork):
        text = (
            f"{path} does not contain a belief network. Fit one: banbury fit rows.csv --target COLUMN --tan -o {path}"
        )
        raise errors.BadFile(text, path=path)
    return plots.NetworkDisplay.from_network(network)


IN_PYTHON: dict[type[Display], str] = {
    plots.ConvergenceDisplay: "the log likelihood after each step of fitting a bb.SemiSupervisedClassifier or bb.Mixture",
    plots.PosteriorDisplay: "how the posterior of bb.Hypotheses moves with each observation",
}
