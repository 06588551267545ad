"""The evidence table: a model as Arrow tables, from which every posterior can be computed.

The nats of a column are computed by scoring probes: a row for each value that is listed, and a number in each interval between
cuts. So nothing here depends on the family of a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from banbury import _core, errors
from banbury.arrays import Real
from banbury.families.bags.lexicon import Lexicon
from banbury.families.cells import midpoints
from banbury.families.family import Feature, Parameters
from banbury.reading import read
from banbury.sums import Words, sort_keys
from banbury.tally.table import read_batches

if TYPE_CHECKING:
    import pyarrow as pa

Rows = list[tuple[Any, ...]]
Record = dict[str, Any]  # a row of a table by field, or what ``EvidenceTable.by_column`` says of a column
VERSION = 1
UNSEEN = "\x00 a value that no row has"  # the probe for unseen values
MOST_CELLS_OF_PAIR = 1 << 24  # entries of one column by entries of the other
ROUNDING_STEPS = 3  # the kernel may round a cut to one of so many doubles on either side
LARGEST_NUMBER = 1.7e308  # near the largest double; stands for infinity where a finite number is needed
EXPORTABLE_FAMILIES = (
    "a family that can be written as a table (Categorical, Bernoulli, Histogram, QuantileTree, Gaussian, Poisson, Exponential, "
    "Gamma, Text or Occurrences), without how='predictive'"
)
COLUMNS = {  # the columns of each table and their types; double* is a list of doubles
    "prior": "class:int32 name:string nats:double",
    "columns": "column:int32 name:string kind:string count:string length:bool threshold:double reading:reading",
    "values": "column:int32 value:string unseen:bool cell:int32 class:int32 nats:double",
    "steps": "column:int32 from:double value:string cell:int32 class:int32 nats:double",
    "curves": "column:int32 class:int32 origin:double unit:double width:double centre:double one:double x:double x2:double "
    "log:double",
    "pairs": "first:int32 first_cell:int32 second:int32 second_cell:int32 class:int32 nats:double",
    "words": "column:int32 word:string unseen:bool scale:double class:int32 nats:double",
    "calibration": "class:int32 temperature:double floor:double slope:double shift:double threshold:double odds:double* "
    "shares:double*",
}
READING_FIELDS = "tokens:string lowercase:bool unit:string ngrams:int32* stop_words:string* only:string*"
NO_WORDS = {"count": "count", "length": False, "threshold": 0.0, "reading": None}
NO_CALIBRATION = {
    "temperature": 1.0,
    "floor": -1e100,
    "slope": 1.0,
    "shift": 0.0,
    "threshold": None,
    "odds": None,
    "shares": None,
}


class EvidenceTable(NamedTuple):
    """A model as Arrow tables; ``docs/reference/evidence-table.md`` describes them. ``answers`` is "classes" or "labels"."""

    version: int  # of the format
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
        """The tables by name: all fields but the first two, the version and the answers."""
        return dict(zip(self._fields[2:], self[2:], strict=True))

    @property
    def bends(self) -> bool:
        """Whether log-odds are calibrated class by class, so that another class may become the most probable."""
        rules = self.calibration.select(["slope", "shift", "odds"]).to_pylist()
        return self.prior.num_rows > 1 and any([*rule.values()] != [1.0, 0.0, None] for rule in rules)

    def stairs(self) -> Iterator[tuple[int, float, float, float, float]]:
        """Yields the pieces of isotonic calibrations, class by class: the number of the class, the log-odds where the
        piece begins and ends, the probability at its beginning, and how much the probability rises per unit of
        log-odds.

        A rule of the calibration table has ascending log-odds ("odds") and the probability at each ("shares").
        """
        for rule in self.calibration.to_pylist():
            if odds := rule["odds"]:
                shares = rule["shares"]
                slopes = [0.0, *(np.diff(shares) / np.diff(odds)).tolist(), 0.0]
                ends = [-LARGEST_NUMBER, *odds, np.inf]  # each piece lies between two of these
                yield from zip(repeat(rule["class"]), ends, ends[1:], [shares[0], *shares], slopes, strict=False)

    def entries(self, name: str) -> list[Record]:
        """Returns the entries of the table ``name`` ("values", "steps" or "words"), each a dict of its fields, with
        "nats" as an array of a number per class. The table has a row for each entry and class with other nats than 0;
        an entry begins with the row of class 0. An entry of a table without these fields has "scale" 1 and "cell" None.
        """
        table = self.tables[name]
        classes = table["class"].to_numpy()  # the class number of each row of the table
        is_first_row = classes == 0
        nats = np.zeros((is_first_row.sum(), self.prior.num_rows))
        nats[is_first_row.cumsum() - 1, classes] = table["nats"]
        entries = zip(table.filter(is_first_row).to_pylist(), nats, strict=True)
        return [{"scale": 1.0, "cell": None, **entry, "nats": entry_nats} for entry, entry_nats in entries]

    def by_column(self) -> list[Record]:
        """Returns the columns in the order of their numbers, each a dict of its fields in the table of columns and:
        "curves", a dict of arrays by field, empty without curves; "entries", a dict of entries by value, word or start
        of an interval (None: a missing value, or what all texts share); and "unseen", the entry for a value or word
        that is not listed.

        An entry is a dict as ``entries`` returns it: "nats" (an array by class), "cell" (its number in the table of
        pairs of columns; None if the column is in no pair) and "scale" (the factor of a word's count).
        """
        columns: list[Record] = self.columns.to_pylist()  # the number of a column is its index in this list
        column_of_curve = self.curves["column"].to_numpy()  # the column number of each row of the table
        for column in columns:
            curves = self.curves.filter(column_of_curve == column["column"])
            column["curves"] = {name: curves[name].to_numpy() for name in curves.column_names if curves.num_rows}
            column["entries"] = {}
            column["unseen"] = {"cell": None, "scale": 1.0, "nats": np.zeros(self.prior.num_rows)}
        for name in ("values", "steps", "words"):
            for entry in self.entries(name):
                column = columns[entry["column"]]
                if entry.get("unseen"):
                    column["unseen"] = entry
                else:
                    # The second field of a table names the entry: "value", "from" or "word".
                    column["entries"][entry[self.tables[name].column_names[1]]] = entry
        return columns


class Entries(NamedTuple):
    """The entries of a column: its values, or intervals of numbers."""

    table: str  # "values" or "steps"
    # For each entry the value, and whether it stands for unseen ones; in "steps" where it starts, and the value.
    keys: list[tuple[Any, Any]]
    probes: list[Any]  # a value of each entry, which the model scores


def evidence_table(
    models: Sequence[Any],
    prior: Real,
    names: Sequence[Any],
    calibration: Mapping[str, Any],
    tally: Any,
    min_rows: int,
    *,
    of_labels: bool = False,
) -> EvidenceTable:
    """Returns the tables of one model, or of a multi-label model.

    Args:
        models: The model alone; for labels, the yes/no model of each label, None if the prior alone decides.
        prior: The log prior of each class, or the log-odds of each label.
        names: The classes or labels.
        calibration: The columns of the table of calibration that differ from ``NO_CALIBRATION``, by name: a list by
            class, or one number for all classes.
        tally: The tally that says how many rows have a value.
        min_rows: Values that fewer rows have are left out.
        of_labels: Whether these are the tables of a multi-label model.
    """
    errors.check_whole("min_rows", min_rows, 0)
    texts = list(map(str, names))  # the classes or labels as the tables name them
    errors.require(len({*texts}) == len(texts), "classes", list(names), "different when they are written as text")
    rows = _RowCollector(models, len(texts), of_labels, tally, min_rows).make_rows()
    rows["prior"] = [*zip(count(), texts, prior.tolist(), strict=False)]
    rules = {**NO_CALIBRATION, **calibration}.values()  # of each column: a list by class, or one number for all
    rule_columns = (rule if isinstance(rule, list) else np.broadcast_to(rule, len(texts)).tolist() for rule in rules)
    rows["calibration"] = [*zip(count(), *rule_columns, strict=False)]
    tables = {name: _arrow_table(fields, rows[name]) for name, fields in COLUMNS.items()}
    return EvidenceTable(VERSION, "labels" if of_labels else "classes", **tables)


def _centre_over_classes(nats: Real) -> Real:
    """Returns the nats of entries (…, classes) less their mean over the classes, entry by entry, or less the highest
    where a class is impossible.
    """
    mean = nats.mean(axis=-1, keepdims=True)
    highest = np.maximum(nats.max(axis=-1, keepdims=True), -LARGEST_NUMBER)
    return np.asarray(nats - np.where(np.isfinite(mean), mean, highest))


ByModel = Mapping[int, Parameters]  # one feature's parameters in each model that has it, by the number of the model


@dataclass
class _RowCollector:
    """Collects the rows of the tables, feature by feature."""

    models: Sequence[Any]  # one, or the yes/no model of each label, None if the prior alone decides
    n_classes: int  # or labels
    of_labels: bool
    tally: Any
    min_rows: int  # values that fewer rows have are left out

    def __post_init__(self) -> None:
        """Collects the evidence of each feature from all models."""
        self.rows: dict[str, Rows] = {name: [] for name in COLUMNS}  # by the name of the table
        self.column_numbers: dict[str, int] = {}  # by the name of the column
        # Entries are written last, because the cells of a column depend on all its pairs.
        self.entries: dict[str, Entries] = {}  # by the name of the column
        self.nats: dict[str, Real] = {}  # (entries, classes); columns that have evidence only in pairs are absent
        self.pairs: list[tuple[str, str, Real]] = []  # two columns, and nats (entries, entries, classes)
        parameters_by_feature: dict[tuple[str, ...], dict[int, Parameters]] = {}  # by name and columns, then by model
        for model_number, model in enumerate(self.models):
            for group in model.parameters if model is not None else ():
                for position, feature in enumerate(group.features):
                    parameters_by_feature.setdefault((feature.name, *feature.inputs), {})[model_number] = group.select(
                        [position]
                    )
        for parameters in parameters_by_feature.values():
            self._add_feature(parameters)

    def _add_feature(self, parameters: ByModel) -> None:
        """Adds the evidence of one feature: words, a curve per class, or entries of one or two columns. ``parameters``
        has those of the feature alone, by the number of the model. Raises an error if two features cut a column
        differently.
        """
        first = next(iter(parameters.values()))  # any model's parameters show what kind of feature it is
        feature = first.features[0]
        if first.linear() is not None:
            self._add_words(
                feature,
                {model_number: model_parameters.linear() for model_number, model_parameters in parameters.items()},
            )
        elif first.curve(0) is not None:
            self._add_curves(feature, parameters)
        else:
            for column in feature.inputs:
                entries = self._entries(parameters, column, feature)
                if self.entries.setdefault(column, entries).keys != entries.keys:
                    raise errors.bad_setting("column", column, "a column that all its users cut in the same way")
                if column not in self.column_numbers:
                    self._add_column(column, "string" if entries.table == "values" else "number")
            if len(feature.inputs) == 1:
                self.nats[column] = self._score_probes(parameters, {column: entries.probes})
            else:
                self._add_pair(parameters, *feature.inputs)

    def _add_column(self, name: str, kind: str, **fields: Any) -> int:
        """Adds the row of the column ``name`` to the table of columns; returns the number of the column. ``kind`` is
        "string", "number", "text" or "counts"; ``fields`` say how words are counted, if they are.
        """
        number = self.column_numbers[name] = len(self.column_numbers)
        column = {"column": number, "name": name, "kind": kind, **NO_WORDS, **fields}
        self.rows["columns"].append(tuple(column.values()))
        return number

    def _nats_by_class(self, nats_by_model: Mapping[int, Real]) -> Real:
        """Returns the nats of each class (entries × classes), centred, from those of the only model. For labels,
        returns the log-odds of each label (entries × labels) from the nats of each label's yes/no model (entries × 2:
        no, yes); 0 for labels without a model. ``nats_by_model`` has them by the number of the model.
        """
        if not self.of_labels:
            return _centre_over_classes(nats_by_model[0])
        log_odds = np.zeros((*next(iter(nats_by_model.values())).shape[:-1], self.n_classes))
        for model_number, nats in nats_by_model.items():
            if not np.isfinite(nats).all():
                how = self.models[model_number].choice.how
                raise errors.bad_setting("how", how, "a different setting for labels as tables, such as 'mean'")
            log_odds[..., model_number] = nats[..., 1] - nats[..., 0]
        return log_odds

    def _add_rows(self, table: str, key: tuple[Any, ...], nats: Real) -> None:
        """Adds the rows of an entry to the table of this name: one for class 0, and one for each other class whose nats
        are not 0. ``key`` has the fields before the class, and ``nats`` one number per class.
        """
        self.rows[table] += [
            (*key, class_number, class_nats)
            for class_number, class_nats in enumerate(nats.tolist())
            if class_nats or class_number == 0
        ]

    # Values and intervals of numbers

    def _entries(self, parameters: ByModel, column: str, feature: Feature) -> Entries:
        """Returns the entries of a column of ``feature``: its values, or the intervals into which its numbers are cut.
        Values that fewer than ``min_rows`` rows have are not listed, and intervals of so few rows are merged. Raises an
        error if the column cannot be written as a table. ``parameters`` has those of the feature alone, by the number
        of the model. A probe is a value of an entry, which the model will score.
        """
        # The values and the cuts of the column in each model, None if it lists no values or is not cut.
        keys_by_model: list[Any] = [model_parameters.categories(0, column) for model_parameters in parameters.values()]
        cuts_by_model = [model_parameters.cuts(column) for model_parameters in parameters.values()]
        if len(feature.inputs) > 2 or (None in keys_by_model and None in cuts_by_model):
            raise errors.BadSetting(
                f"column {feature.name!r} is {feature.family}, which cannot be written as a table. Use "
                f"{EXPORTABLE_FAMILIES}.",
                column=feature.name,
            )
        n_rows = self._rows_by_key(column)  # by value or bin; empty if all entries are listed
        key_of_start: dict[float, Any] = {}  # numbers that are listed are intervals that contain one number
        if None in keys_by_model:
            starts = np.unique(np.concatenate([[], *cuts_by_model]))  # of all intervals but the first
            if len(feature.inputs) == 1 and len(starts):
                starts = self._effective_cuts(parameters, column, starts)
            is_rare = self._rows_of_intervals(column, starts, n_rows) < self.min_rows  # one per interval
            is_kept = np.append(True, ~(is_rare[:-1] & is_rare[1:]))  # rare neighbours become one interval
            starts = starts[is_kept[1:]]
            middles = midpoints(np.array([-LARGEST_NUMBER, *starts]), np.array([*starts, LARGEST_NUMBER])).tolist()
            # A rare number counts as missing.
            probes = [None if rare else middle for rare, middle in zip(is_rare[is_kept], middles, strict=True)]
        else:
            counted_keys: Any = sort_keys({key for keys in keys_by_model for key in keys if key is not None})
            frequent = [key for key in counted_keys if n_rows.get(key, 0.0) >= self.min_rows]
            if not counted_keys or any(isinstance(key, str) for key in counted_keys):
                # Each entry's value (None: missing or unseen), and whether it stands for unseen values.
                entry_keys: list[Any] = [*((str(key), False) for key in frequent), (None, False), (None, True)]
                return Entries("values", entry_keys, [*frequent, None, UNSEEN])
            key_of_start = {float(key): key for key in frequent}
            if len(key_of_start) < len(frequent):
                raise errors.bad_setting("column", column, "numbers that doubles can distinguish, or use text")
            starts = np.unique([[number, np.nextafter(number, np.inf)] for number in key_of_start])
            unseen_number = (
                None
                if isinstance(counted_keys[0], bool)
                else next(number for number in count() if number not in counted_keys)
            )
            probes = [key_of_start.get(start, unseen_number) for start in (-np.inf, *starts)]
        entry_keys = [
            (start, str(key_of_start[start]) if start in key_of_start else None)
            for start in (-np.inf, *starts.tolist())
        ]
        return Entries("steps", [*entry_keys, (None, None)], [*probes, None])  # the last entry is a missing number

    def _effective_cuts(self, parameters: ByModel, column: str, cuts: Real) -> Real:
        """Returns for each of these ascending cuts of a column the least number that scores like numbers beyond the cut.
        It can differ from the cut by a few doubles, because the kernel may round where a bin begins. ``parameters`` has
        those of the column's feature, by the number of the model.
        """
        candidates = [cuts]  # each cut moved by −ROUNDING_STEPS to +ROUNDING_STEPS doubles
        for _ in range(ROUNDING_STEPS):
            lowest = np.nextafter(candidates[0], -np.inf)
            highest = np.nextafter(candidates[-1], np.inf)
            candidates = [lowest, *candidates, highest]
        nats = self._score_probes(parameters, {column: np.concatenate(candidates).tolist()})
        nats = nats.reshape(len(candidates), len(cuts), -1)  # (candidates, cuts, classes)
        is_beyond = (nats == nats[-1]).all(axis=2)
        # By cut, the index of the lowest candidate from which on all have the nats of the highest one.
        first_beyond = len(candidates) - np.logical_and.accumulate(is_beyond[::-1]).sum(axis=0)
        first_beyond = np.where(first_beyond == 0, ROUNDING_STEPS, first_beyond)  # 0: both sides have the same nats
        return np.asarray(np.stack(candidates)[first_beyond, np.arange(len(cuts))])

    def _score_probes(self, parameters: ByModel, probes: Mapping[str, list[Any]]) -> Real:
        """Returns the nats of rows (rows × classes, or × labels) by one feature, whose ``parameters`` are by the number
        of the model. ``probes`` has the values of the rows by column.
        """
        row_batches = list(read_batches(read(dict(probes)), "exporting", quietly=True))
        nats_by_model = {}  # rows × the model's classes
        for model_number, model_parameters in parameters.items():
            no_prior = np.zeros(len(self.models[model_number].classes))
            scores = [  # of each batch
                _core.score(batch.n_rows, no_prior, model_parameters.parts(batch), "log_joint", threads=1)[0]
                for batch in row_batches
            ]
            nats_by_model[model_number] = np.concatenate(scores)
        return self._nats_by_class(nats_by_model)

    def _add_pair(self, parameters: ByModel, first: str, second: str) -> None:
        """Adds to ``self.pairs`` the nats of two columns together, for each entry of ``first`` with each entry of
        ``second``: (entries, entries, classes). ``parameters`` has those of the feature of both, by the number of the
        model. A probe is a value of an entry. Raises an error if there are too many.
        """
        first_probes = self.entries[first].probes
        second_probes = self.entries[second].probes
        n_pairs = len(first_probes) * len(second_probes)
        if n_pairs * self.n_classes > MOST_CELLS_OF_PAIR:
            expected = f"fewer values: all pairs of them are {n_pairs:,}"
            raise errors.bad_setting("columns", f"{first!r} and {second!r}", expected)
        probes = {
            first: [probe for probe in first_probes for _ in second_probes],
            second: second_probes * len(first_probes),
        }
        nats = self._score_probes(parameters, probes).reshape(len(first_probes), len(second_probes), -1)
        self.pairs.append((first, second, nats))

    def _add_curves(self, feature: Feature, parameters: ByModel) -> None:
        """Adds the curve of each class to the rows of "curves". For labels, each model has two curves: that of its yes
        is added, that of its no (class 0) subtracted. ``parameters`` has those of ``feature``, a column of numbers, by
        the number of the model.
        """
        column_number = self._add_column(feature.name, "number")
        for model_number, model_parameters in parameters.items():
            curve = model_parameters.curve(0)
            assert curve is not None
            # The fields of a curve after its origin and unit are arrays by class: a width, a centre and coefficients.
            for class_number, (width, centre, *coefficients) in enumerate(zip(*curve[2:], strict=True)):
                sign = -1.0 if self.of_labels and class_number == 0 else 1.0
                key = (
                    column_number,
                    model_number if self.of_labels else class_number,
                    curve.origin,
                    curve.unit,
                    width,
                    centre,
                )
                self.rows["curves"].append((*key, *(sign * coefficient for coefficient in coefficients)))

    # Words

    def _add_words(self, feature: Feature, linear_by_model: Mapping[int, Any]) -> None:
        """Adds the words of a text, or the columns of a block of counts, to the rows of "words" and "columns". The
        first entry, None, has the nats that every text gets, and the last those of unseen words. ``linear_by_model``
        has the feature's linear form in each model: its words, their weights (words × classes) and intercepts (by
        class).
        """
        n_rows = self._rows_by_key(feature.name)  # by word
        all_words = dict.fromkeys(word for linear in linear_by_model.values() for word in linear.words)
        words = [None, *(word for word in all_words if n_rows.get(word, 0.0) >= self.min_rows), None]
        entry_of_word = {word: entry for entry, word in enumerate(words[:-1])}
        scale = np.ones(len(words))  # the factor of each word's count
        nats_by_model = {}  # entries × the model's classes
        for model_number, linear in linear_by_model.items():
            entries = [entry_of_word.get(word, -1) for word in linear.words]  # words that are left out count as unseen
            nats = nats_by_model[model_number] = np.zeros((len(words), linear.weights.shape[1]))  # (entries, classes)
            nats[entries] = linear.weights
            nats[0] = linear.intercepts
            nats[-1] = 0.0
            if linear.scale is not None:
                scale[entries] = linear.scale
        reading = linear.reading  # the same in all models
        length = reading["length"]  # the words whose Euclidean norm divides all: "none", "all" or the known ones
        scale[0] = length == "none"
        scale[-1] = length == "all"  # the length of a text counts all its words
        column_number = self._add_column(
            feature.name,
            "text" if feature.reads_text else "counts",
            count=reading["count"],
            length=length != "none",
            threshold=reading.get("threshold", 0.0),
            reading=reading if feature.reads_text else None,
        )
        last = len(words) - 1
        word_nats = self._nats_by_class(nats_by_model)
        for entry, (word, word_scale) in enumerate(zip(words, scale.tolist(), strict=True)):
            self._add_rows("words", (column_number, word, entry == last, word_scale), word_nats[entry])

    # Rows that have an entry

    def _rows_by_key(self, column: str) -> dict[Any, float]:
        """Returns how many rows have each value, word or bin of a column; nothing if all are listed, or for a column that is
        only counted together with another.
        """
        if not self.min_rows or column not in self.tally.schema.features.names:
            return {}
        sums = self.tally.of(column)  # what was counted of the column
        if isinstance(sums, Words):
            lexicon = Lexicon.of(self.tally.schema[column], sums)
            keys: Sequence[Any] = lexicon.words
            counts = lexicon.documents()  # words × classes
        else:
            keys = sums.keys[0]  # the values or bins of the only column
            counts = sums.cells.value  # keys × classes
        return dict(zip(keys, counts.sum(axis=1).tolist(), strict=True))

    def _rows_of_intervals(self, column: str, cuts: Real, rows_by_bin: Mapping[Any, float]) -> Any:
        """Returns how many rows have a number of the column in each interval between these ascending cuts, in order (one
        more than cuts). ``rows_by_bin`` has the rows of each bin, by its number; if it is empty, all are 0.
        """
        if not rows_by_bin:
            return np.zeros(len(cuts) + 1)
        feature = self.tally.schema[column]
        (batch,) = read_batches(read({column: [*cuts.tolist(), 0.0]}), "exporting")
        codes = feature.family.keys_of(batch, feature)  # ``cells()`` returns the bin of each row
        assert codes is not None
        # Of each bin, the number of its interval; each cut is the bin that begins there. The row of 0 is no cut.
        interval_of_bin = np.searchsorted([*codes.cells()][:-1], [*rows_by_bin], side="right")
        return np.bincount(interval_of_bin, [*rows_by_bin.values()], len(cuts) + 1)

    # Tables

    def make_rows(self) -> dict[str, Rows]:
        """Returns the rows of each table except prior and calibration, by the name of the table.

        ``pairs`` has for each pair of columns their names and nats (entries, entries, classes); ``entries`` has for each
        column the name of its table, and the keys that name its entries in it; ``nats`` those of the column alone.
        """
        nats_of_column: dict[str, list[Real]] = {}  # for each pair that it is in: (entries, other's entries × classes)
        for first, second, nats in self.pairs:
            nats_of_column.setdefault(first, []).append(nats.reshape(len(nats), -1))
            nats_of_column.setdefault(second, []).append(nats.swapaxes(0, 1).reshape(nats.shape[1], -1))
        # Entries of a column with the same nats in all pairs share a cell.
        entry_of_cell = {}  # by column: the number of an entry of each cell
        cell_of_entry = {}  # by column: the cell of each entry
        for column, entry_nats in nats_of_column.items():
            # Distinct lines of nats are cells: the first entry of each, and the cell number of each entry.
            _, entry_of_cell[column], cell_numbers = np.unique(
                np.hstack(entry_nats), axis=0, return_index=True, return_inverse=True
            )
            cell_of_entry[column] = cell_numbers.ravel().tolist()
        for name, (table, keys, _) in self.entries.items():
            column_nats = self.nats.get(name, np.zeros((len(keys), self.n_classes)))  # entries × classes
            for key, cell, nats in zip(keys, cell_of_entry.get(name, repeat(None)), column_nats, strict=False):
                self._add_rows(table, (self.column_numbers[name], *key, cell), nats)
        for first, second, nats in self.pairs if self.min_rows <= 1 else ():
            cell_nats = nats[np.ix_(entry_of_cell[first], entry_of_cell[second])]  # (cells, cells, classes)
            for first_cell, second_cell in np.argwhere(cell_nats.any(axis=2)).tolist():
                pair_key = self.column_numbers[first], first_cell, self.column_numbers[second], second_cell
                self._add_rows("pairs", pair_key, cell_nats[first_cell, second_cell])
        return self.rows


def _arrow_fields(description: str) -> list[pa.Field]:
    """Returns the Arrow fields that a text such as "name:string nats:double odds:double*" describes; * is a list of the
    type, and the type "reading" a record of ``READING_FIELDS``.
    """
    import pyarrow as pa

    fields = []
    for name, kind in (field.split(":") for field in description.split()):  # kind: the name of a type
        element = pa.struct(_arrow_fields(READING_FIELDS)) if kind == "reading" else pa.type_for_alias(kind.rstrip("*"))
        fields.append(pa.field(name, pa.list_(element) if kind.endswith("*") else element))
    return fields


def _arrow_table(description: str, rows: Rows) -> pa.Table:
    """Returns an Arrow table of these rows (tuples). ``description`` has its columns and their types, as in
    ``COLUMNS``. Raises an error for text that is not valid Unicode.
    """
    import pyarrow as pa

    fields = _arrow_fields(description)
    try:
        columns: list[Any] = [*zip(*rows, strict=True)] or [[]] * len(fields)
        return pa.table(columns, schema=pa.schema(fields))
    except UnicodeEncodeError as problem:
        raise errors.bad_setting("text", problem.object, "without lone surrogates, which no file can hold") from None
