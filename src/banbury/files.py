"""Files: a tally or a model as safetensors: arrays by name, and one JSON text. Loading runs nothing that is in the file."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.naive_bayes import Model, estimate
from banbury.schema import Schema
from banbury.sums import Counts, Moments, Rows
from banbury.tally import Tally

FORMAT = 1


def save(thing: Model | Tally, path: str | os.PathLike[str]) -> None:
    """Writes a tally, or a model as its tally and settings, so that a loaded model can count on, forget and re-estimate.

    The file is complete or not there: it is written beside its place and then moved.
    """
    from safetensors.numpy import save as to_bytes

    if not isinstance(thing, (Model, Tally)):
        raise errors.bad_setting(
            "what is saved", type(thing).__name__, "a Model or a Tally (of an estimator: its model_ or tally_)"
        )
    tally = thing.tally if isinstance(thing, Model) else thing
    about = {"format": FORMAT, "tally": _about(tally), "model": _settings(thing) if isinstance(thing, Model) else None}
    content = to_bytes(_tensors(tally), {"banbury": json.dumps(about, ensure_ascii=False)})
    target = Path(path)
    try:
        handle, beside = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(beside, target)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError as problem:
        raise errors.bad_file(target, f"cannot write it: {problem.strerror}") from None


def load(path: str | os.PathLike[str]) -> Model | Tally:
    """What ``save`` wrote: a Tally, or a Model estimated anew from the tally and settings in the file.

    >>> import banbury as bb, tempfile, pathlib
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "play.banbury"
    >>> bb.save(model, file)
    >>> bb.load(file).tally == model.tally
    True
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            about = json.loads((file.metadata() or {})["banbury"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as problem:
        raise errors.bad_file(path, problem.strerror or str(problem)) from None
    except (SafetensorError, KeyError, ValueError):
        raise errors.bad_file(path, "it is not a Banbury file") from None
    if about.get("format") != FORMAT:
        raise errors.bad_file(path, f"it has format {about.get('format')}; this version reads format {FORMAT}")
    try:
        tally = _tally(about["tally"], tensors)
    except (KeyError, TypeError, IndexError) as problem:
        raise errors.bad_file(path, f"its contents do not fit together ({problem})") from None
    return tally if about["model"] is None else _model(tally, about["model"])


def _about(tally: Tally) -> dict[str, Any]:
    keys = [list(keys) for keys in tally.counts.keys]
    return {"schema": tally.schema.to_dict(), "classes": list(tally.classes), "keys": keys, "skipped": tally.skipped}


def _settings(model: Model) -> dict[str, Any]:
    prior = model.class_prior
    if isinstance(prior, Mapping):
        prior = [prior[name] for name in model.classes]
    elif prior is not None and not isinstance(prior, (str, int, float)):
        prior = np.asarray(prior, dtype=np.float64).tolist()
    return {"how": model.choice.how, "alpha": model.choice.alpha, "seed": model.choice.seed, "class_prior": prior}


def _model(tally: Tally, settings: Mapping[str, Any]) -> Model:
    return estimate(tally, **settings)


def _tensors(tally: Tally) -> dict[str, NDArray[Any]]:
    numbers = {"classes": tally.rows, "counts": tally.counts.cells, "moments": tally.moments.n}
    tensors: dict[str, NDArray[Any]] = {
        f"{name}.rows": np.ascontiguousarray(rows.rows) for name, rows in numbers.items()
    }
    tensors |= {
        f"{name}.weights": np.ascontiguousarray(rows.weights)
        for name, rows in numbers.items()
        if rows.weights is not None
    }
    return tensors | {"moments.sums": np.ascontiguousarray(tally.moments.sums)}


def _tally(about: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> Tally:
    schema = Schema.from_dict(about["schema"])
    classes = tuple(about["classes"])
    counts = Counts(tuple(map(tuple, about["keys"])), _rows("counts", tensors, (-1, len(classes))))
    moments = Moments(_rows("moments", tensors, (len(schema.measured), len(classes))), tensors["moments.sums"])
    if len(counts.keys) != len(schema.keyed) or counts.offsets[-1] != len(counts.cells.rows):
        raise KeyError("counts and keys differ in number")
    return Tally(schema, classes, _rows("classes", tensors, (len(classes),)), counts, moments, about["skipped"])


def _rows(name: str, tensors: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> Rows:
    rows, weights = tensors[f"{name}.rows"], tensors.get(f"{name}.weights")
    if rows.ndim != len(shape) or any(want not in (-1, have) for want, have in zip(shape, rows.shape, strict=True)):
        raise KeyError(f"{name}.rows has shape {rows.shape}")
    if weights is not None and weights.shape != (*rows.shape, 3):
        raise KeyError(f"{name}.weights has shape {weights.shape}")
    return Rows(rows, weights)
