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

COUNT_ALIKE = "Count all parts with the schema of the first: banbury tally count rows.csv --like {} -o part.banbury"


def count(args: Namespace) -> None:
    """Counts rows into a tally file, or under what another file counted where one is named."""
    inputs.check_output(args)
    engine_options = {} if args.engine is None else {"engine": args.engine}
    errors.require(
        not engine_options or "-" not in args.input,
        "INPUT",
        "-",
        "given as files with --engine, each of which is a partition",
    )
    with inputs.open_labelled(args, needs_target=args.like is None) as data:
        if args.like is None:
            label_options = {"target_delimiter": args.target_delimiter, **engine_options}
            _keep(args, tally.count(data, labels.target(args, data), **settings.counting(args, data), **label_options))
            return
        requirement = "used without --features, --text and --missing, because the file decides them"
        errors.require(not args.features and not args.text and args.missing is None, "--like", args.like, requirement)
        like = about.sums(inputs.load_kept(args.like))
        reading = {"weights": args.weights, **settings.reading(args)}
        if isinstance(like, Tally):
            _keep(args, like.count(data, args.target, **reading, **engine_options))
        elif engine_options:
            raise errors.bad_setting("--engine", args.engine, "omitted when a network is counted")
        else:
            _keep(args, like.count_more(data, **reading))


def merge(args: Namespace) -> None:
    """Adds up tallies, or networks."""
    _keep(args, _combined(args, add))


def subtract(args: Namespace) -> None:
    """Takes tallies out of the first one, or networks."""
    _keep(args, _combined(args, sub))


def _combined(args: Namespace, operation: Any) -> Kept:
    """The first file's sums with all the others; a model if the first file has one."""
    inputs.check_output(args)
    if len(args.files) < 2:
        raise errors.bad_setting("FILE", args.files[0], "at least two files")
    first, *addends = map(inputs.load_kept, args.files)
    alike = COUNT_ALIKE.format(args.files[0])
    for path, addend in zip(args.files[1:], addends, strict=True):
        if isinstance(addend, BeliefNetwork) != isinstance(first, BeliefNetwork):
            text = f"{path} contains a {addend.kind} but {args.files[0]} a {first.kind}"
            raise errors.SchemaMismatch(f"{text}, and the two cannot be combined. {alike}")
    try:
        sums = reduce(operation, map(about.sums, [first, *addends]))
    except errors.SchemaMismatch as problem:
        raise errors.SchemaMismatch(f"{str(problem).splitlines()[0]}\n  {alike}") from None
    if inputs.is_labels(first) and isinstance(sums, Tally):
        return settings_of(first).model(sums)
    if not isinstance(first, Model):
        return sums
    if first.calibration is not None:
        errors.warn(errors.not_calibrated(args.function))
    model = models.estimate(sums, class_prior=first.class_prior, **about.estimation(first))  # type: ignore[arg-type]
    return _with_weights_of(first, model, args)


def _with_weights_of(first: Model, model: Model, args: Namespace) -> Model:
    """A model of other rows with the weights of the first, which are stale then."""
    if not isinstance(first.weighing, Weighing):
        return model
    again = "Relearn them from all rows with banbury fit --weigh."
    has_all_classes = set(model.classes).issubset(first.weighing.classes)
    what = (
        "kept, but they were learned from other rows"
        if has_all_classes
        else "for other classes, so the output is not weighed"
    )
    errors.warn(f"the weights of {args.files[0]} are {what}. {again}")
    return model.weighed(first.weighing) if has_all_classes else model


def estimate(args: Namespace) -> None:
    """Makes a model from a tally, or another one from a model's tally; of a network other tables."""
    inputs.check_output(args)
    kept = inputs.load_kept(args.tally)
    sums = about.sums(kept)
    left = "are not part of the new model; learn new ones with banbury fit --weigh."
    if isinstance(kept, Model) and kept.weighing is not None:
        errors.warn(f"the weights of {args.tally} {left}")
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


def _keep(args: Namespace, kept_file: Kept) -> None:
    save(kept_file, args.output)
    facts = {"file": args.output, "kind": kept_file.kind, **about.summary(kept_file)}
    kept = f"Saved as a {facts['kind']} to {args.output} ({output.size(args.output)})."
    output.result(args, facts, f"{about.rows(args, facts)}, {about.classes(facts)}\n{kept}")
