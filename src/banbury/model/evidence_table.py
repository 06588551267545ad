"""The evidence table: a model as Arrow tables, from which every posterior can be computed.

Nothing here knows a family. What a column says is asked of its parameters by scoring: every listed value, and every stretch
between cuts, is a row that is scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags.lexicon import Lexicon
from banbury.families.cells import between
from banbury.families.family import Feature, Parameters
from banbury.reading import read
from banbury.sums import in_order
from banbury.tally.table import batches

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
UNSEEN = "\x00 a value that no row has"
MOST_CELLS = 1 << 24  # of a pair of columns, all values of one by all of the other
ULPS = 3  # by which a cut may have been rounded
LARGEST = 1.7e308
FARTHEST = 1e300  # log-odds beyond it are taken for it
SUGGESTED = (
    "a family that can be written as a table (Categorical, Bernoulli, Histogram, QuantileTree, Gaussian, Poisson, Exponential, "
    "Gamma, Text or Occurrences), without how='predictive'"
)
COLUMNS = {  # of each table, and their types
    "prior": "class:int32 name:string nats:double",
    "columns": "column:int32 name:string kind:string count:string length:string threshold:double tokens:string lowercase:bool "
    "unit:string shortest:int32 longest:int32 stop_words:list only:list",
    "values": "column:int32 value:string unseen:bool cell:int32 class:int32 nats:double",
    "steps": "column:int32 from:double to:double value:string cell:int32 class:int32 nats:double",
    "curves": "column:int32 class:int32 origin:double unit:double centre:double width:double one:double x:double x2:double "
    "log_x:double",
    "pairs": "first:int32 first_cell:int32 second:int32 second_cell:int32 class:int32 nats:double",
    "words": "column:int32 word:string scale:double class:int32 nats:double",
    "calibration": "class:int32 method:string x:double y:double share:double",
}


class EvidenceTable(NamedTuple):
    """A model as Arrow tables; ``docs/reference/evidence-table.md`` describes them. ``answers`` is "classes" or "labels"."""

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
        listed = part["word"].to_pylist()
        place: dict[Any, int] = {word: k for k, word in enumerate(dict.fromkeys(listed))}  # None comes first
        rows = [place[word] for word in listed]
        scales = np.ones(len(place))
        scales[rows] = part["scale"]
        nats = np.zeros((len(place), self.prior.num_rows))
        nats[rows, part["class"]] = part["nats"]
        return list(place)[1:], nats[1:], scales[1:], nats[0]

    def entries_of(self, name: str) -> list[tuple[dict[str, Any], list[float]]]:
        """The entries of ``values``, ``steps`` or ``pairs``, whose rows stand class by class, each with its nats."""
        table = self.tables[name]
        k = self.prior.num_rows
        nats = table["nats"].to_numpy().reshape(-1, k).tolist()
        return list(zip(table.take(np.arange(0, table.num_rows, k)).to_pylist(), nats, strict=True))

    def rules(self, method: str) -> Real:
        """The rows of a method of calibration: class, x, y and share."""
        rows = [row for row in self.calibration.to_pylist() if row["method"] == method]
        return np.array([[row[name] for name in ("class", "x", "y", "share")] for row in rows], dtype=np.float64)


class Entries(NamedTuple):
    """What a column may hold: rows to score, and how a table names each; ``values`` and ``steps`` are the tables."""

    table: str
    probes: list[Any]
    names: list[tuple[Any, ...]]  # of values: value, unseen; of steps: from, to, value


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
    maker = _Maker(models, len(names), of_labels, counted.tally, min_rows)
    rows = {**maker.table_rows(), "calibration": calibration}
    rows["prior"] = list(zip(range(len(names)), map(str, names), prior.tolist(), strict=True))
    tables = {name: _table(name, list(zip(*rows[name], strict=True))) for name in COLUMNS}
    return EvidenceTable(VERSION, "labels" if of_labels else "classes", **tables)


def calibration_rows(calibration: Any) -> list[tuple[Any, ...]]:
    """Rows of the calibration table, (class, method, x, y, share), from the numbers that a calibration keeps."""
    if calibration is None:
        return []
    state = calibration.state()
    method = calibration.method
    mirror = int(state["n_classes"][0]) == 2  # the calibration keeps the rule of the second class alone
    if method == "temperature":
        return [(None, method, float(state["temperature"][0]), float(state["floor"][0]), None)]
    if method == "platt":
        lines = list(zip(state["slopes"].tolist(), state["intercepts"].tolist(), strict=True))
        lines = [(lines[0][0], -lines[0][1]), *lines] if mirror else lines
        return [(c, "line", *line, None) for c, line in enumerate(lines)]
    ends = np.cumsum(state["lengths"])[:-1]
    stairs = np.split(np.stack([state["odds"], state["shares"]], axis=1), ends)
    stairs = [([0.0, 1.0] - stairs[0])[::-1], *stairs] if mirror else stairs  # a corner a row: log-odds, share
    rows: list[tuple[Any, ...]] = []
    for c, corners in enumerate(stairs):
        rows.append((c, "step", -2 * FARTHEST, -FARTHEST, float(corners[0, 1])))  # what is there from the beginning
        rows += [(c, "step", a[0], b[0], b[1] - a[1]) for a, b in pairwise(corners.tolist())]
    return rows


def _centre_over_classes(says: Real) -> Real:
    """What entries say of classes, without what they say of all; where a class is impossible, less the most of any."""
    highest = says.max(axis=1, keepdims=True)
    finite = np.isfinite(says).all(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        middle = np.where(finite, says.mean(axis=1, keepdims=True), np.where(np.isfinite(highest), highest, 0.0))
        return np.where(says == middle, 0.0, says - middle)


class _Maker:
    """Tables in the making."""

    def __init__(self, models: Sequence[Any], n_classes: int, of_labels: bool, tally: Any, min_rows: int) -> None:
        self.models = models
        self.n_classes = n_classes
        self.of_labels = of_labels
        self.tally = tally
        self.min_rows = min_rows
        self.parameters = [{} if model is None else _by_name(model) for model in models]
        self.columns: dict[str, dict[str, Any]] = {}
        self.entries: dict[str, tuple[Entries, Real]] = {}  # of each column, and what they say
        self.pairs: list[tuple[str, str, Real]] = []
        self.curves: list[tuple[Any, ...]] = []
        self.words: list[tuple[Any, ...]] = []
        features = {name: group.features[0] for by_name in self.parameters for name, group in by_name.items()}
        for name, feature in features.items():
            self._add(name, feature)

    def _add(self, name: str, feature: Feature) -> None:
        groups = [by_name.get(name) for by_name in self.parameters]
        some = [group for group in groups if group is not None]
        if some[0].linear() is not None:
            self._add_words(feature, groups)
        elif some[0].curve(0) is not None:
            self._add_curves(feature, groups)
        else:
            entries = [self._entries(groups, column, len(feature.inputs) == 1) for column in feature.inputs]
            if len(entries) > 2:
                raise _unwritable(feature)
            for column, listed in zip(feature.inputs, entries, strict=True):
                if listed is None:
                    raise _unwritable(feature)
                self._number_of(column, "string" if listed.table == "values" else "number")
                alone = self._scores(groups, {column: listed.probes}) if len(entries) == 1 else None
                kept, says = self.entries.setdefault(column, (listed, np.zeros((len(listed.probes), self.n_classes))))
                if kept.names != listed.names:
                    raise errors.bad_setting("column", column, "a column that all its users cut in the same way")
                self.entries[column] = listed, says if alone is None else alone
            if len(entries) == 2:
                self._add_pair(groups, *feature.inputs)

    def _number_of(self, column: str, kind: str, **reading: Any) -> int:
        """The number of a column, which is listed once."""
        row = {"column": len(self.columns), "name": column, "kind": kind, **reading}
        return int(self.columns.setdefault(column, row)["column"])

    def _join(self, statements: Sequence[Real | None], shape: tuple[int, ...]) -> Real:
        """What the models say, (..., classes): of labels the log-odds of each."""
        if not self.of_labels:
            return np.asarray(statements[0])
        odds = np.zeros((*shape, self.n_classes))
        for k, says in enumerate(statements):
            if says is not None and not np.isfinite(says).all():
                how = self.models[k].choice.how
                raise errors.bad_setting("how", how, "a different setting for labels as tables, such as 'mean'")
            if says is not None:
                odds[..., k] = says[..., 1] - says[..., 0]
        return odds

    # Values and stretches of numbers

    def _entries(self, groups: Sequence[Parameters | None], column: str, alone: bool) -> Entries | None:
        some = [group for group in groups if group is not None]
        keys = [group.categories(0, column) for group in some]
        if all(keys_of_model is not None for keys_of_model in keys):
            listed = in_order({key for keys_of_model in keys for key in keys_of_model or () if key is not None})
            rows = self._rows_by_key(column)
            return _listed_entries(column, listed, [key for key in listed if rows.get(key, np.inf) >= self.min_rows])
        cuts = [group.cuts(column) for group in some]
        if any(cuts_of_model is None for cuts_of_model in cuts):
            return None
        every = np.unique(np.array([cut for cuts_of_model in cuts for cut in cuts_of_model or ()], dtype=np.float64))
        every = self._effective_cuts(groups, column, every) if alone and len(every) else every
        ends = [-np.inf, *every.tolist(), np.inf]
        names = [(*span, None) for span in pairwise(ends)]
        return Entries("steps", [*_middles(every).tolist(), None], [*names, (None, None, None)])

    def _effective_cuts(self, groups: Sequence[Parameters | None], column: str, cuts: Real) -> Real:
        """The least numbers that score as those beyond the cuts do: the kernel may round where a bin begins."""
        near = [cuts]
        for _ in range(ULPS):
            near = [np.nextafter(near[0], -np.inf), *near, np.nextafter(near[-1], np.inf)]
        says = self._scores(groups, {column: np.concatenate(near).tolist()}).reshape(len(near), len(cuts), -1)
        beyond = (says == says[-1]).all(axis=2)
        first = len(near) - np.logical_and.accumulate(beyond[::-1]).sum(axis=0)
        first = np.where(first == 0, ULPS, first)  # it says the same on both sides
        return np.asarray(np.stack(near)[first, np.arange(len(cuts))])

    def _scores(self, groups: Sequence[Parameters | None], probes: Mapping[str, list[Any]]) -> Real:
        """What every row says of each class, centred, (rows, classes)."""
        rows = list(batches(read(dict(probes)), "exporting", quietly=True))
        statements = list[Real | None]()
        for group, model in zip(groups, self.models, strict=True):
            if group is None:
                statements.append(None)
                continue
            nothing = np.zeros(len(model.classes))
            scores = [_core.score(batch.n_rows, nothing, group.parts(batch), "log_joint", 1)[0] for batch in rows]
            statements.append(np.concatenate(scores))
        says = self._join(statements, (sum(batch.n_rows for batch in rows),))
        return says if self.of_labels else _centre_over_classes(says)

    def _add_pair(self, groups: Sequence[Parameters | None], first: str, second: str) -> None:
        one, other = self.entries[first][0].probes, self.entries[second][0].probes
        n = len(one) * len(other)
        if n * self.n_classes > MOST_CELLS:
            raise errors.bad_setting(
                "columns", f"{first!r} and {second!r}", f"fewer values: all pairs of them are {n:,}"
            )
        probes = {first: [a for a in one for _ in other], second: list(other) * len(one)}
        self.pairs.append((first, second, self._scores(groups, probes).reshape(len(one), len(other), -1)))

    def _add_curves(self, feature: Feature, groups: Sequence[Parameters | None]) -> None:
        number = self._number_of(feature.name, "number")
        for k, group in enumerate(groups):
            curve = None if group is None else group.curve(0)
            for c, row in enumerate(zip(*curve.by_class, strict=True) if curve is not None else ()):
                sign = -1.0 if self.of_labels and c == 0 else 1.0
                place = number, k if self.of_labels else c, curve.origin, curve.unit, *row[:2]  # type: ignore[union-attr]
                self.curves.append((*place, *(sign * float(x) for x in row[2:])))

    # Words

    def _add_words(self, feature: Feature, groups: Sequence[Parameters | None]) -> None:
        forms = [None if group is None else group.linear() for group in groups]
        words = list(dict.fromkeys(word for form in forms if form is not None for word in form.words))
        place = {word: 1 + k for k, word in enumerate(words)}
        statements = list[Real | None]([None] * len(forms))
        scale = np.ones(1 + len(words))
        for k, form in enumerate(forms):
            if form is None:
                continue
            rows = [0, *(place[word] for word in form.words)]  # the first is what every text says
            says = np.zeros((1 + len(words), form.weights.shape[1]))
            says[rows] = np.vstack([form.intercepts, form.weights])
            statements[k] = says
            if form.scale is not None:
                scale[rows[1:]] = form.scale
            reading = form.reading
        number = self._number_of(feature.name, "text" if feature.reads_text else "counts", **reading)
        nats = self._join(statements, (1 + len(words),))
        enough = np.append(True, self._rows_of_words(feature.name, words) >= self.min_rows)
        at, classes = np.nonzero(((nats != 0) | (np.arange(self.n_classes) == 0)) & enough[:, None])
        named = np.array([None, *words], dtype=object)[at]
        self.words += zip([number] * len(at), named, scale[at], classes, nats[at, classes], strict=True)

    # Rows that have an entry

    def _rows_of_words(self, name: str, words: Sequence[str]) -> Real:
        if not self.min_rows:
            return np.zeros(len(words))
        lexicon = Lexicon.of(self.tally.schema[name], self.tally.of(name))
        rows = dict(zip(lexicon.words, lexicon.documents().sum(axis=1).tolist(), strict=True))
        return np.array([rows.get(word, 0.0) for word in words])

    def _rows_by_key(self, column: str) -> dict[Any, float]:
        """How many rows have each value of a column; of numbers that are cut each bin."""
        if not self.min_rows or column not in {feature.name for feature in self.tally.schema.features}:
            return {}
        sums = self.tally.of(column)
        return dict(zip(sums.keys[0], sums.cells.value.sum(axis=1).tolist(), strict=True))

    def _rows_of_entries(self, column: str, entries: Entries) -> Real:
        """How many rows have each stretch of numbers; without end where it stands for no value of a row, or for a listed one."""
        rows = np.full(len(entries.probes), np.inf)
        by_key = self._rows_by_key(column)
        if not by_key or entries.table == "values" or any(value is not None for *_, value in entries.names):
            return rows
        feature = self.tally.schema[column]
        (batch,) = batches(read({column: [name[0] for name in entries.names[1:-1]] or [0.0]}), "exporting")
        codes = feature.family.keys_of(batch, feature)
        assert codes is not None
        starts = [codes.values[code - codes.low] for code in codes.codes.tolist()][: len(entries.probes) - 2]
        at = np.searchsorted(np.asarray(starts), np.array([*by_key]), side="right")
        rows[:-1] = np.bincount(at, [*by_key.values()], len(entries.probes) - 1)
        return rows

    # Tables

    def table_rows(self) -> dict[str, Any]:
        """The rows of each table of columns."""
        cells = self._cells()
        rows: dict[str, Any] = {"values": [], "steps": [], "curves": self.curves, "words": self.words, "pairs": []}
        fields = [part.split(":")[0] for part in COLUMNS["columns"].split()]
        rows["columns"] = [tuple(column.get(field) for field in fields) for column in self.columns.values()]
        for column, (entries, says) in self.entries.items():
            for k in np.flatnonzero(self._rows_of_entries(column, entries) >= self.min_rows).tolist():
                cell = int(cells[column][0][k]) if column in cells else None
                named = (self.columns[column]["column"], *entries.names[k], cell)
                rows[entries.table] += [(*named, c, nats) for c, nats in enumerate(says[k].tolist())]
        if self.min_rows <= 1:
            rows["pairs"] = list(self._pair_rows(cells))
        return rows

    def _cells(self) -> dict[str, tuple[Int, Int]]:
        """Of each column in pairs the cell of every entry, and an entry of every cell; all pairs take these for one."""
        about: dict[str, list[Real]] = {}
        for first, second, says in self.pairs:
            about.setdefault(first, []).append(says.reshape(len(says), -1))
            about.setdefault(second, []).append(says.transpose(1, 0, 2).reshape(says.shape[1], -1))
        cells = {}
        for column, signatures in about.items():
            together = np.concatenate(signatures, axis=1)
            _, entry, cell = np.unique(together, axis=0, return_index=True, return_inverse=True)
            cells[column] = cell.reshape(-1), entry
        return cells

    def _pair_rows(self, cells: Mapping[str, tuple[Int, Int]]) -> Iterator[tuple[Any, ...]]:
        for first, second, says in self.pairs:
            one, other = self.columns[first]["column"], self.columns[second]["column"]
            nats = says[np.ix_(cells[first][1], cells[second][1])]
            for a, b in np.argwhere(nats.any(axis=2)).tolist():
                yield from ((one, a, other, b, c, x) for c, x in enumerate(nats[a, b].tolist()))


def _by_name(model: Any) -> dict[str, Parameters]:
    """The parameters of each feature by itself; a pair's name may be that of a column."""
    return {
        "\x00".join([feature.name, *(feature.inputs if len(feature.inputs) > 1 else ())]): group.select([f])
        for group in model.parameters
        for f, feature in enumerate(group.features)
    }


def _unwritable(feature: Feature) -> errors.BadSetting:
    text = f"column {feature.name!r} is {feature.family}, which cannot be written as a table"
    return errors.BadSetting(f"{text}. Use {SUGGESTED}.", column=feature.name)


def _middles(cuts: Real) -> Real:
    """A number in each stretch between cuts, and one beyond either end."""
    if not len(cuts):
        return np.zeros(1)
    with np.errstate(over="ignore"):
        reach = np.diff(cuts[[0, -1]])[0] + np.abs(cuts).max() + 1.0
        ends = np.clip([cuts[0] - reach, cuts[-1] + reach], -LARGEST, LARGEST)
    return np.concatenate([ends[:1], between(cuts[:-1], cuts[1:]), ends[1:]])


def _listed_entries(column: str, keys: Sequence[Any], written: Sequence[Any]) -> Entries:
    """Values that are written, a missing one, and those that no row has; a listed number is a stretch that holds no other."""
    if not keys or any(isinstance(key, str) for key in keys):
        texts = [(str(key), False) for key in written]
        return Entries("values", [*written, None, UNSEEN], [*texts, (None, False), (None, True)])
    by_number = {float(key): key for key in written}
    if len(by_number) < len(written):
        raise errors.bad_setting("column", column, "numbers that doubles can distinguish, or use text")
    ends = np.unique([[number, np.nextafter(number, np.inf)] for number in by_number]).tolist()
    spans = [
        span for span in pairwise([-np.inf, *ends, np.inf]) if span[0] in by_number or not isinstance(keys[0], bool)
    ]
    unseen = next(number for number in count() if number not in keys)
    names = [(low, high, str(by_number[low]) if low in by_number else None) for low, high in spans]
    return Entries("steps", [*(by_number.get(low, unseen) for low, _ in spans), None], [*names, (None, None, None)])


def _table(name: str, columns: Sequence[Any]) -> pa.Table:
    import pyarrow as pa

    types = {"list": pa.list_(pa.string()), "int32": pa.int32(), "double": pa.float64()}
    types |= {"string": pa.string(), "bool": pa.bool_()}
    fields = [part.split(":") for part in COLUMNS[name].split()]
    arrays = [
        pa.array(columns[k] if columns else [], types[kind], from_pandas=False) for k, (_, kind) in enumerate(fields)
    ]
    return pa.table(arrays, names=[field for field, _ in fields])
