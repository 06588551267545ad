"""count, merge, subtract, estimate: tallies and networks in files."""

from __future__ import annotations

from argparse import Namespace
from functools import reduce
from operator import add, sub
from typing import Any

from banbury import errors
from banbury.cli import about, inputs, labels, output, settings
from banbury.cli.about import Kept
from banbury.files import save
from banbury.labels import LabelModel
from banbury.learner import settings_of
from banbury.model import naive_bayes as models
from banbury.model.naive_bayes import Model
from banbury.model.networks import BeliefNetwork
from banbury.tally import tally
from banbury.tally.tally import Tally
from banbury.weighing import Weighing

HINT_TO_COUNT_ALIKE = (  # with the name of the first file
    "Count all parts with the schema of the first: banbury tally count rows.csv --like {} -o part.banbury"
)


def count(args: Namespace) -> None:
    """Counts rows into a tally file, with the schema of the file in ``--like`` if given."""
    inputs.check_output(args)
    engine_options = {} if args.engine is None else {"engine": args.engine}
    errors.require(
        not engine_options or "-" not in args.input,
        "INPUT",
        "-",
        "given as files with --engine, each of which is a partition",
    )
    with inputs.open_labelled(args, needs_target=args.like is None) as data:  # the opened input
        if args.like is None:
            # What the options for counting lack.
            further_options = {"target_delimiter": args.target_delimiter, **engine_options}
            _keep(
                args, tally.count(data, labels.target(args, data), **settings.counting(args, data), **further_options)
            )
            return
        errors.require(
            not args.features and not args.text and args.missing is None,
            "--like",
            args.like,
            "used without --features, --text and --missing, because the file decides them",
        )
        template = about.sums(inputs.load_kept(args.like))  # the tally or network whose schema is used
        reading = {"weights": args.weights, **settings.reading(args)}
        if isinstance(template, Tally):
            _keep(args, template.count(data, args.target, **reading, **engine_options))
        elif engine_options:
            raise errors.bad_setting("--engine", args.engine, "omitted when a network is counted")
        else:
            _keep(args, template.count_more(data, **reading))


def merge(args: Namespace) -> None:
    """Adds tallies, models or networks and saves the sum."""
    _keep(args, _combine(args, add))


def subtract(args: Namespace) -> None:
    """Subtracts tallies, models or networks from the first and saves the difference."""
    _keep(args, _combine(args, sub))


def _combine(args: Namespace, operation: Any) -> Kept:
    """Returns the sum or difference of what the files contain (``operation``: add or sub). If the first is a model, it
    is a model estimated from the combined tally.
    """
    inputs.check_output(args)
    if len(args.files) < 2:
        raise errors.bad_setting("FILE", args.files[0], "at least two files")
    first_loaded, *addends = map(inputs.load_kept, args.files)  # addends: what is added or subtracted
    hint = HINT_TO_COUNT_ALIKE.format(args.files[0])
    for path, addend in zip(args.files[1:], addends, strict=True):
        if isinstance(addend, BeliefNetwork) != isinstance(first_loaded, BeliefNetwork):
            raise errors.SchemaMismatch(
                f"{path} contains a {addend.kind} but {args.files[0]} a {first_loaded.kind}, "
                f"and the two cannot be combined. {hint}"
            )
    try:
        # A tally or a network, in which a model takes part with its tally.
        sums = reduce(operation, map(about.sums, [first_loaded, *addends]))
    except errors.SchemaMismatch as error:
        raise errors.SchemaMismatch(f"{str(error).splitlines()[0]}\n  {hint}") from None
    if inputs.is_labels(first_loaded) and isinstance(sums, Tally):
        return settings_of(first_loaded).model(sums)
    if not isinstance(first_loaded, Model):
        return sums
    if first_loaded.calibration is not None:
        errors.warn(errors.not_calibrated(args.function))
    model = models.estimate(sums, class_prior=first_loaded.class_prior, **about.estimation(first_loaded))  # type: ignore[arg-type]
    return _with_weights_of(first_loaded, model, args)


def _with_weights_of(first_model: Model, model: Model, args: Namespace) -> Model:
    """Returns ``model`` with the evidence weights of ``first_model``, which are stale since they were learned from
    other rows, and warns of that; without them if its classes are others.
    """
    if not isinstance(first_model.weighing, Weighing):
        return model
    advice = "Relearn them from all rows with banbury fit --weigh."
    has_all_classes = set(model.classes).issubset(first_model.weighing.classes)
    fact = (
        "kept, but they were learned from other rows"
        if has_all_classes
        else "for other classes, so the output is not weighed"
    )
    errors.warn(f"the weights of {args.files[0]} are {fact}. {advice}")
    return model.weighed(first_model.weighing) if has_all_classes else model


def estimate(args: Namespace) -> None:
    """Estimates a model from a tally or from the tally of a model, or the tables of a network anew, and saves it."""
    inputs.check_output(args)
    loaded = inputs.load_kept(args.tally)
    sums = about.sums(loaded)  # a tally or a network
    if isinstance(loaded, Model) and loaded.weighing is not None:
        errors.warn(
            f"the weights of {args.tally} are not part of the new model; learn new ones with banbury fit --weigh."
        )
    # Families by column, with other settings for estimation than those with which rows were counted.
    features = settings.new_estimation_settings(args, sums.schema) if isinstance(sums, Tally) else {}
    if isinstance(sums, Tally) and sums.schema.labels is not None:
        _keep(args, LabelModel.of(sums, how=args.how, alpha=float(args.alpha), features=features))
    elif isinstance(sums, Tally):
        _keep(args, models.estimate(sums, features=features, **settings.estimating_from(args, sums.classes)))
    elif args.features:
        raise errors.bad_setting(
            "--features", args.features, "omitted for a network, because its nodes already have values"
        )
    else:
        _keep(args, sums.estimate(**settings.estimating_network(args)))


def _keep(args: Namespace, saved: Kept) -> None:
    """Saves a tally, model or network to ``args.output`` and prints its summary."""
    save(saved, args.output)
    facts = {"file": args.output, "kind": saved.kind, **about.summary(saved)}
    message = f"Saved as a {facts['kind']} to {args.output} ({output.size(args.output)})."
    output.result(args, facts, f"{about.rows(args, facts)}, {about.classes(facts)}\n{message}")
