"""The evidence table: a model as Arrow tables, from which every posterior can be computed.

Nothing here knows a family. What a column says is asked of its parameters by scoring: every listed value, and every stretch
between cuts, is a row that is scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags.lexicon import Lexicon
from banbury.families.cells import between
from banbury.families.family import Curve, Feature, LinearWords, Parameters
from banbury.reading import read
from banbury.sums import Keys, in_order
from banbury.tally.table import batches

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
UNSEEN = "\x00 a value that no row has"
MOST_CELLS = 1 << 24  # of a pair of columns, all values of one by all of the other
ULPS = 3  # by which a cut may have been rounded
LARGEST = 1.7e308
SUGGESTED = (
    "a family that can be written as a table (Categorical, Bernoulli, Histogram, QuantileTree, Gaussian, Poisson, Exponential, "
    "Gamma, Text or Occurrences), without how='predictive'"
)


class EvidenceTable(NamedTuple):
    """A model as Arrow tables; ``docs/tutorials/export.md`` describes them. ``answers`` is "classes" or "labels"."""

    version: int
    answers: str
    prior: pa.Table
    columns: pa.Table
    values: pa.Table
    steps: pa.Table
    curves: pa.Table
    pairs: pa.Table
    words: pa.Table
    calibration: pa.Table

    def __repr__(self) -> str:
        sizes = (f"{name} {table.num_rows:,}" for name, table in self.tables.items() if table.num_rows)
        return f"EvidenceTable of {self.answers}, rows: {', '.join(sizes)}"

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The tables by name."""
        return dict(zip(self._fields[2:], self[2:], strict=True))

    def words_of(self, column: int) -> tuple[list[str], Real, Real, Real]:
        """The words of a column, what they say, (words, classes), their scales, and what every text says."""
        part = self.words.filter(np.asarray(self.words["column"]) == column)
        words = part["word"].to_pylist()
        place = {word: i for i, word in enumerate(dict.fromkeys(word for word in words if word is not None))}
        k = self.prior.num_rows
        table = np.zeros((len(place), k))
        common = np.zeros(k)
        scales = np.ones(len(place))
        numbers = (part[name].to_pylist() for name in ("scale", "class", "nats"))
        for word, scale, c, nats in zip(words, *numbers, strict=True):
            if word is None:
                common[c] = nats
            else:
                table[place[word], c] = nats
                scales[place[word]] = scale
        return list(place), table, scales, common

    def entries_of(self, name: str) -> list[tuple[dict[str, Any], list[float]]]:
        """The entries of ``values``, ``steps`` or ``pairs``, whose rows stand class by class, each with its nats."""
        table = self.tables[name]
        k = self.prior.num_rows
        nats = table["nats"].to_numpy().reshape(-1, k).tolist()
        return list(zip(table.take(np.arange(0, table.num_rows, k)).to_pylist(), nats, strict=True))


class Entries(NamedTuple):
    """What a column may hold: rows to score, and how a table names each."""

    probes: list[Any]
    names: list[tuple[Any, ...]]  # of values: value, number, unseen; of steps: from, to
    are_steps: bool


def evidence_table(
    models: Sequence[Any],
    prior: Real,
    names: Sequence[Any],
    calibration: Sequence[tuple[Any, ...]],
    counted: Any,
    min_rows: int,
    *,
    of_labels: bool = False,
) -> EvidenceTable:
    """The tables of one model; or of the yes or no models of labels, None for labels that only the prior tells.

    ``counted`` is the model whose tally says how many rows have a value.
    """
    errors.check_whole("min_rows", min_rows, 0)
    maker = _Maker(models, len(names), of_labels, counted, min_rows)
    maker.add_features()
    rows = list(zip(range(len(names)), map(str, names), prior.tolist(), strict=True))
    return maker.make_tables(rows, calibration)


def calibration_rows(calibration: Any) -> list[tuple[Any, ...]]:
    """Rows of the calibration table, (class, method, x, y), from the numbers that a calibration keeps."""
    if calibration is None:
        return []
    state = calibration.state()
    method = calibration.method
    n = int(state["n_classes"][0])
    if method == "temperature":
        return [(None, method, float(state["temperature"][0]), float(state["floor"][0]))]
    if method == "platt":
        corners = [
            np.array([[slope, intercept]])
            for slope, intercept in zip(state["slopes"], state["intercepts"], strict=True)
        ]
        mirrored = corners[0] * [1.0, -1.0]
    else:
        ends = np.cumsum(state["lengths"])[:-1]
        corners = np.split(np.stack([state["odds"], state["shares"]], axis=1), ends)
        mirrored = ([0.0, 1.0] - corners[0])[::-1]
    if n == 2:  # the calibration keeps the rule of the second class alone
        corners.insert(0, mirrored)
    return [(c, method, *corner) for c, class_corners in enumerate(corners) for corner in class_corners.tolist()]


def centre_over_classes(says: Real) -> Real:
    """What entries say of classes, without what they say of all; where a class is impossible, less the most of any."""
    highest = says.max(axis=1, keepdims=True)
    finite = np.isfinite(says).all(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        middle = np.where(finite, says.mean(axis=1, keepdims=True), np.where(np.isfinite(highest), highest, 0.0))
        return np.where(says == middle, 0.0, says - middle)


@dataclass
class _Maker:
    """Tables in the making."""

    models: Sequence[Any]
    n_classes: int
    of_labels: bool
    counted: Any
    min_rows: int

    def __post_init__(self) -> None:
        self.parameters = [{} if model is None else _by_name(model) for model in self.models]
        self.columns: dict[str, dict[str, Any]] = {}
        self.entries: dict[str, Entries] = {}
        self.says: dict[str, Real] = {}  # of the entries of a column
        self.pairs: list[tuple[str, str, Real]] = []
        self.curves: list[tuple[Any, ...]] = []
        self.words: list[tuple[Any, ...]] = []  # arrays: column, word, scale, class, nats

    def add_features(self) -> None:
        every: dict[str, Feature] = {}
        for by_name in self.parameters:
            every |= {name: parameters.features[0] for name, parameters in by_name.items()}
        for name, feature in every.items():
            self._add(name, feature)

    def _add(self, name: str, feature: Feature) -> None:
        forms = [None if parameters is None else parameters.linear() for parameters in self._each(name)]
        if any(form is not None for form in forms):
            self._add_words(name, feature, forms)
            return
        curves = [None if parameters is None else parameters.curve(0) for parameters in self._each(name)]
        if any(curve is not None for curve in curves):
            self._add_curves(name, feature, curves)
            return
        entries = [self._entries(name, column, len(feature.inputs) == 1) for column in feature.inputs]
        probed_entries = [entry for entry in entries if entry is not None]
        if len(probed_entries) == len(entries) == 1:
            column = feature.inputs[0]
            self.says[column] = self._scores(name, {column: probed_entries[0].probes})
            self.entries[column] = probed_entries[0]
            self._number_of(column, "number" if _holds_numbers(probed_entries[0]) else "string")
        elif len(probed_entries) == len(entries) == 2:
            self._add_pair(name, feature.inputs, probed_entries)
        else:
            raise unwritable_family(feature)

    def _each(self, name: str) -> list[Parameters | None]:
        """The parameters of a feature in every model."""
        return [by_name.get(name) for by_name in self.parameters]

    def _number_of(self, column: str, kind: str, **reading: Any) -> int:
        """The number of a column, which is listed once."""
        if column not in self.columns:
            self.columns[column] = {"column": len(self.columns), "name": column, "kind": kind, **reading}
        return int(self.columns[column]["column"])

    def _together(self, statements: Sequence[Real | None], shape: tuple[int, ...]) -> Real:
        """What the models say, (..., classes): of labels the log-odds of each."""
        if not self.of_labels:
            (says,) = statements
            assert says is not None
            return says
        odds = np.zeros((*shape, self.n_classes))
        for k, says in enumerate(statements):
            if says is None:
                continue
            if not np.isfinite(says).all():
                raise errors.bad_setting(
                    "how", self.models[k].choice.how, "a different setting for labels as tables, such as 'mean'"
                )
            odds[..., k] = says[..., 1] - says[..., 0]
        return odds

    # Values and stretches of numbers

    def _entries(self, name: str, column: str, alone: bool) -> Entries | None:
        parameters = [group for group in self._each(name) if group is not None]
        keys_by_model = [group.categories(0, column) for group in parameters]
        if all(keys is not None for keys in keys_by_model):
            return _value_entries(column, in_order({key for keys in keys_by_model for key in keys or ()}))
        if any(keys is not None for keys in keys_by_model):
            return None
        cuts_by_model = [group.cuts(column) for group in parameters]
        if any(cuts is None for cuts in cuts_by_model):
            return None
        every = np.unique(np.array([cut for cuts in cuts_by_model for cut in cuts or ()], dtype=np.float64))
        if alone:
            every = self._effective_cuts(name, column, every)
        ends = [-np.inf, *every.tolist(), np.inf]
        spans = [*pairwise(ends), (None, None)]
        return Entries([*_middles(every).tolist(), None], spans, True)

    def _effective_cuts(self, name: str, column: str, cuts: Real) -> Real:
        """The least numbers that score as those beyond the cuts do: the kernel may round where a bin begins."""
        if not len(cuts):
            return cuts
        near = [cuts]
        for _ in range(ULPS):
            near = [np.nextafter(near[0], -np.inf), *near, np.nextafter(near[-1], np.inf)]
        says = self._scores(name, {column: np.concatenate(near).tolist()}).reshape(len(near), len(cuts), -1)
        beyond = (says == says[-1]).all(axis=2)
        first = len(near) - np.logical_and.accumulate(beyond[::-1]).sum(axis=0)
        first = np.where(first == 0, ULPS, first)  # it says the same on both sides
        return np.asarray(np.stack(near)[first, np.arange(len(cuts))])

    def _scores(self, name: str, probes: Mapping[str, list[Any]]) -> Real:
        """What every row says of each class, centred, (rows, classes)."""
        n_rows = len(next(iter(probes.values())))
        model_scores = [
            None if parameters is None else _score(parameters, model, probes)
            for parameters, model in zip(self._each(name), self.models, strict=True)
        ]
        says = self._together(model_scores, (n_rows,))
        return says if self.of_labels else centre_over_classes(says)

    def _add_pair(self, name: str, columns: Sequence[str], entries_of_both: Sequence[Entries]) -> None:
        first, second = columns
        for column, entries in zip(columns, entries_of_both, strict=True):
            kept = self.entries.setdefault(column, entries)
            if kept.names != entries.names:
                raise errors.bad_setting("column", column, "a column that all its users cut in the same way")
            self.says.setdefault(column, np.zeros((len(entries.probes), self.n_classes)))
            self._number_of(column, "number" if _holds_numbers(entries) else "string")
        n = len(entries_of_both[0].probes)
        m = len(entries_of_both[1].probes)
        if n * m * self.n_classes > MOST_CELLS:
            raise errors.bad_setting(
                "columns",
                f"{first!r} and {second!r}",
                f"columns with fewer values, because they have {n * m:,} pairs of values",
            )
        probes = {
            first: [a for a in entries_of_both[0].probes for _ in range(m)],
            second: list(entries_of_both[1].probes) * n,
        }
        self.pairs.append((first, second, self._scores(name, probes).reshape(n, m, -1)))

    # Curves

    def _add_curves(self, name: str, feature: Feature, curves: Sequence[Curve | None]) -> None:
        number = self._number_of(feature.name, "number")
        for k, curve in enumerate(curves):
            if curve is None:
                continue
            for c, row in enumerate(zip(*curve.by_class, strict=True)):
                sign = (-1.0, 1.0)[c] if self.of_labels else 1.0
                coefficients = [sign * float(x) for x in row[2:]]
                self.curves.append(
                    (number, k if self.of_labels else c, curve.origin, curve.unit, *row[:2], *coefficients)
                )

    # Words

    def _add_words(self, name: str, feature: Feature, forms: Sequence[LinearWords | None]) -> None:
        some = next(form for form in forms if form is not None)
        words = list(dict.fromkeys(word for form in forms if form is not None for word in form.words))
        place = {word: k for k, word in enumerate(words)}
        tables = list[Real | None]()
        intercepts = list[Real | None]()
        scale = np.ones(len(words))
        for form in forms:
            if form is None:
                tables.append(None)
                intercepts.append(None)
                continue
            places = [place[word] for word in form.words]
            table = np.zeros((len(words), form.weights.shape[1]))
            table[places] = form.weights
            if form.scale is not None:
                scale[places] = form.scale
            tables.append(table)
            intercepts.append(form.intercepts)
        number = self._number_of(name, "text" if feature.reads_text else "counts", **some.reading)
        nats = self._together(tables, (len(words),))
        rows = np.flatnonzero(self._rows_of_words(name, words) >= self.min_rows)
        kept = (nats[rows] != 0) | (np.arange(self.n_classes) == 0)
        at, classes = np.nonzero(kept)
        every = self._together(intercepts, ())
        self.words.append((number, [None] * self.n_classes, np.ones(self.n_classes), np.arange(self.n_classes), every))
        word_numbers = rows[at]
        self.words.append(
            (
                number,
                [words[k] for k in word_numbers.tolist()],
                scale[word_numbers],
                classes,
                nats[word_numbers, classes],
            )
        )

    # Rows that have an entry

    def _rows_of_words(self, name: str, words: Sequence[str]) -> Real:
        if not self.min_rows:
            return np.zeros(len(words))
        tally = self.counted.tally
        lexicon = Lexicon.of(tally.schema[name], tally.of(name))
        rows = dict(zip(lexicon.words, lexicon.documents().sum(axis=1).tolist(), strict=True))
        return np.array([rows.get(word, 0.0) for word in words])

    def _rows_of_entries(self, column: str, entries: Entries) -> Real:
        """How many rows have each entry; without end where it stands for no value of a row."""
        rows = np.full(len(entries.probes), np.inf)
        tally = self.counted.tally
        if not self.min_rows or column not in {feature.name for feature in tally.schema.features}:
            return rows
        feature = tally.schema[column]
        sums = tally.of(column)
        counts = np.asarray(sums.cells.value.sum(axis=1))
        keys = [*sums.keys[0]]
        if not entries.are_steps:
            by_key = dict(zip(keys, counts.tolist(), strict=True))
            rows[:] = [
                np.inf if probe is None or name[2] else by_key.get(probe, 0.0)
                for probe, name in zip(*entries[:2], strict=True)
            ]
            return rows
        (batch,) = batches(read({column: [name[0] for name in entries.names[1:-1]] or [0.0]}), "exporting")
        codes = feature.family.keys_of(batch, feature)
        assert codes is not None
        starts = np.asarray(
            [codes.values[code - codes.low] for code in codes.codes.tolist()][: len(entries.probes) - 2]
        )
        at = np.searchsorted(starts, np.array(keys), side="right")
        rows[:-1] = np.bincount(at, counts, len(entries.probes) - 1)
        return rows

    # Tables

    def make_tables(self, prior: list[tuple[Any, ...]], calibration: Sequence[tuple[Any, ...]]) -> EvidenceTable:
        cells = self._cells()
        values = list[tuple[Any, ...]]()
        steps = list[tuple[Any, ...]]()
        for column, entries in self.entries.items():
            number = self.columns[column]["column"]
            says = self.says[column]
            kept = np.flatnonzero(self._rows_of_entries(column, entries) >= self.min_rows).tolist()
            table = steps if entries.are_steps else values
            for k in kept:
                cell = int(cells[column][0][k]) if column in cells else None
                named = (number, *entries.names[k], cell)
                table += [(*named, c, nats) for c, nats in enumerate(says[k].tolist())]
        pairs = [] if self.min_rows > 1 else list(self._pair_rows(cells))
        tables = {
            "prior": prior,
            "columns": [tuple(column.get(name) for name in SCHEMAS["columns"]) for column in self.columns.values()],
            "values": values,
            "steps": steps,
            "curves": self.curves,
            "pairs": pairs,
            "calibration": calibration,
        }
        made = {name: _table(name, list(zip(*rows, strict=True))) for name, rows in tables.items()}
        made["words"] = _word_table(self.words)
        return EvidenceTable(VERSION, "labels" if self.of_labels else "classes", **made)

    def _cells(self) -> dict[str, tuple[Int, Int]]:
        """Of each column in pairs the cell of every entry, and an entry of every cell; all pairs take these for one."""
        about: dict[str, list[Real]] = {}
        for first, second, says in self.pairs:
            about.setdefault(first, []).append(says.reshape(len(says), -1))
            about.setdefault(second, []).append(says.transpose(1, 0, 2).reshape(says.shape[1], -1))
        cells = {}
        for column, signatures in about.items():
            _, entry, cell = np.unique(
                np.concatenate(signatures, axis=1), axis=0, return_index=True, return_inverse=True
            )
            cells[column] = cell.reshape(-1), entry
        return cells

    def _pair_rows(self, cells: Mapping[str, tuple[Int, Int]]) -> Iterator[tuple[Any, ...]]:
        for first, second, says in self.pairs:
            numbers = self.columns[first]["column"], self.columns[second]["column"]
            nats = says[np.ix_(cells[first][1], cells[second][1])]
            for a, b in np.argwhere(nats.any(axis=2)).tolist():
                yield from ((numbers[0], a, numbers[1], b, c, x) for c, x in enumerate(nats[a, b].tolist()))


def _by_name(model: Any) -> dict[str, Parameters]:
    """The parameters of each feature by itself; a pair's name may be that of a column."""
    parameters = dict[str, Parameters]()
    for group in model.parameters:
        for f, feature in enumerate(group.features):
            name = feature.name if len(feature.inputs) == 1 else "\x00".join([feature.name, *feature.inputs])
            parameters[name] = group.select([f])
    return parameters


def _score(parameters: Parameters, model: Any, probes: Mapping[str, list[Any]]) -> Real:
    """log P(values | class) of each row, (rows, classes)."""
    nothing = np.zeros(len(model.classes))
    batch_scores = [
        _core.score(batch.n_rows, nothing, parameters.parts(batch), "log_joint", 1)[0]
        for batch in batches(read(dict(probes)), "exporting", quietly=True)
    ]
    return np.concatenate(batch_scores)


def unwritable_family(feature: Feature) -> errors.BadSetting:
    text = f"column {feature.name!r} is {feature.family}, which cannot be written as a table"
    return errors.BadSetting(f"{text}. Use {SUGGESTED}.", column=feature.name)


def _holds_numbers(entries: Entries) -> bool:
    return entries.are_steps or all(number is not None for value, number, _ in entries.names if value is not None)


def _middles(cuts: Real) -> Real:
    """A number in each stretch between cuts, and one beyond either end."""
    if not len(cuts):
        return np.zeros(1)
    with np.errstate(over="ignore"):
        reach = np.diff(cuts[[0, -1]])[0] + np.abs(cuts).max() + 1.0
        ends = np.clip([cuts[0] - reach, cuts[-1] + reach], -LARGEST, LARGEST)
    return np.concatenate([ends[:1], between(cuts[:-1], cuts[1:]), ends[1:]])


def _value_entries(column: str, keys: Keys) -> Entries:
    """Listed values, then a missing one and one that no row has."""
    present_keys = [key for key in keys if key is not None]
    strings = any(isinstance(key, str) for key in present_keys) or not present_keys
    numbers = [None if strings else float(key) for key in present_keys]
    if len(set(numbers)) < len(numbers) and not strings:
        raise errors.bad_setting("column", column, "numbers that doubles can distinguish, or use text")
    names: list[tuple[Any, ...]] = [
        (str(key), number, False) for key, number in zip(present_keys, numbers, strict=True)
    ]
    probes = [*present_keys, None]
    names.append((None, None, False))
    if not any(isinstance(key, bool) for key in present_keys):
        probes.append(UNSEEN if strings else next(k for k in count() if k not in present_keys))
        names.append((None, None, True))
    return Entries(probes, names, False)


# Arrow ----------------------------------------------------------------------------------------------------------------


SCHEMAS: dict[str, dict[str, str]] = {
    "prior": {"class": "int32", "name": "string", "nats": "double"},
    "columns": {
        "column": "int32",
        "name": "string",
        "kind": "string",
        "count": "string",
        "length": "string",
        "threshold": "double",
        "tokens": "string",
        "lowercase": "bool",
        "unit": "string",
        "shortest": "int32",
        "longest": "int32",
        "stop_words": "strings",
        "only": "strings",
    },
    "values": {
        "column": "int32",
        "value": "string",
        "number": "double",
        "unseen": "bool",
        "cell": "int32",
        "class": "int32",
        "nats": "double",
    },
    "steps": {"column": "int32", "from": "double", "to": "double", "cell": "int32", "class": "int32", "nats": "double"},
    "curves": {
        "column": "int32",
        "class": "int32",
        "origin": "double",
        "unit": "double",
        "centre": "double",
        "width": "double",
        "one": "double",
        "x": "double",
        "x2": "double",
        "log_x": "double",
    },
    "pairs": {
        "first": "int32",
        "first_cell": "int32",
        "second": "int32",
        "second_cell": "int32",
        "class": "int32",
        "nats": "double",
    },
    "words": {"column": "int32", "word": "words", "scale": "double", "class": "int32", "nats": "double"},
    "calibration": {"class": "int32", "method": "string", "x": "double", "y": "double"},
}


def _types(name: str) -> Any:
    import pyarrow as pa

    arrow_types = {"bool": pa.bool_(), "double": pa.float64(), "int32": pa.int32(), "string": pa.string()}
    arrow_types |= {"strings": pa.list_(pa.string()), "words": pa.dictionary(pa.int32(), pa.string())}
    return pa.schema([(column, arrow_types[kind]) for column, kind in SCHEMAS[name].items()])


def _table(name: str, columns: Sequence[Any]) -> pa.Table:
    import pyarrow as pa

    schema = _types(name)
    columns = columns or [[] for _ in schema]
    arrays = [pa.array(column, field.type, from_pandas=False) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _word_table(parts: Sequence[tuple[Any, ...]]) -> pa.Table:
    import pyarrow as pa

    if not parts:
        return _table("words", [])
    schema = _types("words")
    numbers = [np.full(len(words), number, dtype=np.int32) for number, words, *_ in parts]
    words = pa.array([word for _, some, *_ in parts for word in some], pa.string()).dictionary_encode()
    rest = (np.concatenate([part[k] for part in parts]) for k in (2, 3, 4))
    scale, classes, nats = rest
    return pa.table([np.concatenate(numbers), words, scale, classes.astype(np.int32), nats], schema=schema)
