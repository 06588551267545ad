"""Files made to do harm, each with what it must be met with.

What an attack is about is wrong, and all the rest is right, checksums included: they must not be what saves us.
"""

from __future__ import annotations

import io
import json
import pickle
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import banbury as bb
import naive_files as files
from banbury.files import from_bytes, to_bytes

ESTIMATED = {"how": "mean", "alpha": 1.0, "seed": 0}
DEEP = "[" * 1500 + "]" * 1500


def saved(thing: bb.Model | bb.Tally | bb.BeliefNetwork | bb.LabelModel) -> bytes:
    return to_bytes(thing)  # type: ignore[arg-type]


def loaded(content: bytes) -> bb.Model | bb.Tally | bb.BeliefNetwork:
    return from_bytes(content, "it.banbury")  # type: ignore[return-value]


def flipped(content: bytes, bits: Iterable[int], path: Path) -> Iterator[int]:
    """One bit after the other is another in the file, which is written in place: to make it anew takes most of the time."""
    path.write_bytes(content)
    with path.open("r+b", buffering=0) as file:
        for bit in bits:
            for byte in (content[bit // 8] ^ 1 << bit % 8, content[bit // 8]):
                file.seek(bit // 8)
                file.write(bytes([byte]))
                if byte != content[bit // 8]:
                    yield bit


@cache
def model() -> bb.Model:
    """One of a text, a category and a number; calibrated."""
    table = {
        "t": ["a good one", "bad", "good good", "no"],
        "w": list("abba"),
        "x": [1.0, 2.0, 4.0, 8.0],
        "y": list("ppqq"),
    }
    families = {"t": bb.Text(), "w": bb.Categorical(), "x": bb.Gaussian()}
    made = bb.estimate(bb.count(table, "y", features=families))
    return made.calibrated(bb.calibrate("temperature", [[-0.1, -2.4], [-3.0, -0.1]], [0, 1]))


def blocks(weights: Any = None) -> bb.Tally:
    """One of a block of normal distributions, and one of kernels."""
    rows = np.random.default_rng(3).normal(size=(12, 4)).round(2)
    table = dict(zip("abcd", rows.T, strict=True)) | {"y": ["p", "q"] * 6}
    families = {("a", "b"): bb.Gaussian(covariance="full"), ("c", "d"): bb.KernelDensity()}
    return bb.count(table, "y", features=families, weights=weights)


def fractional() -> bb.Tally:
    """The same of fractional weights."""
    return blocks(np.linspace(0.25, 2.0, 12))


def network(weights: Any = (0.5, 1.0, 1.0, 2.0)) -> bb.BeliefNetwork:
    """One that was counted: a flag, a category that depends on it, and a number on both; of fractional weights."""
    table = {"f": [True, False, True, False], "w": list("abba"), "x": [1.0, 2.0, 4.0, 8.0]}
    return bb.BeliefNetwork.count(table, {"w": ["f"], "x": ["f", "w"]}, weights=weights)


def weighed(weights: Any = (0.5, 1.0, 0.25, 2.0)) -> bb.Tally:
    """One of a text, a category and a number; of fractional weights."""
    table = {
        "t": ["one good", "bad", "good good", "no"],
        "w": list("abba"),
        "x": [1.0, 2.0, 4.0, 8.0],
        "y": list("ppqq"),
    }
    return bb.count(table, "y", features={"t": bb.Text(), "w": bb.Categorical(), "x": bb.Gaussian()}, weights=weights)


def rounded() -> bb.Tally:
    """The same faded, so that its sums were rounded."""
    return weighed() * 0.3 * (1 / 3)


def golden_texts() -> bb.Tally:
    """One of texts alone."""
    return bb.count(["one good", "bad"], target=["p", "q"])


def tables() -> bb.BeliefNetwork:
    """One whose tables were given."""
    return bb.BeliefNetwork.from_tables(
        {"a": {0: 0.5, 1: 0.5}, "b": {0: {"s": 1, "t": 0}, 1: {"s": 0.5, "t": 0.5}}}, {"b": ["a"]}
    )


Change = Callable[[bytes], bytes]


def to(thing: Callable[[], Any], change: Change) -> Change:
    """An attack on the file of something else."""
    return lambda _: change(saved(thing()))


def of(content: Callable[[], bytes], change: Change) -> Change:
    """An attack on another file."""
    return lambda _: change(content())


def nodes(**changes: Any) -> Change:
    """Other things said of all nodes together."""
    return text(lambda about: about | {"network": about["network"] | changes})


def node(number: int, drop: str | None = None, **changes: Any) -> Change:
    """Another description of a node."""

    def change(about: dict[str, Any]) -> dict[str, Any]:
        every = [n | (changes if i == number else {}) for i, n in enumerate(about["network"]["nodes"])]
        every = [{k: v for k, v in n.items() if k != drop} if i == number else n for i, n in enumerate(every)]
        return about | {"network": about["network"] | {"nodes": every}}

    return text(change)


def text(change: Callable[[Any], Any]) -> Change:
    """Another JSON text."""
    return lambda content: files.rewritten(content, change)


def tally(**changes: Any) -> Change:
    return text(lambda about: about | {"tally": about["tally"] | changes})


def settings(**changes: Any) -> Change:
    return text(lambda about: about | {"model": about["model"] | changes})


def feature(number: int, **changes: Any) -> Change:
    """Another description of a feature."""

    def change(about: dict[str, Any]) -> dict[str, Any]:
        schema = about["tally"]["schema"]
        features = [f | (changes if i == number else {}) for i, f in enumerate(schema["features"])]
        return about | {"tally": about["tally"] | {"schema": schema | {"features": features}}}

    return text(change)


def stored_as(name: str, arrays: Mapping[str, Any]) -> str:
    """The name of an array in the file: sums are those of a group of features, here the only one that has such."""
    if name in arrays:
        return name
    stored = {"counts": "cells"}.get(name, re.sub(r"^(moments|words\.0|products\.0)\.", "", name))
    (found,) = (key for key in arrays if re.fullmatch(rf"\d+\.{re.escape(stored)}", key))
    return found


def array(name: str, change: Callable[[Any], Any]) -> Change:
    """Another array of this name; None: none."""

    def changed(content: bytes) -> bytes:
        arrays = files.unpacked(content)[1]
        stored = stored_as(name, arrays)
        made = change(arrays[stored])
        if made is None:
            return files.rewritten(content, drop=[stored])
        return files.rewritten(content, arrays={stored: made})

    return changed


def cell(name: str, at: Any, number: Any) -> Change:
    """Another number in an array."""

    def change(numbers: np.ndarray) -> np.ndarray:
        numbers[at] = number
        return numbers

    return array(name, change)


def numbers(name: str, changes: Mapping[Any, int]) -> Change:
    """Other whole numbers in an array of limbs, which are as few as will do."""

    def change(limbs: np.ndarray) -> np.ndarray:
        found = files.numbers(limbs)
        for at, number in changes.items():
            found[at] = number
        return files.limbs(found, 3 if name.endswith("parts") else 0)

    return array(name, change)


def number(name: str, at: Any, number: int) -> Change:
    return numbers(name, {at: number})


def flat(content: bytes) -> bytes:
    """A spread below zero, by as little as can be: n Q < S S."""
    _, arrays = files.unpacked(content)
    n, (s, q) = (files.numbers(arrays[stored_as(f"moments.{name}", arrays)])[0, 0] for name in ("n", "sums"))
    assert n * q >= s * s
    return number("moments.sums", (0, 0, 1), (s * s - 1) // n)(content)


def in_parts(name: str) -> Change:
    """Whole numbers as numbers of parts, all of which are whole."""

    def changed(content: bytes) -> bytes:
        about, arrays = files.unpacked(content)
        tally = about["tally"] | {"digits": about["tally"]["digits"] | {name: 18}}
        return files.packed(
            about | {"tally": tally}, arrays | {name: files.limbs(files.numbers(arrays[name]) * 10**18)}
        )

    return changed


def digits(**changes: Any) -> Change:
    return text(lambda about: about | {"tally": about["tally"] | {"digits": about["tally"]["digits"] | changes}})


def without(*names: str) -> Change:
    """The tally without some of what is said of it."""
    return text(lambda about: about | {"tally": {k: v for k, v in about["tally"].items() if k not in names}})


def padded(n: int) -> Callable[[np.ndarray], np.ndarray]:
    """So many limbs more, that say nothing."""
    return lambda limbs: np.concatenate([limbs, np.zeros((*limbs.shape[:-1], n), dtype=np.int64)], axis=-1)


def all_whole(content: bytes) -> bytes:
    """Texts and occurrences in parts, all of which are whole."""
    _, arrays = files.unpacked(content)
    changed = {name: 10**36 + 0 * files.numbers(arrays[name]) for name in ("0.parts", "0.texts.parts")}
    return files.rewritten(content, arrays={name: files.limbs(each, 3) for name, each in changed.items()})


def more(name: str, numbers: np.ndarray) -> Change:
    """One array more."""
    return lambda content: files.rewritten(content, arrays={name: numbers})


def entry(name: str, **changes: Any) -> Change:
    """Another entry in the table of arrays."""

    def changed(content: bytes) -> bytes:
        table = files.header(content)
        table[name] |= changes
        return resigned(content, json.dumps(table, separators=(",", ":")))

    return changed


def resigned(content: bytes, header: str) -> bytes:
    """The same arrays after another header, whose checksum is made right."""
    start = 8 + int.from_bytes(content[:8], "little")
    before, mark, rest = header.partition('"checksum":"')
    return files.signed(before + mark + "0" * 16 + rest[16:]) + content[start:]


def twice(name: str) -> Change:
    def changed(content: bytes) -> bytes:
        table = files.header(content)
        header = json.dumps(table, separators=(",", ":"))
        return resigned(content, header[:-1] + f',"{name}":' + json.dumps(table[name], separators=(",", ":")) + "}")

    return changed


def length(number: int) -> Change:
    return lambda content: number.to_bytes(8, "little") + content[8:]


def swapped(content: bytes) -> bytes:
    """The bytes of the arrays, last first."""
    start = 8 + int.from_bytes(content[:8], "little")
    return content[:start] + content[start:][::-1]


def of_words(bytes_: bytes) -> Change:
    """Other words, as many."""
    return array(
        "words.0.bytes", lambda old: np.frombuffer(bytes_.ljust(len(old), b"z")[: len(old)], dtype=np.uint8).copy()
    )


def as_zip(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("model.banbury", content)
    return made.getvalue()


def unsigned(content: bytes) -> bytes:
    """A header without a checksum."""
    table = files.header(content)
    del table["__metadata__"]["checksum"]
    start = 8 + int.from_bytes(content[:8], "little")
    return files.signed(json.dumps(table, separators=(",", ":"))) + content[start:]


def deep_text(content: bytes) -> bytes:
    """The JSON text nested deep."""
    table = files.header(content)
    metadata = table["__metadata__"] | {"banbury-1": DEEP}
    return resigned(content, json.dumps({"__metadata__": metadata}, separators=(",", ":")))


def columns(names: list[str]) -> Change:
    """Other columns than the features'."""
    return text(
        lambda about: about | {"tally": about["tally"] | {"schema": about["tally"]["schema"] | {"columns": names}}}
    )


def keys_backwards(content: bytes) -> bytes:
    """The keys of every feature, last first."""
    return text(
        lambda about: (
            about | {"tally": about["tally"] | {"keys": [[k[::-1] for k in group] for group in about["tally"]["keys"]]}}
        )
    )(content)


def of_counts(content: bytes) -> bytes:
    """The number as a Poisson's, whose sum is below 0."""
    changed = numbers("moments.sums", {(0, 0, 0): -50 * 2**57, (0, 0, 1): 5000 * 4**57})
    return changed(feature(2, family="poisson")(content))


def of_small_counts(content: bytes) -> bytes:
    """The number as a Poisson's, of which all are between 0 and 1."""
    changed = numbers("moments.sums", {(0, 0, 0): 2**57 // 2, (0, 0, 1): 4**57 // 4})
    return changed(feature(2, family="poisson")(content))


def named(name: str) -> Change:
    """The same with another name at its beginning."""
    return lambda content: files.packed(*files.unpacked(content), beginning=name)


def endless(content: bytes) -> bytes:
    """An array of nothing, 2**62 times."""
    made = files.rewritten(content, arrays={"nothing": np.zeros(0, dtype=np.int64)})
    return entry("nothing", shape=[2**62, 0])(made)


class Runs:
    """What a pickle that is loaded would do."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('a file was run')",)


ATTACKS: Mapping[str, tuple[str, Change]] = {
    "empty": ("BadFile", lambda _: b""),
    "seven-bytes": ("BadFile", lambda content: content[:7]),
    "pickle": ("BadFile", lambda _: pickle.dumps(Runs())),
    "zip": ("BadFile", as_zip),
    "header-length-2-to-the-63": ("BadFile", length(2**63)),
    "header-length-2-to-the-64": ("BadFile", length(2**64 - 1)),
    "header-longer-than-the-file": ("BadFile", length(100_000)),
    "header-without-length": ("BadFile", length(0)),
    "header-of-deep-json": ("BadFile", lambda _: files.signed(DEEP)),
    "header-of-a-list": ("BadFile", lambda _: files.signed("[]")),
    "header-without-metadata": ("BadFile", lambda _: files.signed("{}")),
    "header-not-utf-8": ("BadFile", lambda _: (16).to_bytes(8, "little") + b'{"\xff\xfe": 1}     '),
    "header-changed": ("DamagedFile", lambda content: content.replace(b'\\"skipped\\": 0', b'\\"skipped\\": 9', 1)),
    "header-without-checksum": ("DamagedFile", unsigned),
    "truncated": ("DamagedFile", lambda content: content[:-1]),
    "appended": ("DamagedFile", lambda content: content + b"\0"),
    "array-changed": ("DamagedFile", lambda content: content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]),
    "arrays-backwards": ("DamagedFile", swapped),
    "array-twice": ("BadFile", twice("classes")),
    "array-without-checksum": ("DamagedFile", lambda content: files.packed(*files.unpacked(content), sums=False)),
    "offsets-overlap": ("DamagedFile", entry("classes", data_offsets=[8, 24])),
    "offsets-outside": ("DamagedFile", entry("classes", data_offsets=[10**15, 10**15 + 16])),
    "offsets-negative": ("DamagedFile", entry("classes", data_offsets=[-16, 0])),
    "offsets-backwards": ("DamagedFile", entry("classes", data_offsets=[16, 0])),
    "offsets-of-texts": ("DamagedFile", entry("classes", data_offsets=["0", "16"])),
    "shape-too-large": ("DamagedFile", entry("classes", shape=[2**62, 2**62])),
    "shape-of-an-endless-nothing": ("DamagedFile", endless),
    "shape-negative": ("DamagedFile", entry("classes", shape=[-1, -2])),
    "shape-of-many-dimensions": ("DamagedFile", entry("classes", shape=[2] + [1] * 100)),
    "dtype-unknown": ("DamagedFile", entry("classes", dtype="OBJECT")),
    "dtype-of-floats": ("BadFile", entry("classes", dtype="F64")),
    "format-999": ("UnknownFormat", named("banbury-999")),
    "format-before-there-was-one": ("UnknownFormat", named("banbury")),
    "format-of-a-text": ("BadFile", named("banbury-one")),
    "format-of-very-many-digits": ("BadFile", named("banbury-" + "1" * 5000)),
    "text-of-a-list": ("BadFile", text(lambda about: [about])),
    "text-of-deep-json": ("BadFile", deep_text),
    "tally-missing": ("BadFile", text(lambda about: {k: v for k, v in about.items() if k != "tally"})),
    "classes-too-many": ("BadFile", tally(classes=["p", "q", "r"])),
    "classes-too-few": ("BadFile", tally(classes=["p"])),
    "class-twice": ("BadFile", tally(classes=["p", "p"])),
    "class-of-a-list": ("BadFile", tally(classes=[["p"], "q"])),
    "class-not-a-number": ("BadFile", tally(classes=[float("nan"), 1.0])),
    "class-missing": ("BadFile", tally(classes=["p", None])),
    "keys-too-many": ("BadFile", tally(keys=[[], [["a", "b", "c"]], []])),
    "keys-of-no-feature": ("BadFile", tally(keys=[[], [["a", "b"], ["c"]], []])),
    "skipped-negative": ("BadFile", tally(skipped=-1)),
    "skipped-too-many": ("BadFile", tally(skipped=10**400)),
    "columns-without-a-feature": ("BadFile", columns(["t", "w"])),
    "family-of-flags-with-keys-of-texts": ("BadFile", feature(1, family="bernoulli")),
    "family-unknown": ("BadFile", feature(1, family="os.system")),
    "family-of-another-shape": ("BadFile", feature(1, family="gaussian")),
    "family-of-bins-with-keys-of-texts": ("BadFile", feature(1, family="histogram", kind="float")),
    "setting-unknown": ("BadFile", feature(1, settings={"colour": 1})),
    "setting-out-of-range": ("BadFile", feature(1, settings={"alpha": -1})),
    "setting-of-pairs": ("BadFile", feature(1, settings={"alpha": {"pairs": [[[], 1]]}})),
    "tokens-of-a-broken-expression": ("BadFile", feature(0, settings={"tokens": "(((("})),
    "vocabulary-in-another-file": ("BadFile", feature(0, settings={"vocabulary": "hostile/empty.banbury"})),
    "feature-without-name": ("BadFile", feature(1, name=None)),
    "feature-of-a-name-twice": ("BadFile", feature(1, name="t")),
    "feature-of-unit-0": ("BadFile", feature(2, unit=0.0)),
    "feature-of-infinite-origin": ("BadFile", feature(2, origin=float("inf"))),
    "feature-of-an-unknown-kind": ("BadFile", feature(1, kind="code")),
    "how-unknown": ("BadFile", settings(how="magic")),
    "alpha-huge": ("BadFile", settings(alpha=1e308)),
    "alpha-infinite": ("BadFile", settings(alpha=float("inf"))),
    "alpha-not-a-number": ("BadFile", settings(alpha=float("nan"))),
    "alpha-negative": ("BadFile", settings(alpha=-1.0)),
    "alpha-a-text": ("BadFile", settings(alpha="1")),
    "one-fold": ("BadFile", settings(folds=1)),
    "folds-a-text": ("BadFile", settings(folds="3")),
    "seed-negative": ("BadFile", settings(seed=-1)),
    "class-prior-of-others": ("BadFile", settings(class_prior=[1.0])),
    "class-prior-above-1": ("BadFile", settings(class_prior=[5.0, 5.0])),
    "model-with-features": ("BadFile", settings(features={"w": "categorical"})),
    "array-unknown": ("BadFile", more("code", np.zeros(1))),
    "array-of-format-1": ("BadFile", more("classes.rows", np.zeros(2, dtype=np.int64))),
    "rows-missing": ("BadFile", array("classes", lambda _: None)),
    "rows-negative": ("BadFile", number("classes", 0, -5)),
    "rows-fewer-than-counts": ("BadFile", number("classes", 0, 1)),
    "rows-of-another-shape": ("BadFile", array("classes", lambda rows: rows.reshape(1, 2))),
    "rows-more-than-2-to-the-63": ("BadFile", number("classes", 0, 2**63)),
    "rows-more-than-2-to-the-63-together": ("BadFile", numbers("classes", {0: 2**62, 1: 2**62})),
    "counts-negative": ("BadFile", number("counts", (0, 0), -1)),
    "limbs-of-no-length": ("BadFile", array("classes", lambda limbs: limbs[..., :0])),
    "limbs-without-an-axis": ("BadFile", array("classes", lambda limbs: limbs[..., 0])),
    "limbs-more-than-needed": ("BadFile", array("classes", padded(1))),
    "limbs-more-than-any-number-has": ("BadFile", array("classes", padded(60))),
    "limbs-that-no-sum-has": ("BadFile", number("classes", 0, 2**2000)),
    "limbs-of-32-bits": ("BadFile", array("classes", lambda limbs: limbs.astype(np.uint32))),
    "limbs-of-empty-sums-more-than-needed": ("BadFile", to(golden_texts, array("classes", padded(1)))),
    "digits-of-7": ("BadFile", digits(classes=7)),
    "digits-of-36": ("BadFile", digits(classes=36)),
    "digits-negative": ("BadFile", digits(classes=-18)),
    "digits-of-a-text": ("BadFile", digits(classes="0")),
    "digits-false": ("BadFile", digits(classes=False)),
    "digits-real": ("BadFile", digits(classes=0.0)),
    "digits-more-than-needed": ("BadFile", in_parts("classes")),
    "digits-of-whole-rows": ("BadFile", digits(classes=18)),
    "digits-of-an-unknown-array": ("BadFile", digits(code=0)),
    "digits-missing": ("BadFile", without("digits")),
    "digits-of-a-list": ("BadFile", tally(digits=[0, 0, 0, 0])),
    "rounded-missing": ("BadFile", without("rounded")),
    "rounded-of-a-number": ("BadFile", tally(rounded=1)),
    "rounded-of-a-text": ("BadFile", tally(rounded="no")),
    "rounded-rows-negative": ("BadFile", to(rounded, number("classes", 0, -1))),
    "rounded-rows-none-of-a-class-with-values": ("BadFile", to(rounded, number("classes", 0, 0))),
    "rounded-rows-more-than-2-to-the-63": ("BadFile", to(rounded, number("classes", 0, 2**63 * 10**18))),
    "rounded-counts-negative": ("BadFile", to(rounded, number("counts", (0, 0), -1))),
    "rounded-counts-more-than-2-to-the-63": ("BadFile", to(rounded, number("counts", (0, 0), 2**63 * 10**18))),
    "rounded-spread-below-0": ("BadFile", to(rounded, flat)),
    "rounded-sums-without-rows": ("BadFile", to(rounded, number("moments.n", (0, 0), 0))),
    "rounded-sums-beyond-doubles": ("BadFile", to(rounded, number("moments.sums", (0, 0, 1), 2**1200))),
    "sums-of-squares-too-large": ("BadFile", number("moments.sums", (0, 0, 1), 2**1000)),
    "sums-too-large": ("BadFile", numbers("moments.sums", {(0, 0, 0): -(2**500), (0, 0, 1): 2**1000})),
    "sums-of-counts-below-0": ("BadFile", of_counts),
    "sums-of-counts-above-their-squares": ("BadFile", of_small_counts),
    "sums-of-negative-squares": ("BadFile", number("moments.sums", (0, 0, 1), -9)),
    "sums-of-a-spread-below-0": ("BadFile", flat),
    "words-end-before-they-begin": ("BadFile", cell("words.0.ends", 0, 2**40)),
    "words-end-negative": ("BadFile", cell("words.0.ends", 0, -1)),
    "words-end-beyond-their-bytes": ("BadFile", cell("words.0.ends", -1, 2**62)),
    "words-not-utf-8": ("BadFile", of_words(b"\x80\x81")),
    "words-not-in-order": ("BadFile", of_words(b"zz")),
    "words-start-outside": ("BadFile", cell("words.0.starts", -1, 2**62)),
    "words-start-backwards": ("BadFile", cell("words.0.starts", 1, -2**62)),
    "words-of-an-unknown-class": ("BadFile", cell("words.0.classes", 0, 2**32 - 1)),
    "words-without-documents": ("BadFile", cell("words.0.documents", 0, 0)),
    "words-in-too-many-documents": ("BadFile", cell("words.0.documents", 0, 2**32 - 1)),
    "words-with-an-unknown-array": ("BadFile", more("words.0.code", np.zeros(1))),
    "texts-negative": ("BadFile", cell("words.0.texts", 0, -1)),
    "texts-more-than-rows": ("BadFile", cell("words.0.texts", 0, 2**40)),
    "texts-in-parts-negative": ("BadFile", to(weighed, number("words.0.texts.parts", 0, -(10**18)))),
    "texts-in-parts-more-than-rows": ("BadFile", to(weighed, number("words.0.texts.parts", 0, 10**38))),
    "texts-in-parts-missing": ("BadFile", to(weighed, array("words.0.texts.parts", lambda _: None))),
    "words-in-parts-negative": ("BadFile", to(weighed, number("words.0.parts", (0, 0), -(10**18)))),
    "words-in-parts-of-negative-documents": ("BadFile", to(weighed, number("words.0.parts", (0, 1), -1))),
    "words-in-parts-without-documents": ("BadFile", to(weighed, number("words.0.parts", (0, 1), 0))),
    "words-in-parts-more-than-2-to-the-63": ("BadFile", to(weighed, number("words.0.parts", (0, 0), 2**63 * 10**36))),
    "words-in-parts-of-too-many-documents": ("BadFile", to(weighed, number("words.0.parts", (0, 1), 10**38))),
    "words-in-parts-of-two-limbs": ("BadFile", to(weighed, array("words.0.parts", lambda limbs: limbs[..., :2].copy()))),
    "words-in-parts-and-whole": ("BadFile", to(weighed, more("words.0.texts", np.ones(2, dtype=np.int64)))),
    "words-in-parts-that-are-all-whole": ("BadFile", to(weighed, all_whole)),
    "words-in-real-weights": ("BadFile", to(weighed, more("words.0.weights", np.ones((4, 2, 3))))),
    "block-of-more-rows-than-there-are": ("BadFile", to(blocks, number("products.0.n", 0, 10**6))),
    "block-of-columns-that-go-together-too-much": ("BadFile", to(blocks, number("products.0.sums", (0, 3), 10**6 * 4**57))),
    "block-of-a-spread-below-0": ("BadFile", to(blocks, number("products.0.sums", (0, 2), 0))),
    "block-of-sums-too-large": ("BadFile", to(blocks, number("products.0.sums", (0, 2), 2**1000))),
    "block-of-cells-without-rows": ("BadFile", to(blocks, array("counts", np.zeros_like))),
    "block-of-a-cell-without-rows": ("BadFile", to(blocks, number("counts", 3, 0))),
    "block-of-cells-not-in-order": ("BadFile", to(blocks, keys_backwards)),
    "block-of-a-unit-of-no-power": ("BadFile", to(blocks, feature(1, unit=3.0))),
    "block-of-scales-not-numbers": ("BadFile", to(blocks, feature(1, scales=[[float("nan"), 1.0], [0.0, 1.0]]))),
    "block-of-a-width-below-0": ("BadFile", to(blocks, feature(1, scales=[[0.0, -1.0], [0.0, 1.0]]))),
    "block-of-scales-too-many": ("BadFile", to(blocks, feature(1, scales=[[0.0, 1.0]] * 3))),
    "weights-too-large-in-their-sum": ("BadFile", to(fractional, number("classes", ..., 2**62 * 10**18))),
    "weights-of-cells-too-large": ("BadFile", to(fractional, number("counts", (0, 0), 10**40))),
    "calibration-unknown": ("BadFile", text(lambda about: about | {"calibration": "magic"})),
    "calibration-of-other-classes": ("BadFile", cell("calibration.n_classes", 0, 3)),
    "calibration-of-temperature-0": ("BadFile", cell("calibration.temperature", 0, 0.0)),
    "calibration-of-another-size": ("BadFile", array("calibration.temperature", lambda old: np.repeat(old, 3))),
    "calibration-missing": ("BadFile", array("calibration.temperature", lambda _: None)),
    "network-without-nodes": ("BadFile", to(network, nodes(nodes=[]))),
    "network-of-a-list": ("BadFile", to(network, text(lambda about: about | {"network": [1]}))),
    "network-without-settings": ("BadFile", to(network, text(lambda about: about | {"model": {"how": "mean"}}))),
    "network-of-tables-that-are-sums": ("BadFile", to(network, text(lambda about: about | {"model": None}))),
    "network-of-sums-that-are-tables": ("BadFile", to(tables, text(lambda about: about | {"model": ESTIMATED}))),
    "network-how-unknown": ("BadFile", to(network, settings(how="magic"))),
    "network-alpha-not-a-number": ("BadFile", to(network, settings(alpha=float("nan")))),
    "network-seed-negative": ("BadFile", to(network, settings(seed=-1))),
    "network-with-a-class-prior": ("BadFile", to(network, settings(class_prior=None))),
    "network-of-an-unknown-target": ("BadFile", to(network, nodes(target="y"))),
    "network-target-of-a-list": ("BadFile", to(network, nodes(target=["f"]))),
    "network-columns-of-numbers": ("BadFile", to(network, nodes(columns=[1, 2, 3]))),
    "network-named-perhaps": ("BadFile", to(network, nodes(named="yes"))),
    "network-left-out-of-a-list": ("BadFile", to(network, nodes(left_out=["z"]))),
    "node-twice": ("BadFile", to(network, node(1, name="f"))),
    "node-without-name": ("BadFile", to(network, node(1, name=None))),
    "node-its-own-parent": ("BadFile", to(network, node(0, parents=["f"]))),
    "node-parents-in-a-cycle": ("BadFile", to(network, node(0, parents=["x"]))),
    "node-parent-unknown": ("BadFile", to(network, node(1, parents=["z"]))),
    "node-parent-twice": ("BadFile", to(network, node(2, parents=["f", "f"]))),
    "node-parent-a-number": ("BadFile", to(network, node(1, parents=[0]))),
    "node-parents-of-a-text": ("BadFile", to(network, node(1, parents="f"))),
    "node-parents-of-another-size": ("BadFile", to(network, node(1, parents=[]))),
    "node-of-very-many-parents": ("BadFile", to(network, node(1, parents=["f"] * 100))),
    "node-family-unknown": ("BadFile", to(network, node(1, family="os.system"))),
    "node-family-of-words": ("BadFile", to(network, node(1, family="text", settings={"vocabulary": "/etc/passwd"}))),
    "node-family-of-moments": ("BadFile", to(network, node(1, family="gaussian"))),
    "node-family-of-bins-without-cuts": ("BadFile", to(network, node(1, family="histogram", kind="float"))),
    "node-family-of-flags-with-texts": ("BadFile", to(network, node(1, family="bernoulli"))),
    "node-of-an-unknown-kind": ("BadFile", to(network, node(1, kind="code"))),
    "node-of-bins-of-texts": ("BadFile", to(network, node(2, kind="string"))),
    "node-setting-unknown": ("BadFile", to(network, node(1, settings={"colour": 1}))),
    "node-setting-out-of-range": ("BadFile", to(network, node(1, settings={"alpha": -1}))),
    "node-values-too-many": ("BadFile", to(network, node(1, values=[f"{k:05}" for k in range(100)]))),
    "node-values-too-few": ("BadFile", to(network, node(1, values=["a"]))),
    "node-values-missing": ("BadFile", to(network, node(1, drop="values"))),
    "node-value-twice": ("BadFile", to(network, node(1, values=["a", "a"]))),
    "node-value-of-a-list": ("BadFile", to(network, node(1, values=["a", ["b"]]))),
    "node-value-not-a-number": ("BadFile", to(network, node(1, values=[1.0, float("nan")]))),
    "node-values-not-in-order": ("BadFile", to(network, node(1, values=["b", "a"]))),
    "node-cuts-not-in-order": ("BadFile", to(network, node(2, cuts=[6.0, 3.0, 1.5]))),
    "node-cuts-not-numbers": ("BadFile", to(network, node(2, cuts=[1.5, float("nan"), 6.0]))),
    "node-cuts-infinite": ("BadFile", to(network, node(2, cuts=[1.5, 3.0, float("inf")]))),
    "node-cuts-of-texts": ("BadFile", to(network, node(2, cuts=["1", "2", "3"]))),
    "node-cuts-too-few": ("BadFile", to(network, node(2, cuts=[]))),
    "node-ends-of-three": ("BadFile", to(network, node(2, ends=[1.0, 2.0, 3.0]))),
    "node-ends-backwards": ("BadFile", to(network, node(2, ends=[8.0, 1.0]))),
    "network-rows-missing": ("BadFile", to(network, array("classes", lambda _: None))),
    "network-rows-negative": ("BadFile", to(network, number("classes", 0, -1))),
    "network-rows-fewer-than-values": ("BadFile", to(network, number("classes", 0, 5 * 10**17))),
    "network-rows-more-than-2-to-the-63": ("BadFile", to(network, number("classes", 0, 2**63 * 10**18 + 1))),
    "network-values-fewer-than-cells": ("BadFile", to(network, number("cells", 0, 5 * 10**17))),
    "network-cells-of-another-shape": ("BadFile", to(network, array("cells", lambda rows: rows[None]))),
    "network-cells-negative": ("BadFile", to(network, number("cells", -1, -1))),
    "network-cells-too-few": ("BadFile", to(network, array("cells", lambda rows: rows[:-1].copy()))),
    "network-cells-of-floats": ("BadFile", to(network, array("cells", lambda rows: rows.astype(float)))),
    "network-cells-of-nothing": ("BadFile", to(network, number("cells", -1, 0))),
    "network-limbs-of-no-length": ("BadFile", to(network, array("cells", lambda limbs: limbs[..., :0]))),
    "network-limbs-more-than-needed": ("BadFile", to(network, array("cells", padded(1)))),
    "network-digits-of-7": ("BadFile", to(network, digits(**{"0.cells": 7}))),
    "network-digits-missing": ("BadFile", to(network, without("digits"))),
    "network-tally-missing": ("BadFile", to(network, text(lambda about: about | {"tally": None}))),
    "network-places-missing": ("BadFile", to(network, array("places", lambda _: None))),
    "network-places-too-few": ("BadFile", to(network, array("places", lambda places: places[:-1].copy()))),
    "network-places-not-in-order": ("BadFile", to(network, array("places", lambda places: places[::-1].copy()))),
    "network-places-twice": ("BadFile", to(network, cell("places", 1, 0))),
    "network-places-negative": ("BadFile", to(network, cell("places", 0, -1))),
    "network-places-beyond-the-tables": ("BadFile", to(network, cell("places", -1, 2**62))),
    "network-places-of-floats": ("BadFile", to(network, array("places", lambda places: places.astype(float)))),
    "network-with-an-unknown-array": ("BadFile", to(network, more("code", np.zeros(1)))),
    "tables-missing": ("BadFile", to(tables, array("tables", lambda _: None))),
    "tables-too-short": ("BadFile", to(tables, array("tables", lambda shares: shares[:-1]))),
    "tables-not-numbers": ("BadFile", to(tables, cell("tables", 0, np.nan))),
    "tables-negative": ("BadFile", to(tables, cell("tables", slice(0, 2), [-0.5, 1.5]))),
    "tables-huge": ("BadFile", to(tables, cell("tables", slice(0, 2), [1e308, 1e308]))),
    "tables-that-do-not-sum-to-1": ("BadFile", to(tables, cell("tables", 0, 0.75))),
    "tables-with-an-unknown-array": ("BadFile", to(tables, more("code", np.zeros(1)))),
}  # fmt: skip
