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

from banbury import _core, errors
from banbury.calibration import Calibration
from banbury.distributions import Text
from banbury.distributions.family import Feature
from banbury.naive_bayes import Model, estimate
from banbury.schema import Schema
from banbury.sums import IMPOSSIBLE, Counts, Moments, Rows, Words, in_order
from banbury.tally import Tally

FORMAT = 1


def save(thing: Model | Tally, path: str | os.PathLike[str]) -> None:
    """Writes a tally, or a model as its tally and settings, so that a loaded model can count on, forget and re-estimate.

    The file is complete or not there: it is written beside its place and then moved.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    if not isinstance(thing, (Model, Tally)):
        raise errors.bad_setting(
            "what is saved", type(thing).__name__, "a Model or a Tally (of an estimator: its model_ or tally_)"
        )
    tally = thing.tally if isinstance(thing, Model) else thing
    about = {"format": FORMAT, "tally": _about(tally), "model": _settings(thing) if isinstance(thing, Model) else None}
    if isinstance(thing, Model) and isinstance(thing.calibration, Calibration):
        about["calibration"] = thing.calibration.method
    target = Path(path)
    try:
        handle, beside = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
        try:
            os.close(handle)
            save_file(_tensors(tally) | _calibration_tensors(thing), beside, {"banbury": json.dumps(about)})
            os.chmod(beside, target.stat().st_mode if target.exists() else 0o666 & ~_umask())
            os.replace(beside, target)
        except BaseException:
            os.unlink(beside)
            raise
    except (OSError, SafetensorError) as problem:
        raise errors.unwritable_file(target, getattr(problem, "strerror", None) or str(problem)) from None


def _umask() -> int:
    """What new files are not given; reading it means setting it for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


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
    except (SafetensorError, KeyError, ValueError, RecursionError):
        raise errors.bad_file(path, "it is not a Banbury file") from None
    if not isinstance(about, dict) or "format" not in about:
        raise errors.bad_file(path, "it is not a Banbury file")
    if about["format"] != FORMAT:
        raise errors.bad_file(path, f"it has format {about['format']}; this version reads format {FORMAT}")
    try:
        tally = _tally(about["tally"], tensors)
        if about["model"] is None:
            return tally
        return estimate(tally, **about["model"]).calibrated(_calibration(about.get("calibration"), tensors))
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, ArithmeticError, RecursionError) as problem:
        raise errors.bad_file(path, f"its contents do not fit together ({problem})") from None


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
    tensors["moments.sums"] = np.ascontiguousarray(tally.moments.sums)
    for i, words in enumerate(tally.words):
        tensors |= {f"words.{i}.{name}": array for name, array in words.table.state().items()}
    return tensors


def _calibration_tensors(thing: Model | Tally) -> dict[str, NDArray[Any]]:
    if not (isinstance(thing, Model) and isinstance(thing.calibration, Calibration)):
        return {}
    return {f"calibration.{name}": np.ascontiguousarray(array) for name, array in thing.calibration.state().items()}


def _calibration(method: Any, tensors: Mapping[str, NDArray[Any]]) -> Calibration | None:
    if method is None:
        return None
    prefix = "calibration."
    state = {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
    return Calibration.from_state(method, state)


def _tally(about: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> Tally:
    schema = Schema.from_dict(about["schema"])
    for feature in schema.features:
        if not isinstance(feature.name, str) or not np.isfinite(feature.origin) or not 0 < feature.unit < np.inf:
            raise ValueError(f"feature {feature.name!r} has no name, origin or unit")
    if not all(isinstance(text, str) for pair in schema.left_out.items() for text in pair):
        raise TypeError("left_out is not a mapping of texts")
    if len(schema.index) != len(schema.features):
        raise ValueError("two features have one name")
    classes = _names("classes", about["classes"])
    keys = tuple(_names("keys", names) for names in about["keys"])
    counts = Counts(keys, _rows("counts", tensors, (sum(map(len, keys)), len(classes))))
    if len(keys) != len(schema.keyed):
        raise ValueError("keys and features differ in number")
    shape = (len(schema.measured), len(classes))
    moments = Moments(_rows("moments", tensors, shape), _real("moments.sums", tensors, (*shape, 2, 3)))
    words = tuple(_words(f"words.{i}.", f, tensors, len(classes)) for i, f in enumerate(schema.texts))
    rows = _rows("classes", tensors, (len(classes),))
    if any((column.texts.value > rows.value * (1.0 + IMPOSSIBLE)).any() for column in words):
        raise ValueError("a class has more texts than rows")
    return Tally(schema, classes, rows, counts, moments, words, int(about["skipped"]))


def _words(prefix: str, feature: Feature, tensors: Mapping[str, NDArray[Any]], n_classes: int) -> Words:
    state = {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
    assert isinstance(feature.family, Text)
    return Words(_core.Words.from_state(n_classes, feature.family.buckets or 0, state))


def _names(what: str, names: Any) -> tuple[Any, ...]:
    """Labels or keys: scalars, each once, in order."""
    if not all(name is None or isinstance(name, (bool, int, float, str)) for name in names):
        raise TypeError(f"{what} are not all scalars")
    if in_order(set(names)) != tuple(names):
        raise ValueError(f"{what} are not in order, or not each once")
    return tuple(names)


def _rows(name: str, tensors: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> Rows:
    rows = tensors[f"{name}.rows"]
    if rows.dtype != np.int64 or rows.shape != shape or (rows < 0).any():
        raise ValueError(f"{name}.rows is not {shape} whole numbers from 0 up")
    weights = f"{name}.weights"
    if weights not in tensors:
        return Rows(rows)
    sums = _real(weights, tensors, (*shape, 3))
    if (sums[..., 0] < 0).any() or sums[rows == 0].any():
        raise ValueError(f"{weights} has a weight below 0, or one without rows")
    return Rows(rows, sums)


def _real(name: str, tensors: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> NDArray[np.float64]:
    numbers = tensors[name]
    if numbers.dtype != np.float64 or numbers.shape != shape or not np.isfinite(numbers).all():
        raise ValueError(f"{name} is not {shape} finite numbers")
    return numbers
