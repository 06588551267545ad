"""Schema: what is counted, fixed before counting; and how it is inferred from the first rows."""

from __future__ import annotations

import re
from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.families import FAMILIES, Bernoulli, Categorical, Family, Gaussian, QuantileTree, Text, family
from banbury.families.bags.occurrences import Occurrences
from banbury.families.bags.words import runs_python
from banbury.families.column_tree import ColumnTree, joining_family
from banbury.families.family import FEWEST_ROWS, MOST_CATEGORIES, Counter, Feature, Kind, Reads
from banbury.families.gaussian import NormalInverseGamma
from banbury.families.keys import kind_of
from banbury.families.moments import SAMPLE, first_rows
from banbury.reading import Batch, Sparse, read
from banbury.reading.batches import all_whole, as_name
from banbury.reading.columns import EXACT, Numbers
from banbury.tally.label_sets import LabelTarget
from banbury.uncollected import uncollected

Features = Any  # "auto", a family for all columns, or a mapping from column to family or None
Missing = Literal["skip", "category"]
Trees = Literal["many", "all", "none"]  # whether numbers are quantile trees: from 100 rows on, always, or never

WHOLE = "whole numbers"  # why they are
WORDS_OF_TEXT = 3.0  # more words than this on average, and a column of strings is text
MANY_ALIKE = 1000  # features in a row that are one entry of a file
AGAIN = ", which needs the rows again. Recount with bb.count(..., features=...)."
FEW_ROWS = 10  # most columns show in these that they hold more than one value
FEWEST_IDENTIFIERS = 20  # as many strings, all different, and they name the rows
CATEGORICAL: Mapping[Missing, Family] = {"skip": Categorical(), "category": Categorical(missing="category")}
# Shared, so that columns of one family are seen to be so at a glance.
QUANTILE_TREE = QuantileTree()
GAUSSIAN = Gaussian()
LISTS = Gaussian(covariance="shrunk")
BERNOULLI = Bernoulli()
TEXT = Text()
OCCURRENCES = Occurrences()
# Instants, times of day and lengths of time as they are written: by standard, by Python, by pandas, by Polars.
WHEN = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d(?::?\d\d(?::?\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
    r"|(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
    r"|-?\d+ days?(?:,? [-+]?\d+:\d\d:\d\d(?:\.\d+)?)?|-?\d+:[0-5]\d:[0-5]\d(?:\.\d+)?"
    r"|-?P(?=[\dT])(?:\d+W)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?"
)
DATE_OR_TIME = "a date or time; convert it to numbers or words to use it"
STEADY = "one value only"  # why columns are left out, until other rows show more
NO_VALUE = "no value"
IDENTIFIER = re.compile(r"(^|[_\W])(id|uid|uuid|guid|index|key|rowid)$|[a-z]I[dD]$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Schema:
    """What is counted: the features in order, each with its family, and the target.

    Schemas are equal if they count the same things. How counts become probabilities does not matter.

    >>> import banbury as bb
    >>> print(bb.Schema.infer(bb.datasets.play_tennis(), target="play"))
    Schema: 4 features, target 'play'
      outlook      categorical  strings
      temperature  categorical  strings
      humidity     categorical  strings
      wind         categorical  strings
    """

    features: tuple[Feature, ...]
    target: str | None = None
    columns: tuple[str, ...] = ()  # of the table, in order, without the target
    named: bool = True  # False when columns have positions only
    left_out: Mapping[str, str] = field(default_factory=dict)  # column → why
    target_kind: Kind | None = None  # of a target that is a column
    labels: LabelTarget | None = None  # where rows have sets of labels
    reading: Mapping[str, Any] = field(default_factory=dict)  # how files were read, so that others are read likewise

    @classmethod
    def infer(
        cls,
        data: Any,
        target: str | int | None = None,
        *,
        features: Features = "auto",
        missing: Missing = "skip",
        **reading: Any,
    ) -> Schema:
        """Infers the schema of a table from its column types and its first batch.

        Booleans become Bernoulli. Whole numbers become categorical if the first 1,000 rows have at most 20 distinct
        values (with fewer than 100 rows: only 0 and 1). Other numbers become quantile trees (with fewer than 100 rows:
        Gaussian). Strings become categorical, or text if they have more than three words on average. Dates,
        identifiers, and columns without values or with a single value are left out, and ``left_out`` has the reasons.

        ``features`` overrides this for all columns or by name. None leaves a column out, and "soil_*" is every column
        whose name begins with "soil_". ``reading`` has the options for reading files, as in ``bb.count``.
        """
        source = read(data, **reading)
        target = source.target if target is None else as_name(target)
        for batch in source:
            aside = {} if target is None else {target: "the target"}
            return replace(infer(batch, aside, target, features, missing), reading=source.reading)
        raise errors.empty_data(source.name, "it has no batches")

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The features that are counted together, in the order of the first feature of each group."""
        return group_features(self.features)

    @property
    def word_columns(self) -> list[str]:
        """The columns whose words are counted."""
        return [name for group in self.groups if group.counter.words for f in group.features for name in f.inputs]

    @property
    def runs_python(self) -> bool:
        """Whether some feature loops over rows in Python."""
        return any(runs_python(feature.family) for feature in self.features)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The columns that features are counted from."""
        return frozenset(name for feature in self.features for name in feature.inputs)

    @cached_property
    def index(self) -> dict[str, int]:
        return {feature.name: f for f, feature in enumerate(self.features)}

    def __getitem__(self, name: Any) -> Feature:
        """A feature by its name; a block by its columns, too."""
        if isinstance(name, tuple):
            name = next((f.name for f in self.features if f.columns == name), name)
        if name not in self.index:
            if block := next((f for f in self.features if name in f.columns), None):
                columns = f"{errors.listed(map(repr, block.columns), 6)}{',' * (len(block.columns) == 1)}"
                text = f"column {name!r} has no distribution of its own, because it is in the block ({columns}). Name the block "
                text += "instead, with all its columns."
                raise errors.UnknownColumn(text, column=name, block=block.columns)
            raise errors.unknown_column(name, [f.name for f in self.features])
        return self.features[self.index[name]]

    @cached_property
    def kinds(self) -> dict[str, Reads]:
        """The types that the columns of a text file must be read as, so that more rows are counted in the same way."""
        readings = ((f, f.counter.reads(f)) for f in self.features)
        return {name: kind for feature, kind in readings if kind is not None for name in feature.inputs}

    def differs(self, other: Schema) -> str | None:
        """Returns why tallies under the two schemas cannot be combined, or None. Different bin widths are not a reason."""
        if (self.labels is None) != (other.labels is None):
            return "one counts label sets and the other a single class per row"
        here = [f.name for f in self.features]
        there = [f.name for f in other.features]
        if here != there:
            only = [name for name in here if name not in there], [name for name in there if name not in here]
            if not any(only):
                return "the same features in another order"
            return (
                f"features only in the first [{errors.listed(only[0])}], only in the second [{errors.listed(only[1])}]"
            )
        for a, b in zip(self.features, other.features, strict=True):
            if a.columns is not b.columns and a.columns != b.columns:
                return f"block {a.name!r} has different columns"
            if a is not b and a.counting_key() != b.counting_key():
                return f"feature {a.name!r} is {_describe(a)} in one and {_describe(b)} in the other"
        return None

    def counting_rules(self) -> list[Any]:
        """Returns everything that determines the sums of rows, for JSON. Equal schemas have equal rules."""
        several = [] if self.labels is None else ["sets of labels"]
        return several + [_plain([f.name, f.columns, f.counting_key(), f.unit]) for f in self.features]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        same_bins = [f.unit for f in self.features] == [f.unit for f in other.features]
        return self is other or (same_bins and self.differs(other) is None)

    def __hash__(self) -> int:
        return hash(tuple((f.name, f.family.name) for f in self.features))

    def with_widest_bins(self, other: Schema) -> Schema:
        """Returns the same schema with bins at least as wide as the other's."""
        units = [max(a.unit, b.unit) for a, b in zip(self.features, other.features, strict=True)]
        if units == [f.unit for f in self.features]:
            return self
        widened = (f if f.unit == unit else f._replace(unit=unit) for f, unit in zip(self.features, units, strict=True))
        return replace(self, features=tuple(widened))

    def with_features(self, groups: Iterable[tuple[Group, Sequence[Feature]]]) -> Schema:
        """Returns the same schema with the features of these groups."""
        features = list(self.features)
        for group, changed in groups:
            for place, feature in zip(group.places, changed, strict=True):
                features[place] = feature
        return replace(self, features=tuple(features))

    def with_families(self, overrides: Mapping[str, Any]) -> Schema:
        """Returns the same schema with other settings for estimation. Raises an error if they would change the counts."""
        features = list(self.features)
        for name, choice in expand_stars(overrides, [feature.name for feature in features]):
            old = self[name]
            features[self.index[old.name]] = new = old._replace(family=_with_counting_half(old, family(choice)))
            new.family.check_columns(new)
        return replace(self, features=tuple(features))

    def __str__(self) -> str:
        target = "" if self.target is None else f", target {self.target!r}"
        lines = [f"Schema: {len(self.features):,} feature{'s' * (len(self.features) != 1)}{target}"]
        rows = [(f.name, str(f.family), f.why) for f in self.features[:40]]
        lines += _table(rows)
        if len(self.features) > 40:
            lines.append(f"  … and {len(self.features) - 40:,} more")
        if self.left_out:
            lines.append("left out:")
            lines += _table(list(self.left_out.items())[:40])
        if self.reading:
            lines.append("read with:")
            lines += _table([(name, errors.shortened(repr(value), 80)) for name, value in self.reading.items()])
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Returns the schema for JSON, with one entry for each feature, or for a run of features that differ only in
        name and place.
        """
        features = list[dict[str, Any]]()
        for _, run in groupby(self.features, lambda f: (id(f.family), f.kind, f.why, f[6:])):
            alike = list(run)
            features += [_several_to_dict(alike)] if len(alike) >= MANY_ALIKE else map(_feature_to_dict, alike)
        rest = {
            "target": self.target,
            "target_kind": self.target_kind,
            "columns": list(self.columns),
            "named": self.named,
            "left_out": dict(self.left_out),
            **({} if self.labels is None else {"labels": self.labels.to_dict()}),
            **({"reading": dict(self.reading)} if self.reading else {}),
        }
        return {"features": features, **rest}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        features = tuple(feature for entry in data["features"] for feature in _features_from_dict(entry))
        columns = tuple(data["columns"])
        labels = LabelTarget.from_dict(data["labels"]) if "labels" in data else None
        rest = data["named"], data["left_out"], data["target_kind"], labels, data.get("reading", {})
        return cls(features, data["target"], columns, *rest)


def _feature_to_dict(f: Feature) -> dict[str, Any]:
    return {
        "name": f.name,
        **family_to_dict(f.family),
        "origin": f.origin,
        "unit": f.unit,
        "kind": f.kind,
        "why": f.why,
        **({"columns": list(f.columns)} if f.columns else {}),
        **({"scales": [list(scale) for scale in f.scales]} if f.scales else {}),
        **({"kinds": list(f.kinds)} if f.kinds else {}),
        **({"holds_lists": True} if f.holds_lists else {}),
    }


def _several_to_dict(alike: Sequence[Feature]) -> dict[str, Any]:
    """Features that differ in name, origin and unit alone, as one entry: of a million of them the rest would be the most."""
    same = _feature_to_dict(alike[0])
    return same | {part: [getattr(f, part) for f in alike] for part in ("name", "origin", "unit")}


def _features_from_dict(f: Mapping[str, Any]) -> Iterable[Feature]:
    """The features of an entry: one, or several where it has a list of names."""
    feature_family = family_from_dict(f)
    scales = tuple((scale[0], scale[1]) for scale in f.get("scales", ()))
    columns, kinds = (tuple(f.get(part, ())) for part in ("columns", "kinds"))
    common = f["kind"], f["why"], columns, scales, kinds, f.get("holds_lists", False)
    if not isinstance(f["name"], list):
        return (Feature(f["name"], feature_family, f["origin"], f["unit"], *common),)
    places = zip(f["name"], f["origin"], f["unit"], strict=True)
    return [Feature(name, feature_family, origin, unit, *common) for name, origin, unit in places]


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def group_features(features: tuple[Feature, ...]) -> tuple[Group, ...]:
    """Groups features by what counts them; each group has their places among all features."""
    first = features[0] if features else None
    if first is not None and all(f.family is first.family and not f.columns for f in features):  # at a glance
        counter = first.counter
        if not counter.apart or len(features) == 1:
            return (Group(counter, features, range(len(features))),)
    places: dict[Any, list[int]] = {}
    counters: dict[Any, Counter] = {}
    for place, feature in enumerate(features):
        counter = feature.counter
        key = counter, feature.name if counter.apart else None
        places.setdefault(key, []).append(place)
        counters[key] = counter
    return tuple(Group(counters[key], tuple(features[p] for p in at), at) for key, at in places.items())


class Group(NamedTuple):
    """Features that are counted together, and their places in the schema."""

    counter: Counter
    features: tuple[Feature, ...]
    places: Sequence[int]


def _describe(feature: Feature) -> str:
    return f"{feature.family}{feature.counter.describe_scale(feature)}"


def _with_counting_half(feature: Feature, new: Family) -> Family:
    """``new`` with the counting half of the feature's family; raises where it asks for sums that were not counted."""
    name = feature.name
    old = feature.family
    if old.counting_key()[0] != new.counting_key()[0]:
        raise errors.SchemaMismatch(f"feature {name!r} was counted for {old}, not for {new}{AGAIN}")
    settings = new.settings()
    for setting in new.counting:
        counted = getattr(old, setting)
        if setting in settings and settings[setting] != counted:
            message = f"feature {name!r} was counted with {setting}={counted!r}, not {settings[setting]!r}"
            raise errors.SchemaMismatch(f"{message}{AGAIN}")
    kept = {setting: getattr(old, setting) for setting in new.counting}
    return replace(new, **kept)  # type: ignore[type-var]


def family_to_dict(feature_family: Family) -> dict[str, Any]:
    """Returns a family's name and settings for JSON."""
    return {"family": feature_family.name, "settings": {k: _plain(v) for k, v in feature_family.settings().items()}}


def _plain(setting: Any) -> Any:
    if isinstance(setting, Mapping):
        return {"pairs": [[_plain(k), _plain(v)] for k, v in setting.items()]}
    if isinstance(setting, NormalInverseGamma):
        return {"prior": {f.name: _plain(getattr(setting, f.name)) for f in fields(setting)}}
    if isinstance(setting, (tuple, list)):
        return [_plain(member) for member in setting]
    return setting.item() if isinstance(setting, np.generic) else setting


def family_from_dict(data: Mapping[str, Any]) -> Family:
    return FAMILIES[data["family"]](**{k: _unplain(v) for k, v in data["settings"].items()})


def _unplain(setting: Any) -> Any:
    if isinstance(setting, dict):
        return dict(map(tuple, setting["pairs"])) if "pairs" in setting else NormalInverseGamma(**setting["prior"])
    return setting


# Inference -----------------------------------------------------------------------------------------------------------


@dataclass
class ColumnFacts:
    """What later rows have shown about columns, and which columns inference takes for ``whole_numbers`` in all rows."""

    fractional: frozenset[str] = frozenset()  # those that have fractions in some row
    varied: frozenset[str] = frozenset()  # those that have several values, though one in the first rows
    kinds: Mapping[str, Any] = field(default_factory=dict)  # of those without a value in the first rows
    whole_numbers: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.fractional or self.varied or self.kinds)

    def __or__(self, other: ColumnFacts) -> ColumnFacts:
        """What both have shown, as rows in several places do."""
        kinds = {**self.kinds, **other.kinds}
        for name in self.kinds.keys() & other.kinds.keys():
            kinds[name] = wider_kind(self.kinds[name], other.kinds[name])
        return ColumnFacts(self.fractional | other.fractional, self.varied | other.varied, kinds)

    @property
    def columns(self) -> list[str]:
        return sorted({*self.fractional, *self.varied, *self.kinds})


def wider_kind(a: str, b: str) -> str:
    """Returns the type of a column that has one type in some rows and another in others."""
    from_narrow_to_wide = ("boolean", "integer", "float")
    if a == b:
        return a
    return max(a, b, key=from_narrow_to_wide.index) if {a, b} <= set(from_narrow_to_wide) else "string"


@uncollected()
def infer(
    batch: Batch,
    reserved: Mapping[str, str] | Iterable[tuple[str, str]],
    target: str | None,
    features: Features,
    missing: Missing,
    more_to_come: bool = False,
    trees: Trees = "many",
    facts: ColumnFacts | None = None,
) -> Schema:
    """Infers the schema of a table from its first batch. Columns in ``reserved``, such as the target, are not features.

    Args:
        more_to_come: Whether the batch can be small, so that a column with one value or none may still have others.
        trees: Whether numbers become quantile trees if there are many rows, always ("all") or never ("none").
        facts: What other rows have shown. Columns that are taken for whole numbers are added to it.
    """
    facts = ColumnFacts() if facts is None else facts
    if missing not in ("skip", "category"):
        raise errors.unknown_choice("missing", missing, ["skip", "category"])
    if (joining := _of_all(features)) is not None:
        plain = infer(batch, reserved, target, joining.columns, missing, more_to_come, "none", facts)
        return replace(plain, features=tuple(joining.join(plain.features, batch)))
    reserved = {**dict.fromkeys(batch.aside, "the weights of the rows"), **dict(reserved)}
    for name in reserved:
        if name not in batch.names:
            raise errors.unknown_column(name, batch.names, batch.source)
    columns = tuple(name for name in batch.names if name not in reserved) if reserved else batch.names
    declared, blocks = _families_by_column(features, columns, batch, reserved)
    taken = {name for block in blocks for name in block.columns}
    named = declared.keys() | taken
    free = tuple(name for name in columns if name not in named) if named else columns
    kinds = dict(zip(free, batch.kinds(free), strict=True))
    kinds |= {name: kind for name, kind in facts.kinds.items() if kinds.get(name) == "empty"}
    first = batch.slice(0, SAMPLE)
    numbers = [name for name, kind in kinds.items() if kind in ("integer", "float")]
    sample = first_rows(batch, batch.names if tuple(numbers) == batch.names else numbers)
    steady = set() if more_to_come else _steady(batch, kinds, numbers, sample, missing) - facts.varied
    n_values = {} if more_to_come or trees == "all" else _few_values(batch, numbers, sample, facts)
    if more_to_come:
        kinds = {n: "float" if k == "empty" and isinstance(batch.column(n), Numbers) else k for n, k in kinds.items()}
    as_trees = trees == "all" or (trees == "many" and batch.n_rows >= FEWEST_ROWS)
    chosen: list[Feature] = []
    left_out: dict[str, str] = {}
    for name in columns:
        if name in taken:
            continue
        chosen_family = declared.get(name)
        why = "declared"
        if name in kinds:
            chosen_family, why = _choose(first, name, kinds[name], missing, steady, n_values, as_trees)
        if chosen_family is None:
            left_out[name] = why
        else:
            chosen.append(
                block((name,), chosen_family, why) if chosen_family.block else Feature(name, chosen_family, why=why)
            )
    if not chosen and not blocks:
        warn_of_nothing(left_out)
    kind = None if target is None or batch.kind(target) == "empty" else kind_of(batch, target)
    features = settle_features(chosen + blocks, batch)
    facts.whole_numbers.update(n_values)
    if n_values or declared or "integer" in kinds.values():
        numeric = (f for f in features if f.kind == "float" and not f.columns)
        whole_numbers = {f.name for f in numeric if (kinds.get(f.name) or batch.kind(f.name)) == "integer"}.union(
            n_values
        )
        features = tuple(f._replace(kind="integer") if f.name in whole_numbers else f for f in features)
    return Schema(features, target, columns, batch.named, left_out, kind)


def _of_all(features: Features) -> ColumnTree | None:
    """The family that joins all columns it can, where it was asked for."""
    if isinstance(features, Mapping) or (isinstance(features, str) and features == "auto"):
        return None
    return joining_family(family(features))


def settle_features(features: Sequence[Feature], batch: Batch) -> tuple[Feature, ...]:
    """Returns the features with everything that their first rows settle about counting."""
    for feature in {id(f.family) if not f.columns else id(f): f for f in features}.values():
        feature.family.check_columns(feature)
    groups = group_features(tuple(features))
    if len(groups) == 1:
        return tuple(groups[0].counter.settle(groups[0].features, batch))
    placed = list(features)
    for counter, group, places in groups:
        for place, feature in zip(places, counter.settle(group, batch), strict=True):
            placed[place] = feature
    return tuple(placed)


def of_one_family(batch: Batch, feature_family: Family) -> Schema:
    """Returns the schema of columns that all have the same family, however few rows there are."""
    counter = feature_family.counter(Feature("", feature_family))
    features = counter.settle([Feature(name, feature_family) for name in batch.names], batch)
    return Schema(tuple(features), None, batch.names, batch.named)


def _families_by_column(
    features: Features, columns: tuple[str, ...], batch: Batch, reserved: Mapping[str, str]
) -> tuple[dict[str, Family | None], list[Feature]]:
    """The families that were given, by column; and blocks of columns with theirs."""
    if isinstance(features, str) and features == "auto":
        return {}, [block(columns, OCCURRENCES, "a sparse matrix")] if isinstance(batch, Sparse) else []
    if not isinstance(features, Mapping):
        only_family = family(features)
        return ({}, [block(columns, only_family)]) if only_family.block else (dict.fromkeys(columns, only_family), [])
    declared: dict[str, Family | None] = {}
    blocks: list[Feature] = []
    twice: list[str] = []
    for name, choice in expand_stars(features, columns, batch.source):
        several = tuple(_column(n, columns, batch, reserved) for n in (name if isinstance(name, tuple) else (name,)))
        chosen = None if choice is None else family(choice)
        if chosen is not None and (chosen.block or (chosen.blocks and isinstance(name, tuple))):
            blocks.append(block(several, chosen))
        elif isinstance(name, tuple):
            expected = "a family that models columns jointly, such as bb.Gaussian(covariance='full'), "
            expected += "bb.KernelDensity(), bb.Histogram() or bb.Joint()"
            raise errors.bad_setting("features", f"{name!r}: {choice!r}", expected)
        else:
            twice += [several[0]] if several[0] in declared else []
            declared[several[0]] = chosen
    blocks = _unlike(blocks, batch)
    every = Counts([name for feature in blocks for name in feature.columns] + list(declared))
    if twice := twice or [name for name, times in every.items() if times > 1]:
        what = f"column {twice[0]!r} in two places"
        raise errors.bad_setting("features", what, "a mapping that has each column once")
    return declared, blocks


def expand_stars(
    features: Mapping[Any, Any], columns: Sequence[str], source: str | None = None
) -> Iterator[tuple[Any, Any]]:
    """Returns the families by column: ``"soil_*"`` stands for all columns whose names begin with "soil_" and are not
    listed themselves.

    If a column's own name is the pattern, it stands for that column only. A family of several columns combines them.
    """
    column_names = set(columns)
    named = {column for name in features for column in (name if isinstance(name, tuple) else (name,))}

    def meant(name: Any) -> tuple[Any, ...]:
        if not isinstance(name, str) or "*" not in name or name in column_names:
            return (name,)
        pattern = re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)
        matches = [column for column in columns if pattern.fullmatch(column)]
        if not matches:
            raise errors.unknown_column(name, columns, source)
        return tuple(column for column in matches if column not in named)

    for name, choice in features.items():
        if isinstance(name, tuple):
            yield tuple(column for part in name for column in meant(part)), choice
        elif (several := meant(name)) != (name,) and several and choice is not None and family(choice).block:
            yield several, choice
        else:
            yield from ((column, choice) for column in several)


def _unlike(blocks: list[Feature], batch: Batch) -> list[Feature]:
    """Blocks whose names are those of no column, and of no other block."""
    renamed_blocks: list[Feature] = []
    for feature in blocks:
        name = feature.name
        other_names = set(batch.names).difference(feature.columns).union(other.name for other in renamed_blocks)
        while name in other_names:
            name = f"({name})"
        renamed_blocks.append(feature if name == feature.name else feature._replace(name=name))
    return renamed_blocks


def _column(name: Any, columns: tuple[str, ...], batch: Batch, reserved: Mapping[str, str]) -> str:
    """The column of this name; of this number, where columns have numbers; else of this place."""
    column = as_name(name)
    numbered = batch.named and any(other.isdecimal() for other in batch.names)
    if column is not name and column not in batch.names and not numbered and -len(columns) <= name < len(columns):
        column = columns[name]
    if column in reserved:
        why = f"column {column!r} is {reserved[column]}, so it cannot be a feature or part of a block. Remove it from features=."
        raise errors.BadSetting(why, setting="features", value=column, column=column)
    if column not in columns:
        raise errors.unknown_column(name, columns, batch.source)
    return str(column)


def block(columns: tuple[str, ...], block_family: Family, why: str = "declared") -> Feature:
    """Returns a feature of several columns."""
    if not columns:
        raise errors.bad_setting("features", "a block of no columns", "at least one column in a block")
    name = " + ".join(columns) if len(columns) <= 3 else f"{columns[0]} … {columns[-1]}"
    return Feature(name, block_family, kind="float", why=why, columns=columns)


def _choose(
    batch: Batch, name: str, kind: str, missing: Missing, steady: set[str], n_values: Mapping[str, int], as_trees: bool
) -> tuple[Family | None, str]:
    """The family of a column from its type and first rows, which this batch has, and why; None to leave it out."""
    if batch.is_text(name):
        return TEXT, "texts"
    if kind == "empty":
        return None, NO_VALUE
    if kind == "date":
        return None, DATE_OR_TIME
    if kind == "list":
        return LISTS, f"lists of {errors.many(batch.width(name), 'number')}"
    if kind == "other":
        return None, "neither numbers nor words"
    if name in steady:
        are_dates = kind == "string" and not batch.categorical(name) and _are_dates(batch.head(name, SAMPLE))
        return None, DATE_OR_TIME if are_dates else STEADY
    if batch.categorical(name):
        return CATEGORICAL[missing], "declared categorical"
    if kind == "boolean":
        return (BERNOULLI, "booleans") if missing == "skip" else (CATEGORICAL[missing], "booleans")
    if kind == "string":
        return _choose_words(batch, name, missing)
    if batch.named and IDENTIFIER.search(name) and kind == "integer" and _all_different(batch, name):
        return None, "identifiers: a different value in every row"
    if name in n_values:
        return CATEGORICAL[missing], f"{WHOLE}, {n_values[name]} different"
    return QUANTILE_TREE if as_trees else GAUSSIAN, "integers" if kind == "integer" else "floats"


def _choose_words(batch: Batch, name: str, missing: Missing) -> tuple[Family | None, str]:
    values = batch.head(name, SAMPLE)
    if _are_dates(values):
        return None, DATE_OR_TIME
    often = Counts(map(str, values))
    words = sum(n * len(text.split()) for text, n in often.items()) / max(len(values), 1)
    if words > WORDS_OF_TEXT:
        return TEXT, f"{words:.1f} words on average"
    if len(values) >= FEWEST_IDENTIFIERS and len(set(values)) == len(values):
        return None, "identifiers: a different value in every row"
    return CATEGORICAL[missing], "strings"


def _are_dates(values: Sequence[Any]) -> bool:
    """Whether all of some values are dates or times, written as texts."""
    return bool(values) and all(map(WHEN.fullmatch, set(map(str, values))))


def _all_different(batch: Batch, name: str) -> bool:
    values = batch.head(name, SAMPLE)
    return len(values) >= 2 and len(set(values)) == len(values)


def _few_values(batch: Batch, names: Sequence[str], sample: Real, facts: ColumnFacts) -> dict[str, int]:
    """The columns of whole numbers of which the first rows show few: how many. Of few rows, those of 0 and 1 alone."""
    if not sample.size:
        return {}
    first = sample[0]  # in most columns it shows that there are fractions, or more than 0 and 1
    may = (first == 0) | (first == 1) if len(sample) < FEWEST_ROWS else first == np.rint(first)
    at = np.flatnonzero(may | np.isnan(first)).tolist()
    if len(at) < len(names):
        names = [names[j] for j in at]
        sample = sample[:, at]
    ordered = np.sort(sample, axis=0)  # missing values last
    gap = np.isnan(ordered)
    n = len(ordered) - gap.sum(axis=0)
    distinct = (n > 0) + ((np.diff(ordered, axis=0) != 0) & ~gap[1:]).sum(axis=0)
    flags = ((ordered == 0) | (ordered == 1) | gap).all(axis=0) & (distinct == 2)
    exact = ((np.abs(ordered) <= EXACT) | gap).all(axis=0)  # or else unlike integers may be the same here
    chosen = flags | ((n >= FEWEST_ROWS) & (distinct <= MOST_CATEGORIES) & exact)
    likely = {names[j]: int(distinct[j]) for j in np.flatnonzero(chosen).tolist()}
    likely = {name: n for name, n in likely.items() if name not in facts.fractional and not batch.categorical(name)}
    whole_numbers = all_whole(batch, list(likely))
    return {name: n for name, n in likely.items() if name in whole_numbers}


def with_few_values(schema: Schema, batch: Batch, missing: Missing, facts: ColumnFacts) -> Schema:
    """Returns the schema with categories for inferred whole numbers that have few distinct values in these rows."""
    inferred = [feature.name for feature in schema.features if feature.why in ("integers", "floats")]
    n_values = _few_values(batch, inferred, first_rows(batch, inferred), facts)
    facts.whole_numbers.update(n_values)
    why = {name: f"{WHOLE}, {n} different" for name, n in n_values.items()}
    features = tuple(
        f._replace(family=CATEGORICAL[missing], kind="integer", why=why[f.name]) if f.name in why else f
        for f in schema.features
    )
    return replace(schema, features=features)


def _steady(batch: Batch, kinds: Mapping[str, str], numbers: Sequence[str], sample: Real, missing: Missing) -> set[str]:
    """The columns that have two values at least and all of them the same; missing is a value where it is a category."""
    candidates = [name for name, kind in kinds.items() if kind in ("string", "boolean")]
    if sample.size:
        level = np.fmin.reduce(sample, axis=0) == np.fmax.reduce(sample, axis=0)
        candidates += [numbers[j] for j in np.flatnonzero(level).tolist()]
    must_fill_rows = (
        {name for name in candidates if kinds[name] in ("string", "boolean")} if missing == "category" else set()
    )
    return {name for name in candidates if _same_throughout(batch, name, batch.n_rows if name in must_fill_rows else 2)}


def _same_throughout(batch: Batch, name: str, fewest: int) -> bool:
    if any(len(set(batch.head(name, n))) != 1 for n in (FEW_ROWS, SAMPLE)):
        return False
    values = batch.head(name, batch.n_rows)
    return len(values) >= max(fewest, 2) and len(set(values)) == 1


def warn_of_nothing(left_out: Mapping[str, str]) -> None:
    """Warns that no column is left to learn from."""
    why = errors.listed((f"{name!r} ({reason})" for name, reason in left_out.items()), 6)
    text = "there is no column to learn from, so every prediction will be the class prior"
    text += f"; left out: {why}. To use a column anyway, name its family in features=" if why else ""
    errors.warn(errors.BanburyWarning(text))
