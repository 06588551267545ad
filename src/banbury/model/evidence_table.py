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
from banbury.sums import Words, in_order
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
COLUMNS = {  # of each table, and their types
    "prior": "class:int32 name:string nats:double",
    "columns": "column:int32 name:string kind:string count:string length:string threshold:double tokens:string lowercase:bool "
    "unit:string shortest:int32 longest:int32 stop_words:list only:list",
    "values": "column:int32 value:string unseen:bool cell:int32 class:int32 nats:double",
    "steps": "column:int32 from:double to:double value:string cell:int32 class:int32 nats:double",
    "curves": "column:int32 class:int32 origin:double unit:double centre:double one:double x:double x2:double log_x:double",
    "pairs": "first:int32 first_cell:int32 second:int32 second_cell:int32 class:int32 nats:double",
    "words": "column:int32 word:string scale:double class:int32 nats:double",
    "calibration": "class:int32 temperature:double floor:double slope:double shift:double threshold:double",
    "stairs": "class:int32 from:double to:double share:double slope:double",
}
NO_CALIBRATION = {"temperature": 1.0, "floor": -1e100, "slope": 1.0, "shift": 0.0, "threshold": None}


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
    stairs: pa.Table

    def __repr__(self) -> str:
        sizes = (f"{name} {table.num_rows:,}" for name, table in self.tables.items() if table.num_rows)
        return f"EvidenceTable of {self.answers}, rows: {', '.join(sizes)}"

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The tables by name."""
        return dict(zip(self._fields[2:], self[2:], strict=True))

    @property
    def bends(self) -> bool:
        """Whether log-odds are calibrated class by class, so that another class may become the most probable."""
        lines = zip(*(self.calibration[name].to_pylist() for name in ("slope", "shift")), strict=True)
        return self.prior.num_rows > 1 and (self.stairs.num_rows > 0 or set(lines) != {(1.0, 0.0)})

    def entries(self, name: str) -> list[dict[str, Any]]:
        """The entries of a table that has a row for each class: rows with a list of nats, 0 where a class is left out."""
        table = self.tables[name]
        classes = table["class"].to_numpy()
        begins = classes == 0
        nats = np.zeros((begins.sum(), self.prior.num_rows))
        nats[begins.cumsum() - 1, classes] = table["nats"]
        return [
            {**row, "nats": says} for row, says in zip(table.filter(begins).to_pylist(), nats.tolist(), strict=True)
        ]

    def by_column(self) -> list[dict[str, Any]]:
        """The columns, each with its values, steps, words and curves."""
        parts: dict[str, list[dict[str, Any]]] = {name: self.entries(name) for name in ("values", "steps", "words")}
        parts["curves"] = self.curves.to_pylist()
        columns = [{**row, **{name: [] for name in parts}} for row in self.columns.to_pylist()]
        for name, rows in parts.items():
            for row in rows:
                columns[row["column"]][name].append(row)
        return columns


class Entries(NamedTuple):
    """What a column may hold: rows to score, and how a table names each; ``values`` and ``steps`` are the tables."""

    table: str
    probes: list[Any]
    names: list[tuple[Any, ...]]  # of values: value, unseen; of steps: from, to, value
    rows: Real  # that were counted with each; without end where it stands for no value of a row


def evidence_table(
    models: Sequence[Any],
    prior: Real,
    names: Sequence[Any],
    calibration: Mapping[str, Any],
    counted: Any,
    min_rows: int,
    *,
    of_labels: bool = False,
) -> EvidenceTable:
    """The tables of one model; or of the yes or no models of labels, None for labels that only the prior tells.

    ``calibration`` has the columns of its table that are not those of none, and the rows of ``stairs``. ``counted`` is the
    model whose tally says how many rows have a value.
    """
    errors.check_whole("min_rows", min_rows, 0)
    classes = range(len(names))
    rows = _Maker(models, len(names), of_labels, counted.tally, min_rows).make_rows()
    rows["prior"] = [*zip(classes, map(str, names), prior.tolist(), strict=True)]
    columns = {**NO_CALIBRATION, **calibration}
    rows["stairs"] = columns.pop("stairs", [])
    numbers = (np.broadcast_to(column, len(names)).tolist() for column in columns.values())
    rows["calibration"] = [*zip(classes, *numbers, strict=True)]
    tables = {name: _table(name, rows[name]) for name in COLUMNS}
    return EvidenceTable(VERSION, "labels" if of_labels else "classes", **tables)


def calibration_columns(calibration: Any) -> dict[str, Any]:
    """The columns of the calibration table, and the rows of the stairs, from the numbers that a calibration keeps."""
    state = {} if calibration is None else calibration.state()
    columns = {name: state[name] for name in ("temperature", "floor") if name in state}
    mirror = state and int(state["n_classes"][0]) == 2  # the calibration keeps the rule of the second class alone
    if "slopes" in state:
        shift = state["intercepts"]
        columns |= {"slope": state["slopes"], "shift": np.append(-shift, shift) if mirror else shift}
    if "lengths" in state:
        ends = np.cumsum(state["lengths"])[:-1]
        corners = list(zip(np.split(state["odds"], ends), np.split(state["shares"], ends), strict=True))
        corners = [(-corners[0][0][::-1], 1.0 - corners[0][1][::-1]), *corners] if mirror else corners
        columns["stairs"] = [step for c, (odds, shares) in enumerate(corners) for step in _stairs(c, odds, shares)]
    return columns


def _stairs(c: int, odds: Real, shares: Real) -> Iterator[tuple[Any, ...]]:
    """Stretches of the log-odds of a class, with the share at the start of each and its slope there."""
    slopes = [0.0, *(np.diff(shares) / np.diff(odds)).tolist(), 0.0]
    ends = pairwise([-LARGEST, *odds.tolist(), np.inf])
    heights = [float(shares[0]), *shares.tolist()]
    return ((c, *span, height, slope) for span, height, slope in zip(ends, heights, slopes, strict=True))


def _centre_over_classes(says: Real) -> Real:
    """What entries say of classes, without what they say of all; where a class is impossible, less the most of any."""
    highest = says.max(axis=-1, keepdims=True)
    mean = says.mean(axis=-1, keepdims=True)
    middle = np.where(np.isfinite(mean), mean, np.where(np.isfinite(highest), highest, 0.0))
    return np.asarray(np.where(says == middle, 0.0, says - middle))


Groups = Mapping[int, Parameters]  # of the models that have them, by the number of the model


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
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}
        for name in dict.fromkeys(name for by_name in self.parameters for name in by_name):
            self._add({k: by_name[name] for k, by_name in enumerate(self.parameters) if name in by_name})

    def _add(self, groups: Groups) -> None:
        first = next(iter(groups.values()))
        feature = first.features[0]
        if first.linear() is not None:
            self._add_words(feature, {k: group.linear() for k, group in groups.items()})
        elif first.curve(0) is not None:
            self._add_curves(feature, groups)
        else:
            entries = [self._entries(groups, column, feature) for column in feature.inputs]
            for column, listed in zip(feature.inputs, entries, strict=True):
                self._number_of(column, "string" if listed.table == "values" else "number")
                shape = len(listed.probes), self.n_classes
                says = self._scores(groups, {column: listed.probes}) if len(entries) == 1 else np.zeros(shape)
                names = self.entries.setdefault(column, (listed, says))[0].names
                if names != listed.names:
                    raise errors.bad_setting("column", column, "a column that all its users cut in the same way")
                if len(entries) == 1:
                    self.entries[column] = listed, says
            if len(entries) == 2:
                self._add_pair(groups, *feature.inputs)

    def _number_of(self, column: str, kind: str, **reading: Any) -> int:
        """The number of a column, which is listed once."""
        row = {"column": len(self.columns), "name": column, "kind": kind, **reading}
        return int(self.columns.setdefault(column, row)["column"])

    def _join(self, statements: Mapping[int, Real]) -> Real:
        """What the models say, (..., classes), centred; of labels the log-odds of each."""
        if not self.of_labels:
            return _centre_over_classes(statements[0])
        odds = np.zeros((*next(iter(statements.values())).shape[:-1], self.n_classes))
        for k, says in statements.items():
            if not np.isfinite(says).all():
                how = self.models[k].choice.how
                raise errors.bad_setting("how", how, "a different setting for labels as tables, such as 'mean'")
            odds[..., k] = says[..., 1] - says[..., 0]
        return odds

    def _write(self, table: str, key: tuple[Any, ...], nats: Real) -> None:
        """An entry, as a row of each class of which it says something, and of the first."""
        self.rows[table] += [(*key, c, x) for c, x in enumerate(nats.tolist()) if x or not c]

    # Values and stretches of numbers

    def _entries(self, groups: Groups, column: str, feature: Feature) -> Entries:
        keys = [group.categories(0, column) for group in groups.values()]
        cuts = [group.cuts(column) for group in groups.values()]
        if len(feature.inputs) > 2 or (None in keys and None in cuts):
            text = f"column {feature.name!r} is {feature.family}, which cannot be written as a table"
            raise errors.BadSetting(f"{text}. Use {SUGGESTED}.", column=feature.name)
        rows = self._rows_by_key(column)
        by_number: dict[float, Any] = {}
        if None not in keys:
            listed: Any = in_order({key for keys_of_model in keys for key in keys_of_model or () if key is not None})
            written = [key for key in listed if rows.get(key, np.inf) >= self.min_rows]
            if not listed or any(isinstance(key, str) for key in listed):
                values = [*((str(key), False) for key in written), (None, False), (None, True)]
                return Entries("values", [*written, None, UNSEEN], values, np.full(len(values), np.inf))
            by_number = {float(key): key for key in written}  # a stretch that holds no other
            if len(by_number) < len(written):
                raise errors.bad_setting("column", column, "numbers that doubles can distinguish, or use text")
            every = np.unique([[number, np.nextafter(number, np.inf)] for number in by_number])
            flags = isinstance(listed[0], bool)  # of which none is unseen
            unseen = listed[0] if flags else next(number for number in count() if number not in listed)
            starts = [-np.inf, *every.tolist()]
            probes = [by_number.get(low, unseen) for low in starts]
            counts = np.array([-np.inf if flags and low not in by_number else np.inf for low in starts])
        else:
            every = np.unique(
                np.array([cut for cuts_of_model in cuts for cut in cuts_of_model or ()], dtype=np.float64)
            )
            every = self._effective_cuts(groups, column, every) if len(feature.inputs) == 1 and len(every) else every
            probes = _middles(every).tolist()
            counts = self._rows_of_stretches(column, every, rows) if rows else np.full(len(probes), np.inf)
        spans = pairwise([-np.inf, *every.tolist(), np.inf])
        names = [(*span, str(by_number[span[0]]) if span[0] in by_number else None) for span in spans]
        return Entries("steps", [*probes, None], [*names, (None, None, None)], np.append(counts, np.inf))

    def _effective_cuts(self, groups: Groups, column: str, cuts: Real) -> Real:
        """The least numbers that score as those beyond the cuts do: the kernel may round where a bin begins."""
        near = [cuts]
        for _ in range(ULPS):
            near = [np.nextafter(near[0], -np.inf), *near, np.nextafter(near[-1], np.inf)]
        says = self._scores(groups, {column: np.concatenate(near).tolist()}).reshape(len(near), len(cuts), -1)
        beyond = (says == says[-1]).all(axis=2)
        first = len(near) - np.logical_and.accumulate(beyond[::-1]).sum(axis=0)
        first = np.where(first == 0, ULPS, first)  # it says the same on both sides
        return np.asarray(np.stack(near)[first, np.arange(len(cuts))])

    def _scores(self, groups: Groups, probes: Mapping[str, list[Any]]) -> Real:
        """What every row says of each class, (rows, classes)."""
        rows = list(batches(read(dict(probes)), "exporting", quietly=True))
        statements = {}
        for k, group in groups.items():
            nothing = np.zeros(len(self.models[k].classes))
            scores = [_core.score(batch.n_rows, nothing, group.parts(batch), "log_joint", 1)[0] for batch in rows]
            statements[k] = np.concatenate(scores)
        return self._join(statements)

    def _add_pair(self, groups: Groups, first: str, second: str) -> None:
        one, other = self.entries[first][0].probes, self.entries[second][0].probes
        n = len(one) * len(other)
        if n * self.n_classes > MOST_CELLS:
            raise errors.bad_setting(
                "columns", f"{first!r} and {second!r}", f"fewer values: all pairs of them are {n:,}"
            )
        probes = {first: [a for a in one for _ in other], second: list(other) * len(one)}
        self.pairs.append((first, second, self._scores(groups, probes).reshape(len(one), len(other), -1)))

    def _add_curves(self, feature: Feature, groups: Groups) -> None:
        number = self._number_of(feature.name, "number")
        for k, group in groups.items():
            curve = group.curve(0)
            assert curve is not None
            for c, (centre, width, *coefficients) in enumerate(zip(*curve.by_class, strict=True)):
                sign = -1.0 if self.of_labels and c == 0 else 1.0
                scale = curve.origin, curve.unit * width, centre / width
                row = number, k if self.of_labels else c, *scale, *(sign * x for x in coefficients)
                self.rows["curves"].append(row)

    # Words

    def _add_words(self, feature: Feature, forms: Mapping[int, Any]) -> None:
        place = {None: 0}  # the first is what every text says
        for word in (word for form in forms.values() for word in form.words):
            place.setdefault(word, len(place))
        scale = np.ones(len(place))
        statements = {}
        for k, form in forms.items():
            rows = [0, *(place[word] for word in form.words)]
            statements[k] = np.zeros((len(place), form.weights.shape[1]))
            statements[k][rows] = np.vstack([form.intercepts, form.weights])
            if form.scale is not None:
                scale[rows[1:]] = form.scale
        number = self._number_of(feature.name, "text" if feature.reads_text else "counts", **form.reading)
        rows_of_words = self._rows_by_key(feature.name)
        for word, *entry in zip(place, scale.tolist(), self._join(statements), strict=True):
            if word is None or rows_of_words.get(word, 0.0) >= self.min_rows:
                self._write("words", (number, word, entry[0]), entry[1])

    # Rows that have an entry

    def _rows_by_key(self, column: str) -> dict[Any, float]:
        """How many rows have each value or word of a column; of numbers that are cut each bin."""
        if not self.min_rows or column not in {feature.name for feature in self.tally.schema.features}:
            return {}
        sums = self.tally.of(column)
        feature = self.tally.schema[column]
        if isinstance(sums, Words):
            lexicon = Lexicon.of(feature, sums)
            return dict(zip(lexicon.words, lexicon.documents().sum(axis=1).tolist(), strict=True))
        return dict(zip(sums.keys[0], sums.cells.value.sum(axis=1).tolist(), strict=True))

    def _rows_of_stretches(self, column: str, cuts: Real, rows: Mapping[Any, float]) -> Real:
        """How many rows have each stretch of numbers between cuts, from those of each bin."""
        feature = self.tally.schema[column]
        (batch,) = batches(read({column: [*cuts.tolist(), 0.0]}), "exporting")
        codes = feature.family.keys_of(batch, feature)
        assert codes is not None
        starts = [codes.values[code - codes.low] for code in codes.codes.tolist()[:-1]]
        at = np.searchsorted(np.asarray(starts), np.array([*rows]), side="right")
        return np.bincount(at, [*rows.values()], len(cuts) + 1).astype(np.float64)

    # Tables

    def make_rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of each table of columns."""
        cells = self._cells()
        fields = [part.split(":")[0] for part in COLUMNS["columns"].split()]
        self.rows["columns"] = [tuple(column.get(field) for field in fields) for column in self.columns.values()]
        for column, (entries, says) in self.entries.items():
            for k in np.flatnonzero(entries.rows >= self.min_rows).tolist():
                cell = int(cells[column][0][k]) if column in cells else None
                self._write(entries.table, (self.columns[column]["column"], *entries.names[k], cell), says[k])
        for first, second, says in self.pairs if self.min_rows <= 1 else ():
            one, other = self.columns[first]["column"], self.columns[second]["column"]
            nats = says[np.ix_(cells[first][1], cells[second][1])]
            for a, b in np.argwhere(nats.any(axis=2)).tolist():
                self._write("pairs", (one, a, other, b), nats[a, b])
        return self.rows

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


def _by_name(model: Any) -> dict[str, Parameters]:
    """The parameters of each feature by itself; a pair's name may be that of a column."""
    return {
        "\x00".join([feature.name, *(feature.inputs if len(feature.inputs) > 1 else ())]): group.select([f])
        for group in model.parameters
        for f, feature in enumerate(group.features)
    }


def _middles(cuts: Real) -> Real:
    """A number in each stretch between cuts, and one beyond either end."""
    if not len(cuts):
        return np.zeros(1)
    with np.errstate(over="ignore"):
        reach = np.diff(cuts[[0, -1]])[0] + np.abs(cuts).max() + 1.0
        ends = np.clip([cuts[0] - reach, cuts[-1] + reach], -LARGEST, LARGEST)
    return np.concatenate([ends[:1], between(cuts[:-1], cuts[1:]), ends[1:]])


def _table(name: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    import pyarrow as pa

    fields = [part.split(":") for part in COLUMNS[name].split()]
    kinds = [pa.list_(pa.string()) if kind == "list" else pa.type_for_alias(kind) for _, kind in fields]
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    arrays = [pa.array(column, kind, from_pandas=False) for column, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=[field for field, _ in fields])
