"""Saves and loads tallies, models and networks as safetensors: named arrays and one JSON text. Loading executes no code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banbury import __version__, errors
from banbury.families.family import check_positive
from banbury.files import arrays, contents
from banbury.files.checking import Arrays, JsonObject
from banbury.model.naive_bayes import Model, model_of
from banbury.tally.tally import Tally

if TYPE_CHECKING:  # imported only when needed, so that short commands start fast
    from banbury.labels import LabelModel
    from banbury.model.networks import BeliefNetwork

__all__ = ["FORMAT", "from_bytes", "load", "save", "to_bytes"]

FORMAT = 1  # the version of the file format


def save(
    thing: Model | Tally | BeliefNetwork | LabelModel, path: str | os.PathLike[str], *, min_count: float = 0
) -> None:
    """Saves a ``thing`` (a tally, a model or a belief network) to the file at ``path``.

    A model is saved as its tally and settings, so after loading it can learn more rows, forget rows and be estimated
    again. For a fitted estimator, its model is saved. The file is written next to its final place and then renamed, so
    it is never incomplete. ``docs/reference/format.md`` describes the format.

    ``min_count`` is for sharing: words that occur fewer times in total are left out of the file, and the loaded model
    has the vocabulary of ``bb.Text(min_count=...)``.

    >>> import banbury as bb, tempfile, pathlib
    >>> tally = bb.count(["good good lunch", "bad lunch"], target=["yes", "no"])
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "lunch.banbury"
    >>> bb.save(tally, file, min_count=2)
    >>> bb.estimate(bb.load(file)).linear().words
    ['good', 'lunch']
    """
    check_positive("min_count", min_count, zero=True)
    try:
        target = Path(path)
    except TypeError:
        raise errors.bad_setting("path", path, "the name of a file") from None
    arrays.write(target, *_to_json_and_arrays(model_of(thing), target, min_count))


def to_bytes(model: Model | Tally | LabelModel) -> bytes:
    """Returns what ``save`` would write: the contents of the file."""
    target = Path("the model")  # its name in error messages
    return b"".join(arrays.contents(target, *_to_json_and_arrays(model, target, min_count=0)))


def from_bytes(content: bytes, name: str) -> Model | Tally | BeliefNetwork | LabelModel:
    """Restores what ``to_bytes`` returned. ``name`` is the name of the source in error messages."""
    return _from_json_and_arrays(name, *arrays.parse(name, content, verify=True))


def _to_json_and_arrays(model: Any, target: Path, min_count: float) -> tuple[JsonObject, Arrays]:
    """Returns the JSON object and the arrays by name of a file for a tally, a model or a network, without words that
    occur fewer than ``min_count`` times. Raises an error that names ``target`` if something cannot be saved.
    """
    try:
        description, named_arrays = _about_and_arrays(model, float(min_count))
    except errors.BanburyError:
        raise
    except (TypeError, ValueError) as error:
        raise arrays.cannot_save(target, error) from None
    return {"library": __version__, **description}, named_arrays


def _about_and_arrays(model: Any, min_count: float) -> tuple[JsonObject, Arrays]:
    """Returns the JSON object and the arrays by name of a tally, a model or a network, without words that occur fewer
    than ``min_count`` times. Raises BadSetting for anything else.
    """
    if isinstance(model, (Model, Tally)):
        model = contents.without_rare(model, min_count)
        return contents.about(model), contents.arrays(model)
    from banbury.files import labels, networks
    from banbury.labels import LabelModel
    from banbury.model.networks import BeliefNetwork

    if isinstance(model, BeliefNetwork):
        return networks.about(model), networks.arrays(model)
    if isinstance(model, LabelModel):
        model = contents.without_rare(model, min_count)
        return labels.about(model), labels.arrays(model)
    raise errors.bad_setting(
        "the object to save",
        type(model).__name__,
        "a Model, a LabelModel, a Tally, a BeliefNetwork or a fitted estimator",
    )


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Model | Tally | BeliefNetwork | LabelModel:
    """Loads what ``save`` wrote: a Tally, a Model or a BeliefNetwork.

    A truncated, damaged or malicious file raises BadFile. ``verify=False`` skips the checksums of arrays, which saves
    about 15 ms per 100 MB, but wrong numbers may then go unnoticed.

    >>> import banbury as bb, tempfile, pathlib
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "play.banbury"
    >>> bb.save(model, file)
    >>> bb.load(file).tally == model.tally
    True
    """
    about, named_arrays = arrays.read(path, verify)
    return _from_json_and_arrays(path, about, named_arrays)


def _from_json_and_arrays(
    path: str | os.PathLike[str], about: JsonObject, named_arrays: Arrays
) -> Model | Tally | BeliefNetwork | LabelModel:
    """Restores what a file contains: ``about`` is its JSON object, and ``named_arrays`` are its arrays. Raises BadFile,
    which names ``path``, if the contents are inconsistent.
    """
    try:
        if "network" in about:
            from banbury.files import networks

            return networks.from_json_and_arrays(about, named_arrays)
        if "labels" in about:
            from banbury.files import labels

            return labels.from_json_and_arrays(about, named_arrays)
        return contents.from_json_and_arrays(about, named_arrays)
    except errors.BanburyWarning:  # raised if the user turns warnings into errors; the file is valid
        raise
    except Exception as error:  # whatever it is, the cause is in the file
        raise errors.bad_file(path, f"its contents do not fit together ({error})") from None
