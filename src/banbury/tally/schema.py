"""Schema: what is counted, fixed before counting; and how it is inferred from the first rows."""

from __future__ import annotations

import re
from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from banbury import errors
from banbury.arrays import Int, Real, plain
from banbury.families import FAMILIES, Bernoulli, Categorical, Family, Gaussian, QuantileTree, Text, family
from banbury.families.bags.bag_of_words import runs_python
from banbury.families.bags.occurrences import Occurrences
from banbury.families.column_tree import ColumnTree, joining_family
from banbury.families.family import FEWEST_ROWS, MOST_CATEGORIES, Counter, Feature, Features, Kind, Reads
from banbury.families.gaussian import NormalInverseGamma
from banbury.families.keys import column_kind
from banbury.families.moments import SAMPLE, first_rows
from banbury.notebooks import align_columns
from banbury.reading import Batch, Sparse, read
from banbury.reading.batches import all_whole, as_name
from banbury.reading.columns import EXACT, Numbers
from banbury.tally.label_sets import LabelTarget

FamilyOption = Any  # "auto", a family for all columns, or a mapping from column to family or None
Missing = Literal["skip", "category"]
Trees = Literal["many", "all", "none"]  # whether numbers are quantile trees: from 100 rows on, always, or never

WHOLE_NUMBERS = "whole numbers"  # why columns of few whole numbers are categorical
WORDS_OF_TEXT = 3.0  # more words than this on average, and a column of strings is text
FEWEST_IN_ONE_ENTRY = 1000  # so many features in a row with one template are one entry of a file
NEEDS_ROWS_AGAIN = ", which needs the rows again. Recount with bb.count(..., features=...)."
FEWEST_IDENTIFIERS = 20  # as many strings, all different, and they name the rows
CATEGORICAL: Mapping[Missing, Family] = {"skip": Categorical(), "category": Categorical(missing="category")}
QUANTILE_TREE = QuantileTree()
GAUSSIAN = Gaussian()
GAUSSIAN_OF_LISTS = Gaussian(covariance="shrunk")
BERNOULLI = Bernoulli()
TEXT = Text()
OCCURRENCES = Occurrences()
# Instants, times of day and lengths of time as they are written: by standard, by Python, by pandas, by Polars.
DATE_OR_TIME_PATTERN = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d(?::?\d\d(?::?\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
    r"|(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
    r"|-?\d+ days?(?:,? [-+]?\d+:\d\d:\d\d(?:\.\d+)?)?|-?\d+:[0-5]\d:[0-5]\d(?:\.\d+)?"
    r"|-?P(?=[\dT])(?:\d+W)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?"
)
DATE_OR_TIME = "a date or time; convert it to numbers or words to use it"
ONE_VALUE = "one value only"  # why columns are left out, until other rows show more
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

    features: Features
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
        features: FamilyOption = "auto",
        missing: Missing = "skip",
        **reading: Any,
    ) -> Schema:
        """Infers the schema of a table from its column types and its first batch, and returns it.

        Booleans become Bernoulli. Whole numbers become categorical if the first 1,000 rows have at most 20 distinct
        values (with fewer than 100 rows: only 0 and 1). Other numbers become quantile trees (with fewer than 100 rows:
        Gaussian). Strings become categorical, or text if they have more than three words on average. Dates,
        identifiers, and columns without values or with a single value are left out, and ``left_out`` has the reasons.

        ``features`` overrides this for all columns or by name. None leaves a column out, and "soil_*" is every column
        whose name begins with "soil_". ``missing="category"`` makes a missing string or boolean a value of its own.
        ``reading`` has the options for reading files, as in ``bb.count``.
        """
        source = read(data, **reading)
        target = source.target if target is None else as_name(target)
        for batch in source:
            reserved = {} if target is None else {target: "the target"}  # column → its role, for messages
            return replace(infer(batch, reserved, target, features, missing), reading=source.reading)
        raise errors.empty_data(source.name, "it has no batches")

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", Features.of(self.features))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The features grouped by what counts them, in the order of the first feature of each group. A group has a
        counter, its features, and their indices in the schema.
        """
        return group_features(self.features)

    @property
    def _word_columns(self) -> list[str]:
        """The columns whose words are counted. ``counter.words`` says whether the counter of a group counts words."""
        return [name for group in self.groups if group.counter.words for name in group.features.inputs]

    @property
    def _runs_python(self) -> bool:
        """Whether some feature loops over rows in Python."""
        return any(runs_python(template.family) for template in self.features.templates)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The columns that features are counted from."""
        return frozenset(self.features.inputs)

    @cached_property
    def index(self) -> dict[str, int]:
        """The index of each feature, by its name."""
        return {name: index for index, name in enumerate(self.features.names)}

    def __getitem__(self, name: Any) -> Feature:
        """Returns a feature by its name, or a block of columns by the tuple of its columns. Raises UnknownColumn if
        there is none. ``features.where`` returns the indices of features whose template, which has their columns,
        passes a test.
        """
        if isinstance(name, tuple):
            name = next(
                (self.features.names[index] for index in self.features.where(lambda block: block.columns == name)), name
            )
        if name not in self.index:
            if block := next((template for template in self.features.templates if name in template.columns), None):
                columns = f"{errors.listed(map(repr, block.columns), 6)}{',' * (len(block.columns) == 1)}"
                raise errors.UnknownColumn(
                    f"column {name!r} has no distribution of its own, because it is in the block ({columns}). "
                    "Name the block instead, with all its columns.",
                    column=name,
                    block=block.columns,
                )
            raise errors.unknown_column(name, self.features.names)
        return self.features[self.index[name]]

    @cached_property
    def kinds(self) -> dict[str, Reads]:
        """The type ("number", "string", "text" or "list") that each column of a text file must be read as, so that more
        rows are counted in the same way. Columns that may have any type are left out.

        Features with equal settings share a template; ``features.codes`` has the template number of each feature. A
        feature of several columns (a block) names them in its template, and a feature of one column has its name.
        """
        features = self.features
        # Of each template: its columns, and the type that they must be read as.
        columns_and_kinds = [(template.columns, template.counter.reads(template)) for template in features.templates]
        names_and_template_numbers = zip(features.names, features.codes.tolist(), strict=True)
        # Of each feature: its name, and these two.
        names_columns_and_kinds = ((name, *columns_and_kinds[number]) for name, number in names_and_template_numbers)
        return {
            column: kind
            for name, columns, kind in names_columns_and_kinds
            if kind is not None
            for column in columns or (name,)
        }

    def _explain_difference(self, other: Schema) -> str | None:
        """Returns in words why tallies under the two schemas cannot be combined, or None if they can. Different bin
        widths are not a reason. ``feature.columns`` has the columns of a block, ``feature.counting_key()`` what two
        features must share for their sums to be added.
        """
        if (self.labels is None) != (other.labels is None):
            return "one counts label sets and the other a single class per row"
        own_names = self.features.names
        other_names = other.features.names
        if own_names != other_names:
            names_in_one = (
                [name for name in own_names if name not in other.index],
                [name for name in other_names if name not in self.index],
            )
            if not any(names_in_one):
                return "the same features in another order"
            names_in_first, names_in_second = map(errors.listed, names_in_one)
            return f"features only in the first [{names_in_first}], only in the second [{names_in_second}]"
        for index in self._features_to_compare(other):
            feature = self.features[index]
            other_feature = other.features[index]
            if feature.columns != other_feature.columns:
                return f"block {feature.name!r} has different columns"
            if feature.counting_key() != other_feature.counting_key():
                return f"feature {feature.name!r} is {_describe(feature)} in one and {_describe(other_feature)} in the other"
        return None

    def _features_to_compare(self, other: Schema) -> list[int]:
        """Returns the indices of features that differ in origin or unit, and one index for each pair of templates, in
        ascending order. Both schemas have the same feature names in the same order.

        A template is a feature without a name, which features with equal settings share: one of each pair stands for
        all. A feature's sums are counted from its origin, in its unit.
        """
        features = self.features
        has_other_scale = (features.origins != other.features.origins) | (features.units != other.features.units)
        rescaled_indices = np.flatnonzero(has_other_scale)
        indices_of_pairs = [index for *_, index in features.pair_templates(other.features)]
        return sorted({*rescaled_indices.tolist(), *indices_of_pairs})

    def _counting_rules(self) -> list[Any]:
        """Returns everything that determines the sums of rows, for JSON: an entry for each feature, after one for sets
        of labels if rows have them. Equal schemas have equal rules.
        """
        labels_rule = [] if self.labels is None else ["sets of labels"]
        return labels_rule + [
            _to_json([feature.name, feature.columns, feature.counting_key(), feature.unit]) for feature in self.features
        ]

    def __eq__(self, other: object) -> bool:
        """Whether both count the same features, with the same settings and bins. ``units`` has the width of each
        feature's bins.
        """
        if not isinstance(other, Schema):
            return NotImplemented
        same_bins = np.array_equal(self.features.units, other.features.units)
        return self is other or (same_bins and self._explain_difference(other) is None)

    def __hash__(self) -> int:
        return hash(self.features)

    def _with_widest_bins(self, other: Schema) -> Schema:
        """Returns the same schema with bins at least as wide as the other's: the larger unit for each feature. The
        schemas differ in nothing else.
        """
        units = np.maximum(self.features.units, other.features.units)
        if np.array_equal(units, self.features.units):
            return self
        return replace(self, features=replace(self.features, units=units))

    def _with_features(self, groups: Iterable[tuple[Group, Features]]) -> Schema:
        """Returns the same schema with other features in some groups: pairs of a group and the features that replace
        its own.
        """
        return replace(self, features=self.features.put((group.indices, features) for group, features in groups))

    def _with_families(self, overrides: Mapping[str, Any]) -> Schema:
        """Returns the same schema with other settings for estimation. Raises an error if they would change the counts.

        ``overrides`` maps names of features, which may contain ``*``, to families.
        """
        new_features = dict[int, Feature]()  # by index
        for name, override in expand_stars(overrides, self.features.names):
            old = self[name]
            new_features[self.index[old.name]] = new = old._replace(family=_with_counting_half(old, family(override)))
            new.family.check_columns(new)
        indices = np.array(list(new_features), dtype=np.int64)
        return replace(self, features=self.features.put([(indices, Features.of(new_features.values()))]))

    def __str__(self) -> str:
        """Returns the schema as text: each feature with its family and why it has it, and what was left out."""
        target = "" if self.target is None else f", target {self.target!r}"
        lines = [f"Schema: {len(self.features):,} feature{'s' * (len(self.features) != 1)}{target}"]
        # ``why``: the reason for the family.
        feature_rows = [(feature.name, str(feature.family), feature.why) for feature in self.features[:40]]
        lines += align_columns(feature_rows)
        if len(self.features) > 40:
            lines.append(f"  … and {len(self.features) - 40:,} more")
        if self.left_out:
            lines.append("left out:")
            lines += align_columns(list(self.left_out.items())[:40])
        if self.reading:
            lines.append("read with:")
            lines += align_columns([(name, setting_in_words(setting)) for name, setting in self.reading.items()])
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Returns the schema for JSON, with one entry for each feature, or for a run of features that differ only in
        name, origin and unit.
        """
        other_entries = {
            "target": self.target,
            "target_kind": self.target_kind,
            "columns": list(self.columns),
            "named": self.named,
            "left_out": dict(self.left_out),
            **({} if self.labels is None else {"labels": self.labels.to_dict()}),
            **({"reading": dict(self.reading)} if self.reading else {}),
        }
        return {"features": list(_entries(self.features)), **other_entries}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Schema:
        """Returns the schema of a ``description`` that ``to_dict`` returned."""
        return cls(
            _features_of_entries(description["features"]),
            description["target"],
            columns=tuple(description["columns"]),
            named=description["named"],
            left_out=description["left_out"],
            target_kind=description["target_kind"],
            labels=LabelTarget.from_dict(description["labels"]) if "labels" in description else None,
            reading=description.get("reading", {}),
        )


def setting_in_words(setting: Any) -> str:
    """Returns the value of a reading option as text; the entries of a list are separated by commas.

    >>> setting_in_words(["age", "job"]), setting_in_words(";")
    ("'age', 'job'", "';'")
    """
    is_list = isinstance(setting, list | tuple)
    return errors.shortened(errors.listed(map(repr, setting)) if is_list else repr(setting), 80)


def _entries(features: Features) -> Iterator[dict[str, Any]]:
    """Yields the features as entries for JSON. A run of many features that differ only in name, origin and unit becomes
    one entry, in which these three are lists.

    Features that differ in nothing else share a template; ``features.codes`` has the template number of each feature.
    """
    templates = [_template_to_dict(template) for template in features.templates]
    ends = [*(np.flatnonzero(np.diff(features.codes)) + 1).tolist(), len(features)]  # of runs of features
    for start, end in pairwise([0, *ends]):
        # The names, origins and units of the run.
        columns = features.names[start:end], features.origins[start:end].tolist(), features.units[start:end].tolist()
        entries = [tuple(map(list, columns))] if end - start >= FEWEST_IN_ONE_ENTRY else zip(*columns, strict=True)
        for name, origin, unit in entries:
            yield {**templates[features.codes[start]], "name": name, "origin": origin, "unit": unit}


def _template_to_dict(feature: Feature) -> dict[str, Any]:
    """Returns a feature for JSON, with everything that features of one template share, and its name, origin and unit."""
    return {
        "name": feature.name,
        **family_to_dict(feature.family),
        "origin": feature.origin,
        "unit": feature.unit,
        "kind": feature.kind,
        "why": feature.why,
        **({"columns": list(feature.columns)} if feature.columns else {}),
        **({"scales": [list(scale) for scale in feature.scales]} if feature.scales else {}),
        **({"kinds": list(feature.kinds)} if feature.kinds else {}),
        **({"holds_lists": True} if feature.holds_lists else {}),
    }


def _features_of_entries(entries: Sequence[Mapping[str, Any]]) -> Features:
    """Returns the features that ``_entries`` described. Equal families are created once. Raises ValueError if a run has
    lists of different lengths.

    An entry is a feature, or a run of features: then its name, origin and unit are lists.
    """
    families = dict[str, Family]()  # by name and settings
    names_origins_units: tuple[list[Any], ...] = ([], [], [])  # three lists, one entry per feature
    templates = list[Feature]()  # one per feature, the same object throughout a run
    for entry in entries:
        key = repr((entry["family"], entry["settings"]))  # in ``families``
        if key not in families:
            families[key] = family_from_dict(entry)
        template = _template_from_dict(entry, families[key])
        is_run = isinstance(entry["name"], list)
        for column, part in zip(names_origins_units, ("name", "origin", "unit"), strict=True):
            column.extend(entry[part] if is_run else [entry[part]])
        if len(set(map(len, names_origins_units))) > 1:
            raise ValueError("there are not as many origins and units as names")
        templates += [template] * (len(names_origins_units[0]) - len(templates))
    origins, units = (np.array(column, dtype=np.float64) for column in names_origins_units[1:])
    return replace(Features.named(names_origins_units[0], templates), origins=origins, units=units)


def _template_from_dict(entry: Mapping[str, Any], template_family: Family) -> Feature:
    """Returns a feature without a name. ``entry`` is the JSON of a feature, and ``template_family`` the family that it
    names. The entry of a block has its columns, the origin and unit of each (``scales``) or the types of their values.
    """
    scales = tuple((scale[0], scale[1]) for scale in entry.get("scales", ()))
    columns, kinds = (tuple(entry.get(part, ())) for part in ("columns", "kinds"))
    return Feature(
        "",
        template_family,
        origin=0.0,
        unit=1.0,
        kind=entry["kind"],
        why=entry["why"],
        columns=columns,
        scales=scales,
        kinds=kinds,
        holds_lists=entry.get("holds_lists", False),
    )


def group_features(features: Features) -> tuple[Group, ...]:
    """Groups features by what counts them; each group has their indices among all features. Groups are in the order of
    their first features.

    Features with equal settings share a template, whose number ``features.codes`` has for each feature; all features of
    a template have the same counter. A counter that counts features ``apart`` gets a group for each of them.
    """
    template_numbers_of = dict[Counter, list[int]]()  # by the counter of the templates
    for number, template in enumerate(features.templates):
        template_numbers_of.setdefault(template.counter, []).append(number)
    groups = list[Group]()
    for counter, template_numbers in template_numbers_of.items():
        indices = np.flatnonzero(np.isin(features.codes, template_numbers))
        groups += [
            Group(counter, features.take(group_indices), group_indices)
            for group_indices in (indices[:, None] if counter.apart else [indices])
        ]
    return tuple(sorted(groups, key=lambda group: int(group.indices[0])))


class Group(NamedTuple):
    """Features that are counted together, and their indices in the schema."""

    counter: Counter
    features: Features
    indices: Int


def _describe(feature: Feature) -> str:
    """Returns a feature's family with its settings, and the scale that it counts in."""
    return f"{feature.family}{feature.counter.describe_scale(feature)}"


def _with_counting_half(feature: Feature, new: Family) -> Family:
    """Returns the family ``new`` with the counting settings of the feature's own family; raises SchemaMismatch if it
    needs sums that were not counted.

    ``family.counting`` has the names of the settings that change what is counted, ``family.settings()`` the settings
    that are set. ``family.counting_key()`` begins with the name of what is counted.
    """
    name = feature.name
    old = feature.family
    if old.counting_key()[0] != new.counting_key()[0]:
        raise errors.SchemaMismatch(f"feature {name!r} was counted for {old}, not for {new}{NEEDS_ROWS_AGAIN}")
    settings = new.settings()
    for setting in new.counting:
        old_value = getattr(old, setting)
        if setting in settings and settings[setting] != old_value:
            raise errors.SchemaMismatch(
                f"feature {name!r} was counted with {setting}={old_value!r}, not {settings[setting]!r}{NEEDS_ROWS_AGAIN}"
            )
    counting_settings = {setting: getattr(old, setting) for setting in new.counting}
    return replace(new, **counting_settings)  # type: ignore[type-var]


def family_to_dict(feature_family: Family) -> dict[str, Any]:
    """Returns a family's name and settings for JSON."""
    return {
        "family": feature_family.name,
        "settings": {name: _to_json(setting) for name, setting in feature_family.settings().items()},
    }


def _to_json(setting: Any) -> Any:
    """Returns a setting of a family as JSON holds it: a mapping as a list of pairs, a prior as a mapping of its fields,
    a tuple as a list.
    """
    if isinstance(setting, Mapping):
        return {"pairs": [[_to_json(key), _to_json(member)] for key, member in setting.items()]}
    if isinstance(setting, NormalInverseGamma):
        return {
            "prior": {prior_field.name: _to_json(getattr(setting, prior_field.name)) for prior_field in fields(setting)}
        }
    if isinstance(setting, (tuple, list)):
        return [_to_json(member) for member in setting]
    return plain(setting)


def family_from_dict(entry: Mapping[str, Any]) -> Family:
    """Returns the family that ``family_to_dict`` described."""
    return FAMILIES[entry["family"]](**{name: _from_json(setting) for name, setting in entry["settings"].items()})


def _from_json(setting: Any) -> Any:
    """Returns the setting that ``_to_json`` wrote."""
    if isinstance(setting, dict):
        return dict(map(tuple, setting["pairs"])) if "pairs" in setting else NormalInverseGamma(**setting["prior"])
    return setting


# Inference -----------------------------------------------------------------------------------------------------------


@dataclass
class ColumnFacts:
    """What rows after the first batch have shown about columns; and the columns that inference takes for
    ``whole_numbers`` in all rows.
    """

    fractional: frozenset[str] = frozenset()  # columns that have fractions in some row
    varied: frozenset[str] = frozenset()  # columns that have several values, though one in the first rows
    kinds: Mapping[str, Any] = field(default_factory=dict)  # the kind of columns without a value in the first rows
    whole_numbers: set[str] = field(default_factory=set)  # columns; inference adds to them in place

    def __bool__(self) -> bool:
        """Whether any fact about a column is known."""
        return bool(self.fractional or self.varied or self.kinds)

    def __or__(self, other: ColumnFacts) -> ColumnFacts:
        """Returns the facts that either has, such as those of rows on two machines; a column of two kinds has the wider
        one. ``whole_numbers`` is empty.
        """
        kinds = {**self.kinds, **other.kinds}
        for name in self.kinds.keys() & other.kinds.keys():
            kinds[name] = wider_kind(self.kinds[name], other.kinds[name])
        return ColumnFacts(self.fractional | other.fractional, self.varied | other.varied, kinds)

    @property
    def columns(self) -> list[str]:
        """The columns that there are facts about, in order."""
        return sorted({*self.fractional, *self.varied, *self.kinds})


def wider_kind(kind: str, other_kind: str) -> str:
    """Returns the type of a column that has the type ``kind`` in some rows and ``other_kind`` in others: the wider of
    boolean, integer and float, otherwise string.
    """
    from_narrow_to_wide = ("boolean", "integer", "float")
    if kind == other_kind:
        return kind
    return (
        max(kind, other_kind, key=from_narrow_to_wide.index)
        if {kind, other_kind} <= set(from_narrow_to_wide)
        else "string"
    )


def infer(
    batch: Batch,
    reserved: Mapping[str, str] | Iterable[tuple[str, str]],
    target: str | None,
    features: FamilyOption,
    missing: Missing,
    more_to_come: bool = False,
    trees: Trees = "many",
    facts: ColumnFacts | None = None,
) -> Schema:
    """Infers the schema of a table from its first batch, and returns it. Columns in ``reserved``, such as the target,
    are not features.

    Args:
        batch: The first batch; its columns ``non_features`` are weights.
        reserved: The columns that are not features, each with its role for messages, such as ``the target``.
        target: The column of the target, if it is one.
        features: The families that the user asks for: "auto", one for all columns, or a mapping by column, None to
            leave a column out.
        missing: "category" makes a missing string or boolean a value of its own; "skip" ignores it.
        more_to_come: Whether the batch can be small, so that a column with one value or none may still have others.
        trees: Whether numbers become quantile trees if there are many rows, always ("all") or never ("none").
        facts: What other rows have shown. Columns that are taken for whole numbers are added to it.
    """
    facts = ColumnFacts() if facts is None else facts
    if missing not in ("skip", "category"):
        raise errors.unknown_choice("missing", missing, ["skip", "category"])
    if (joined_family := _family_that_joins(features)) is not None:
        # The columns are inferred with the family that it has for each of them, and then joined.
        schema = infer(batch, reserved, target, joined_family.columns, missing, more_to_come, trees="none", facts=facts)
        return replace(schema, features=joined_family.join(schema.features, batch))
    reserved = {**dict.fromkeys(batch.non_features, "the weights of the rows"), **dict(reserved)}
    for name in reserved:
        if name not in batch.names:
            raise errors.unknown_column(name, batch.names, batch.source)
    columns = tuple(name for name in batch.names if name not in reserved) if reserved else batch.names
    # The family of each column that the user names, None to leave it out; and features of several columns (blocks).
    declared, blocks = _families_by_column(features, columns, batch, reserved)
    in_blocks = {name for block in blocks for name in block.columns}  # columns
    declared_names = declared.keys() | in_blocks
    undeclared = tuple(name for name in columns if name not in declared_names) if declared_names else columns
    kinds = dict(zip(undeclared, batch.kinds(undeclared), strict=True))  # of undeclared columns
    kinds |= {name: kind for name, kind in facts.kinds.items() if kinds.get(name) == "empty"}
    first_batch_rows = batch.slice(0, SAMPLE)
    numbers = [name for name, kind in kinds.items() if kind in ("integer", "float")]
    sample = first_rows(batch, batch.names if tuple(numbers) == batch.names else numbers)  # rows × numeric columns
    constant_columns = (
        set() if more_to_come else _constant_columns(batch, kinds, numbers, sample, missing) - facts.varied
    )
    # Columns of few whole numbers, each with how many different ones it has.
    n_values = {} if more_to_come or trees == "all" else _columns_of_few_values(batch, numbers, sample, facts)
    if more_to_come:
        kinds = {
            name: "float" if kind == "empty" and isinstance(batch.column(name), Numbers) else kind
            for name, kind in kinds.items()
        }
    takes_trees = trees == "all" or (trees == "many" and batch.n_rows >= FEWEST_ROWS)
    names = list[str]()  # of features of one column
    templates = list[Feature]()  # one for each of these
    template_of = dict[tuple[int, str], Feature]()  # by family and reason, so that equal features share a template
    left_out: dict[str, str] = {}  # column → why
    for name in columns:
        if name in in_blocks:
            continue
        if name in kinds:
            column_family, reason = _choose_family(
                first_batch_rows, name, kinds[name], missing, constant_columns, n_values, takes_trees
            )
        else:
            column_family = declared[name]
            reason = "declared"
        if column_family is None:
            left_out[name] = reason
            continue
        names.append(name)
        if column_family.block:
            templates.append(block((name,), column_family, reason))
        else:
            key = id(column_family), reason
            templates.append(template_of.setdefault(key, Feature("", column_family, why=reason)))
    if not names and not blocks:
        warn_about_no_columns(left_out)
    target_kind = None if target is None or batch.kind(target) == "empty" else column_kind(batch, target)
    features = settle_features(Features.join([Features.named(names, templates), Features.of(blocks)]), batch)
    facts.whole_numbers.update(n_values)
    if n_values or declared or "integer" in kinds.values():
        float_columns = features.where(lambda column: column.kind == "float" and not column.columns).tolist()
        names_and_indices = ((features.names[index], index) for index in float_columns)  # of these features
        integer_columns = {
            index for name, index in names_and_indices if (kinds.get(name) or batch.kind(name)) == "integer"
        }
        integer_columns.update(index for index, name in enumerate(features.names) if name in n_values)
        features = features.change(lambda column: column._replace(kind="integer"), sorted(integer_columns))
    return Schema(features, target, columns, batch.named, left_out, target_kind)


def _family_that_joins(features: FamilyOption) -> ColumnTree | None:
    """Returns the family that ``features`` names for all columns if it joins columns, such as a column tree; otherwise
    None.
    """
    if isinstance(features, Mapping) or (isinstance(features, str) and features == "auto"):
        return None
    return joining_family(family(features))


def settle_features(features: Features, batch: Batch) -> Features:
    """Returns the features with what their first rows, in ``batch``, decide about counting, such as origins and units.
    Raises an error if a family does not suit its columns. ``features.codes`` has the template number of each feature.
    """
    _, first_feature_of_template = np.unique(features.codes, return_index=True)
    for index in first_feature_of_template.tolist():
        feature = features[index]
        feature.family.check_columns(feature)
    groups = group_features(features)  # each a counter, the features that it counts, and their indices
    return features.put((indices, counter.settle(counted, batch)) for counter, counted, indices in groups)


def of_one_family(batch: Batch, feature_family: Family) -> Schema:
    """Returns the schema, without a target, of a batch whose columns all have the same family, however few rows there
    are. The template is a feature without a name, with the settings that all features share.
    """
    template = Feature("", feature_family)
    features = template.counter.settle(Features.named(batch.names, [template] * len(batch.names)), batch)
    return Schema(features, target=None, columns=batch.names, named=batch.named)


def _families_by_column(
    features: FamilyOption, columns: tuple[str, ...], batch: Batch, reserved: Mapping[str, str]
) -> tuple[dict[str, Family | None], list[Feature]]:
    """Returns two things: the family that the user declares for each column, None for a column to leave out, without
    undeclared columns; and the declared blocks, which are features of several columns, with unique names.

    ``features`` has the families that the user asks for: "auto", one for all columns, or a mapping from a column, a
    pattern such as "soil_*" or a tuple of columns to a family or None. ``columns`` are the columns that may be
    features; ``reserved`` maps the others to their roles, for messages. A family with ``block`` always models its
    columns jointly; one with ``blocks`` does so if several are named together. Raises an error for an unknown or
    repeated column.
    """
    if isinstance(features, str) and features == "auto":
        return {}, [block(columns, OCCURRENCES, "a sparse matrix")] if isinstance(batch, Sparse) else []
    if not isinstance(features, Mapping):
        only_family = family(features)
        return ({}, [block(columns, only_family)]) if only_family.block else (dict.fromkeys(columns, only_family), [])
    declared: dict[str, Family | None] = {}  # by column
    blocks: list[Feature] = []
    named_columns: list[str] = []  # all columns that ``features`` names, to find repeated ones
    for name_or_names, family_option in expand_stars(features, columns, batch.source):
        own_columns = tuple(
            _resolve_column(column, columns, batch, reserved)
            for column in (name_or_names if isinstance(name_or_names, tuple) else (name_or_names,))
        )
        named_columns += own_columns
        declared_family = None if family_option is None else family(family_option)
        if declared_family is not None and (
            declared_family.block or (declared_family.blocks and isinstance(name_or_names, tuple))
        ):
            blocks.append(block(own_columns, declared_family))
        elif isinstance(name_or_names, tuple):
            raise errors.bad_setting(
                "features",
                f"{name_or_names!r}: {family_option!r}",
                "a family that models columns jointly, such as bb.Gaussian(covariance='full'), "
                "bb.KernelDensity(), bb.Histogram() or bb.Joint()",
            )
        else:
            declared[own_columns[0]] = declared_family
    if repeated := [name for name, frequency in Counts(named_columns).items() if frequency > 1]:
        problem = f"column {repeated[0]!r} in two places"
        raise errors.bad_setting("features", problem, "a mapping that has each column once")
    return declared, _name_blocks(blocks, batch)


def expand_stars(
    features: Mapping[Any, Any], columns: Sequence[str], source: str | None = None
) -> Iterator[tuple[Any, Any]]:
    """Yields pairs of a column and its family: ``"soil_*"`` stands for all columns whose names begin with "soil_" and
    are not listed themselves. A family that models columns jointly comes with a tuple of columns.

    ``features`` maps columns, patterns or tuples of them to families, or None to leave a column out. If a column's own
    name is the pattern, it stands for that column only. Raises an error if no column matches a pattern. ``source`` is
    the name of what is read, for messages.
    """
    column_names = set(columns)
    listed = {column for name in features for column in (name if isinstance(name, tuple) else (name,))}

    def matching(name: Any) -> tuple[Any, ...]:
        """Returns the columns that a name or pattern stands for."""
        if not isinstance(name, str) or "*" not in name or name in column_names:
            return (name,)
        pattern = re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)
        matches = [column for column in columns if pattern.fullmatch(column)]
        if not matches:
            raise errors.unknown_column(name, columns, source)
        return tuple(column for column in matches if column not in listed)

    for name, family_option in features.items():
        if isinstance(name, tuple):
            yield tuple(column for pattern_or_name in name for column in matching(pattern_or_name)), family_option
        elif (
            (columns_of_name := matching(name)) != (name,)
            and columns_of_name
            and family_option is not None
            and family(family_option).block
        ):
            yield columns_of_name, family_option
        else:
            yield from ((column, family_option) for column in columns_of_name)


def _name_blocks(blocks: list[Feature], batch: Batch) -> list[Feature]:
    """Returns the blocks, which are features of several columns, with names that no other column and no other block
    has; parentheses are added where needed.
    """
    renamed_blocks: list[Feature] = []
    for feature in blocks:
        name = feature.name
        other_names = set(batch.names).difference(feature.columns).union(renamed.name for renamed in renamed_blocks)
        while name in other_names:
            name = f"({name})"
        renamed_blocks.append(feature if name == feature.name else feature._replace(name=name))
    return renamed_blocks


def _resolve_column(name: Any, columns: tuple[str, ...], batch: Batch, reserved: Mapping[str, str]) -> str:
    """Returns the column that a name, a number used as a name, or a position means; raises an error if there is none or
    it is ``reserved``, which maps columns that cannot be features to their roles.
    """
    column = as_name(name)
    has_numbers_as_names = batch.named and any(column_name.isdecimal() for column_name in batch.names)
    if (
        column is not name
        and column not in batch.names
        and not has_numbers_as_names
        and -len(columns) <= name < len(columns)
    ):
        column = columns[name]
    if column in reserved:
        raise errors.BadSetting(
            f"column {column!r} is {reserved[column]}, so it cannot be a feature or part of a block. "
            "Remove it from features=.",
            setting="features",
            value=column,
            column=column,
        )
    if column not in columns:
        raise errors.unknown_column(name, columns, batch.source)
    return str(column)


def block(columns: tuple[str, ...], block_family: Family, why: str = "declared") -> Feature:
    """Returns a feature that models these columns jointly, named after them. Raises an error if there are none. ``why``
    is the reason for its family, which printing the schema shows.
    """
    if not columns:
        raise errors.bad_setting("features", "a block of no columns", "at least one column in a block")
    name = " + ".join(columns) if len(columns) <= 3 else f"{columns[0]} … {columns[-1]}"
    return Feature(name, block_family, kind="float", why=why, columns=columns)


def _choose_family(
    batch: Batch,
    name: str,
    kind: str,
    missing: Missing,
    constant_columns: set[str],
    n_values: Mapping[str, int],
    takes_trees: bool,
) -> tuple[Family | None, str]:
    """Chooses the family of a column by its type and first rows. Returns it, or None to leave the column out, and the
    reason.

    Args:
        batch: The first rows.
        name: The name of the column.
        kind: The type of its values, such as ``integer``.
        missing: "category" makes a missing string or boolean a value of its own.
        constant_columns: The columns whose values are all the same.
        n_values: The columns of few whole numbers, with how many different ones there are.
        takes_trees: Whether other numbers become quantile trees rather than Gaussian.
    """
    if batch.is_text(name):
        return TEXT, "texts"
    if kind == "empty":
        return None, NO_VALUE
    if kind == "date":
        return None, DATE_OR_TIME
    if kind == "list":
        return GAUSSIAN_OF_LISTS, f"lists of {errors.many(batch.width(name), 'number')}"
    if kind == "other":
        return None, "neither numbers nor words"
    if name in constant_columns:
        are_dates = kind == "string" and not batch.categorical(name) and _are_dates(batch.head(name, SAMPLE))
        return None, DATE_OR_TIME if are_dates else ONE_VALUE
    if batch.categorical(name):
        return CATEGORICAL[missing], "declared categorical"
    if kind == "boolean":
        return (BERNOULLI, "booleans") if missing == "skip" else (CATEGORICAL[missing], "booleans")
    if kind == "string":
        return _choose_family_of_strings(batch, name, missing)
    if batch.named and IDENTIFIER.search(name) and kind == "integer" and _all_different(batch, name):
        return None, "identifiers: a different value in every row"
    if name in n_values:
        return CATEGORICAL[missing], f"{WHOLE_NUMBERS}, {n_values[name]} different"
    return QUANTILE_TREE if takes_trees else GAUSSIAN, "integers" if kind == "integer" else "floats"


def _choose_family_of_strings(batch: Batch, name: str, missing: Missing) -> tuple[Family | None, str]:
    """Chooses the family of the column of strings ``name`` by its first rows, which are in ``batch``. Returns it, or None
    to leave the column out, and the reason. With ``missing="category"``, a missing string is a category.
    """
    values = batch.head(name, SAMPLE)
    if _are_dates(values):
        return None, DATE_OR_TIME
    frequencies = Counts(map(str, values))
    n_words = sum(frequency * len(text.split()) for text, frequency in frequencies.items())
    words_per_value = n_words / max(len(values), 1)
    if words_per_value > WORDS_OF_TEXT:
        return TEXT, f"{words_per_value:.1f} words on average"
    if len(values) >= FEWEST_IDENTIFIERS and len(set(values)) == len(values):
        return None, "identifiers: a different value in every row"
    return CATEGORICAL[missing], "strings"


def _are_dates(values: Sequence[Any]) -> bool:
    """Whether there are values, and all of them are dates or times written as text."""
    return bool(values) and all(map(DATE_OR_TIME_PATTERN.fullmatch, set(map(str, values))))


def _all_different(batch: Batch, name: str) -> bool:
    """Whether the first rows of the column ``name`` have no value twice."""
    values = batch.head(name, SAMPLE)
    return len(values) >= 2 and len(set(values)) == len(values)


def _columns_of_few_values(batch: Batch, names: Sequence[str], sample: Real, facts: ColumnFacts) -> dict[str, int]:
    """Returns the columns of whole numbers with few distinct values in the first rows, and how many they have. With few
    rows, only columns of 0 and 1 count.

    Args:
        batch: The first batch.
        names: The columns to look at.
        sample: Their first rows: rows × columns, NaN where missing.
        facts: What later rows have shown; columns with fractions are not whole numbers.
    """
    if not sample.size:
        return {}
    first_row = sample[0]  # (columns,); in most of them it shows that there are fractions, or more than 0 and 1
    may_be_few = (first_row == 0) | (first_row == 1) if len(sample) < FEWEST_ROWS else first_row == np.rint(first_row)
    column_indices = np.flatnonzero(may_be_few | np.isnan(first_row)).tolist()
    if len(column_indices) < len(names):
        names = [names[position] for position in column_indices]
        sample = sample[:, column_indices]
    ordered = np.sort(sample, axis=0)  # rows × columns, each column sorted, missing values last
    is_missing = np.isnan(ordered)
    # From here on one entry per column.
    n_present = len(ordered) - is_missing.sum(axis=0)
    n_distinct = (n_present > 0) + ((np.diff(ordered, axis=0) != 0) & ~is_missing[1:]).sum(axis=0)
    are_flags = ((ordered == 0) | (ordered == 1) | is_missing).all(axis=0) & (n_distinct == 2)
    are_exact = ((np.abs(ordered) <= EXACT) | is_missing).all(axis=0)  # or else unlike integers may be the same here
    are_few = are_flags | ((n_present >= FEWEST_ROWS) & (n_distinct <= MOST_CATEGORIES) & are_exact)
    few_names = [names[position] for position in np.flatnonzero(are_few).tolist()]
    names_and_n_distinct = zip(few_names, n_distinct[are_few].tolist(), strict=True)
    n_distinct_of_candidate = {
        name: n_values
        for name, n_values in names_and_n_distinct
        if name not in facts.fractional and not batch.categorical(name)
    }
    whole_numbers = all_whole(batch, list(n_distinct_of_candidate))
    return {name: n_values for name, n_values in n_distinct_of_candidate.items() if name in whole_numbers}


def with_few_values(schema: Schema, batch: Batch, missing: Missing, facts: ColumnFacts) -> Schema:
    """Returns the schema with categories for inferred whole numbers that have few distinct values in these rows.

    ``missing="category"`` makes a missing value a category. The columns are added to ``facts.whole_numbers`` in place,
    so that a later fraction in one of them is noticed. ``feature.why`` says how a feature's family was inferred.
    """
    indices = schema.features.where(lambda column: column.why in ("integers", "floats")).tolist()
    number_columns = [schema.features.names[index] for index in indices]
    n_values = _columns_of_few_values(batch, number_columns, first_rows(batch, number_columns), facts)
    facts.whole_numbers.update(n_values)
    reason_by_name = {name: f"{WHOLE_NUMBERS}, {n_distinct} different" for name, n_distinct in n_values.items()}
    features = Features.of(
        feature._replace(family=CATEGORICAL[missing], kind="integer", why=reason_by_name[feature.name])
        if feature.name in reason_by_name
        else feature
        for feature in schema.features
    )
    return replace(schema, features=features)


def _constant_columns(
    batch: Batch, kinds: Mapping[str, str], numbers: Sequence[str], sample: Real, missing: Missing
) -> set[str]:
    """Returns the columns that have at least two values, all of them the same. A missing string or boolean is a value
    if it is a category.

    Args:
        batch: The first batch.
        kinds: The type of each column.
        numbers: The columns of numbers.
        sample: Their first rows: rows × columns, NaN where missing.
        missing: "category" makes a missing string or boolean a value.
    """
    candidates = [name for name, kind in kinds.items() if kind in ("string", "boolean")]
    if sample.size:
        is_constant = np.fmin.reduce(sample, axis=0) == np.fmax.reduce(sample, axis=0)
        candidates += [numbers[position] for position in np.flatnonzero(is_constant).tolist()]
    fewest_values = {"string": batch.n_rows, "boolean": batch.n_rows} if missing == "category" else {}
    return {name for name in candidates if _is_constant(batch, name, fewest_values.get(kinds[name], 2))}


def _is_constant(batch: Batch, name: str, fewest: int) -> bool:
    """Whether the column ``name`` has at least ``fewest`` values and they are all the same."""
    if len(set(batch.head(name, SAMPLE))) != 1:
        return False
    values = batch.head(name, batch.n_rows)
    return len(values) >= max(fewest, 2) and len(set(values)) == 1


def warn_about_no_columns(left_out: Mapping[str, str]) -> None:
    """Warns that no column is left to learn from. ``left_out`` has the reason for each column that was left out."""
    reasons = errors.listed((f"{name!r} ({reason})" for name, reason in left_out.items()), 6)
    advice = f"; left out: {reasons}. To use a column anyway, name its family in features=" if reasons else ""
    errors.warn(f"there is no column to learn from, so every prediction will be the class prior{advice}")
