"""The verbs that look: cross-validate, learning-curve, show, report, demo."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from banbury import errors, selection
from banbury.cli import inputs, output, settings
from banbury.cli.learning import choices, summary
from banbury.naive_bayes import Model
from banbury.tally import Tally

if TYPE_CHECKING:
    from banbury.networks import BeliefNetwork


def cross_validate(given: Namespace) -> None:
    """How good a model of the data is on rows that it has not seen."""
    folds = "loo" if given.folds == "loo" else settings.folds(given.folds, ", or loo")
    with inputs.labelled(given) as data:
        chosen = {**settings.counting(given, data), **settings.estimating(given, data)}
        large = inputs.size(given) > given.hold and given.groups is None
        found: Any
        if large and isinstance(folds, int) and not settings.tunes(chosen):
            found = selection.cross_validate_stream(data, given.target, folds=folds, **chosen)
        else:
            found = selection.cross_validate(data, given.target, **_grouped(folds, given.groups), **chosen)
    output.result(given, found.to_dict(), str(found))


def _grouped(folds: int | str, groups: str | None) -> dict[str, Any]:
    if groups is None:
        return {"folds": folds}
    if not isinstance(folds, int):
        raise errors.bad_setting("--folds", folds, "a whole number from 2 up with --groups")
    from sklearn.model_selection import GroupKFold

    return {"folds": GroupKFold(folds), "groups": groups}


def learning_curve(given: Namespace) -> None:
    """How good a model is after so many rows."""
    with inputs.labelled(given) as data:
        found = selection.learning_curve(
            data,
            given.target,
            sizes=settings.sizes(given.sizes),
            repeats=given.repeats,
            test=given.test,
            beside=given.beside,
            **settings.counting(given, data),
            **settings.estimating(given, data),
        )
    as_dict = found.to_dict()
    output.result(given, as_dict, str(found), _by_size(as_dict))


def _by_size(found: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each size."""
    rows = []
    for number, size in enumerate(found["sizes"]):
        rows.append({"rows": size, **_at(found, number, "")})
        if found.get("beside"):
            rows[-1] |= _at(found["beside"], number, f"{found['beside']['name']} ")
    return rows


def _at(found: dict[str, Any], number: int, prefix: str) -> dict[str, Any]:
    measures = {"accuracy": "mean_accuracy", "standard_error": "standard_error", "log_loss": "mean_log_loss"}
    return {prefix + name: None if found[key] is None else found[key][number] for name, key in measures.items()}


def show(given: Namespace) -> None:
    """What a file holds; of a model also what tells its classes apart, if asked."""
    if given.informative is not None:
        found = inputs.model(given.file).informative(given.informative)
        as_dict = found.to_dict()
        rows = [{"class": each["class"], **ratio} for each in as_dict["classes"] for ratio in each["ratios"]]
        output.result(given, as_dict, str(found), rows)
        return
    thing = inputs.kept(given.file)
    if not isinstance(thing, (Model, Tally)):
        _show_network(given, thing)
        return
    tally = thing.tally if isinstance(thing, Model) else thing
    about = {"file": given.file, "kind": "model" if isinstance(thing, Model) else "tally", **summary(tally)}
    about |= {**(choices(thing) if isinstance(thing, Model) else {}), "schema": tally.schema.to_dict()}
    text = f"{thing}\n\n{tally}" if isinstance(thing, Model) else str(tally)
    output.result(given, about, f"{text}\n\n{tally.schema}", about["features"])


def _show_network(given: Namespace, network: BeliefNetwork) -> None:
    """The nodes of a network, what each depends on, and how many rows were counted."""
    counted = network.sums is not None
    chosen = network.choice
    nodes: list[dict[str, Any]] = [
        {"name": v.name, "parents": list(network.parents[v.name]), "kind": v.kind, "values": list(v.values)}
        for v in network.variables
    ]
    about = {
        "file": given.file,
        "kind": "network",
        "rows": network.n_rows if counted else None,
        "target": network.target,
        "nodes": nodes,
        "left_out": dict(network.left_out),
        **({"how": chosen.how, "alpha": chosen.alpha, "seed": chosen.seed} if counted else {}),
    }
    target = "" if network.target is None else f"\ntarget: {network.target}"
    rows = [
        {
            "name": node["name"],
            "parents": " ".join(node["parents"]),
            "kind": node["kind"],
            "values": len(node["values"]),
        }
        for node in nodes
    ]
    output.result(given, about, f"{network}{target}", rows)


def report(given: Namespace) -> None:
    """Writes a page about a model and labelled rows."""
    from banbury.reports import report as written

    inputs.check_output(given)
    model = inputs.model(given.model)
    titled = {} if given.title is None else {"title": given.title}
    numbers = {name: getattr(given, name) for name in ("folds", "mistakes", "telling", "seed")}
    with inputs.labelled(given, needs_target=model.schema.target is None) as data:
        made = written(
            model,
            data,
            given.target,
            given.output,
            weights=given.weights,
            **titled,
            **numbers,
            **settings.reading(given),
        )
    found = made.findings.cross_validation
    output.result(given, {"path": str(made.path), **found.to_dict()}, f"{found}\n\nWritten: {made.path}")


def demo(given: Namespace) -> None:
    """The tour."""
    from banbury.demo import main

    main(given.folder)
