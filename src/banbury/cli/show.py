"""diagnose, show, report, demo: redundant columns, the contents of a file, a report as a page, and a tour."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from typing import Any

import banbury
from banbury import errors
from banbury.cli import about, inputs, labels, output, settings
from banbury.cli.wording import for_the_shell
from banbury.model.naive_bayes import Model
from banbury.model.networks import BeliefNetwork
from banbury.tally.schema import setting_in_words


def diagnose(args: Namespace) -> None:
    """Prints columns that repeat each other and columns that carry no information."""
    args.missing = args.missing or "category"  # as in the weighed model that `fit` keeps where it is better
    with inputs.open_labelled(args) as data:  # the opened input
        diagnosis = banbury.diagnose(data, args.target, n=args.n, **settings.counting(args, data))
    facts = {**diagnosis.to_dict(), "advice": for_the_shell(diagnosis.advice)}
    output.result(args, facts, str(diagnosis).removesuffix(diagnosis.advice) + facts["advice"], facts["pairs"])


def show(args: Namespace) -> None:
    """Prints the contents of a file; with ``--informative`` the features that tell a model's classes apart."""
    loaded = inputs.load_kept(args.file)
    if inputs.is_labels(loaded):
        return labels.show(args, loaded)
    if args.informative is not None:
        errors.require(args.informative > 0, "--informative", args.informative, "a whole number of at least 1")
        informative = inputs.model(args.file).informative(args.informative)
        facts = informative.to_dict()
        rows = [  # one per class and value, for CSV
            {"class": class_facts["class"], **ratio}
            for class_facts in facts["classes"]
            for ratio in class_facts["ratios"]
        ]
        output.result(args, facts, str(informative), rows)
    elif args.digest:
        _show_digest(args)
    else:
        _show_contents(args)


def _show_digest(args: Namespace) -> None:
    """Prints the digest of a tally or of a model's tally."""
    tally = about.sums(inputs.load_kept(args.file))
    if isinstance(tally, BeliefNetwork):
        raise errors.bad_setting("--digest", tally.kind, "omitted, or used with a tally or a model")
    if tally.rounded:
        errors.warn(
            errors.BanburyWarning(
                f"the sums of {args.file} were rounded, so its digest proves nothing about forgetting"
            )
        )
    output.result(args, {"file": args.file, "digest": tally.digest(), "rounded": tally.rounded}, tally.digest())


def _show_contents(args: Namespace) -> None:
    """Prints what the tally, model or network in ``args.file`` contains."""
    loaded = inputs.load_kept(args.file)
    facts = {"file": args.file, "kind": loaded.kind, **about.summary(loaded)}
    if isinstance(loaded, BeliefNetwork):
        # Below the network.
        last_lines = "" if loaded.target is None else f"\ntarget: {loaded.target}"
        for name, setting in loaded._reading.items():
            last_lines += f"\nread with {name}: {setting_in_words(setting)}"
        nodes = facts["nodes"]  # the name, parents, kind and values of each
        rows = [{**node, "parents": " ".join(node["parents"]), "values": len(node["values"])} for node in nodes]
        output.result(args, facts, f"{loaded}{last_lines}", rows)
        return
    tally = loaded.tally if isinstance(loaded, Model) else loaded
    text = str(tally)
    if isinstance(loaded, Model):
        text = "\n".join([str(loaded), *about.weights(facts), *about.tree(loaded), "", text])
    output.result(args, {**facts, "schema": tally.schema.to_dict()}, f"{text}\n\n{tally.schema}", facts["features"])


def report(args: Namespace) -> None:
    """Writes a report about a model and labelled rows as an HTML page."""
    inputs.check_output(args)
    model: Any = inputs.model_or_labels(args.model)
    # Options of the command that are arguments of ``report``.
    names = [
        "folds",
        "mistakes",
        "informative",
        "seed",
        "weights",
        "alternatives",
        *["title"] * (args.title is not None),
    ]
    options = {name: getattr(args, name) for name in names}
    has_target = model.schema.target is not None or model.schema.labels is not None
    with inputs.open_labelled(args, needs_target=not has_target) as data:  # the opened input
        target = labels.target(args, data)
        page = banbury.report(model, data, target, args.output, **options, **settings.reading(args))
    validation = page.findings.validation
    output.result(args, {"path": str(page.path), **validation.to_dict()}, f"{validation}\n\nWritten: {page.path}")


def demo(args: Namespace) -> None:
    """Runs the tour, or serves the demo page."""
    if args.page:
        import_module("banbury.cli.label").serve_demo(args)  # which needs what `pip install banbury[serve]` brings
    else:
        import_module("banbury.demo").main(args.folder)
