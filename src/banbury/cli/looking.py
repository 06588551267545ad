"""The verbs that look: cross-validate, learning-curve, show, report, demo."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from banbury import errors, selection
from banbury.cli import about, inputs, output, settings
from banbury.naive_bayes import Model
from banbury.tally import Tally


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
        told = inputs.model(given.file, "show --informative").informative(given.informative)
        as_dict = told.to_dict()
        rows = [{"class": each["class"], **ratio} for each in as_dict["classes"] for ratio in each["ratios"]]
        output.result(given, as_dict, str(told), rows)
        return
    thing = inputs.kept(given.file)
    if given.digest:
        tally = thing.tally if isinstance(thing, Model) else thing
        if not isinstance(tally, Tally):
            raise errors.bad_setting("--digest", about.kind(thing), "left out, or asked of a tally or a model")
        if tally.rounded:
            text = f"the sums of {given.file} were rounded, so its digest proves nothing of what was forgotten"
            errors.warn(errors.BanburyWarning(text))
        output.result(given, {"file": given.file, "digest": tally.digest(), "rounded": tally.rounded}, tally.digest())
        return
    found = {"file": given.file, "kind": about.kind(thing), **about.summary(thing)}
    if not isinstance(thing, (Model, Tally)):
        target = "" if thing.target is None else f"\ntarget: {thing.target}"
        rows = [
            {**node, "parents": " ".join(node["parents"]), "values": len(node["values"])} for node in found["nodes"]
        ]
        output.result(given, found, f"{thing}{target}", rows)
        return
    tally = thing.tally if isinstance(thing, Model) else thing
    text = f"{thing}\n\n{tally}" if isinstance(thing, Model) else str(tally)
    output.result(given, {**found, "schema": tally.schema.to_dict()}, f"{text}\n\n{tally.schema}", found["features"])


def report(given: Namespace) -> None:
    """Writes a page about a model and labelled rows."""
    from banbury.reports import report as written

    inputs.check_output(given)
    model = inputs.model(given.model, "report")
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
