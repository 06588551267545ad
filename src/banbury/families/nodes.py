"""Variables: the nodes of trees and networks. Their values are numbered; numbers are cut into bins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Bool, Int, Real
from banbury.digits import format_distinctly
from banbury.families.categorical import Categorical
from banbury.families.dirichlet import log
from banbury.families.family import ColumnReader, Family, Feature, Kind, check_positive
from banbury.families.histogram import NODE_BINS, Histogram, cuts_after, cutting_histogram
from banbury.families.keys import finite_numbers
from banbury.reading import Batch, Codes, read
from banbury.reading.columns import kind_of
from banbury.sums import Key, Keys, sort_keys

ValueNumbers = NDArray[np.int32]  # the number of each row's value: MISSING, or UNSEEN if it was never counted
Bins = int | Literal["mdl"]

MISSING = -1  # the row has no value
UNSEEN = -2  # the value was never counted
CATEGORICAL = Categorical()
MOST_FINE = 256  # fine bins of a column whose final bins the classes decide ...
FEWEST_FINE = 16
FINE_IN_ALL = 1024  # ... and of all columns together: rows are counted for every pair of these bins
LARGEST_INTEGER = 2.0**63  # larger whole numbers are drawn as real ones


@dataclass(frozen=True)
class Variable:
    """A node: a column, and its possible values in order. The values of a column of numbers are intervals between
    ``cuts``.
    """

    name: str
    values: Keys
    family: Family = CATEGORICAL
    kind: Kind = "string"
    cuts: tuple[float, ...] | None = None  # in ascending order; None: the values are categories
    ends: tuple[float, float] = (0.0, 0.0)  # the lowest and highest number seen, if numbers were cut

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.values)

    @cached_property
    def index(self) -> dict[Key, int]:
        """The number of each value, by value."""
        return {value: k for k, value in enumerate(self.values)}

    @cached_property
    def keys(self) -> Keys:
        """What the values are counted by, in their order: the values themselves, or the numbers of the bins."""
        return self.values if self.cuts is None else tuple(range(self.size))

    def name_of_key(self, key: Any) -> Key:
        """Returns the value that is counted by a key."""
        return key if self.cuts is None else self.values[key]  # type: ignore[no-any-return]

    def of_keys(self, keys: Iterable[Key]) -> Variable:
        """Returns the variable with the values of these keys and the declared ones, sorted; bins stay as they are."""
        if self.cuts is not None:  # numbers in bins
            return self
        values = sort_keys({*keys, *(self.family.permanent_keys() or ())})
        return self if values == self.values else replace(self, values=values)

    def incompatibility(self, other: Variable) -> str | None:
        """Returns why counts of this variable and the ``other`` cannot be added, as a phrase for people; None if they
        can. ``cuts`` are those between bins.
        """
        if self.cuts != other.cuts:
            return f"the bins of {self.name!r} have different edges"
        if self.family.counting_key() == other.family.counting_key() and self.kind == other.kind:
            return None
        return f"{self.name!r} is {self.family} of {self.kind}s here, {other.family} of {other.kind}s there"

    @property
    def cut_by_class(self) -> bool:
        """Whether its bins are fine bins that are to be merged where the class frequencies do not change."""
        return isinstance(self.family, Histogram) and self.family.bins == "mdl" and self.family.width is None

    def join_bins(self, cells: Real) -> tuple[Variable, Int]:
        """Returns the variable with fine bins merged where the class frequencies do not change, and the new number of
        each fine bin; the variable as it is, and the old numbers, if its bins are final.

        ``cells`` has the rows of each fine bin (bins × classes).
        """
        if self.cuts is None or not (isinstance(self.family, Histogram) and self.cut_by_class):
            return self, np.arange(self.size)
        occupied = np.flatnonzero(cells.sum(axis=1) > 0)  # the numbers of fine bins with rows
        # Cuts between the numbers of fine bins; and the last fine bin of each new bin but the last.
        cut_positions = self.family.node_cuts(occupied.astype(np.float64), cells[occupied], "mdl", self.name)
        last_fine_bins = np.floor(cut_positions).astype(np.int64)
        cuts = tuple(self.cuts[k] for k in last_fine_bins.tolist())
        return replace(self, values=intervals(cuts), cuts=cuts), np.searchsorted(last_fine_bins, np.arange(self.size))

    # Rows

    def codes(self, batch: ColumnReader, threads: int) -> Codes:
        """Returns the key of each row of ``batch`` as codes, −1 if the row has no value. Keys of numbers are the
        numbers of their bins.
        """
        if self.cuts is None:  # categories
            keys = self.family.keys_of(batch, Feature(self.name, self.family, kind=self.kind), threads)
            assert keys is not None
            return keys
        numbers = finite_numbers(batch, self.name)  # rows; NaN: missing
        bins = np.searchsorted(np.array(self.cuts), numbers, side="right").astype(np.int32)
        bins[np.isnan(numbers)] = MISSING
        return Codes(bins, low=0, values=self.keys)  # type: ignore[arg-type]

    def codes_to_count(self, batch: ColumnReader, threads: int) -> Codes:
        """Returns the key of each row as codes, for rows that are counted; raises an error for a value that is not
        declared.
        """
        codes = self.codes(batch, threads)
        declared = self.family.permanent_keys() if self.cuts is None else None  # None: any value is allowed
        for key in codes.values if declared else ():
            if key is not None and key not in declared:  # type: ignore[operator]
                raise errors.unknown_value(key, self.name, sort_keys(declared))
        return codes

    def value_numbers(self, batch: ColumnReader, threads: int) -> ValueNumbers:
        """Returns the number of each row's value (rows): MISSING if there is none, UNSEEN if the value was never
        counted.
        """
        codes = self.codes(batch, threads)  # the distinct keys of the rows, and which of them each row has
        if codes.values is self.keys:
            return codes.codes
        # The number of each distinct key, by the variable's ``index``; the last entry is that of code −1.
        numbers = [*(self.index.get(key, UNSEEN) for key in codes.values), MISSING]
        return np.array(numbers, dtype=np.int32).take(codes.codes)

    def value_number(self, value: Any) -> int:
        """Returns the number of a value, or of the bin that a number is in; raises if it was never counted. ``cuts``
        are those between bins, None for categories, and ``index`` has the number of each value.
        """
        value = value.item() if isinstance(value, np.generic) else value
        if self.cuts is not None and not isinstance(value, str):
            if isinstance(value, (int, float)) and abs(value) < np.inf:
                return int(np.searchsorted(self.cuts, value, side="right"))
            raise errors.value_never_seen(value, self.name, self.values)
        if isinstance(value, (bool, int, float, str, type(None))) and value in self.index:
            return self.index[value]
        number = UNSEEN
        with suppress(errors.BanburyError, ValueError, TypeError):  # reading may convert it: a date to its text
            [batch] = read({self.name: [value]}, kinds={self.name: "string"} if self.kind == "string" else None)
            number = int(self.value_numbers(batch, threads=1)[0])
        if number < 0:
            raise errors.value_never_seen(value, self.name, self.values)
        return number

    def likelihood(self, evidence: Any) -> Real:
        """Returns the likelihood of the evidence under each value (values): 1 or 0 if ``evidence`` is one or several
        values; soft evidence is a mapping that gives every value a number.
        """
        likelihoods = np.zeros(self.size)
        if isinstance(evidence, np.ndarray) and evidence.ndim == 0:
            evidence = evidence.item()
        if not isinstance(evidence, Mapping):  # one value, or several
            values = evidence if isinstance(evidence, (list, tuple, set, frozenset, np.ndarray)) else (evidence,)
            likelihoods[[self.value_number(value) for value in values]] = 1.0
            return likelihoods
        value_numbers = [self.value_number(value) for value in evidence]
        expected = "one number for each value, and each value once"
        are_distinct = len(set(value_numbers)) == len(value_numbers)
        errors.require(are_distinct, f"the evidence of {self.name!r}", evidence, expected)
        for number, (value, likelihood) in zip(value_numbers, evidence.items(), strict=True):
            check_positive(f"the evidence of {self.name} = {value!r}", likelihood, zero=True)
            likelihoods[number] = likelihood
        if without_likelihood := [value for number, value in enumerate(self.values) if number not in value_numbers]:
            text = f"the soft evidence of {self.name!r} has no likelihood for "
            text += f"{errors.listed(map(repr, without_likelihood))}. Give every value, with 0 for impossible ones: "
            text += f"{without_likelihood[0]!r}: 0"
            raise errors.BadSetting(text, name="given", value=self.name)
        return likelihoods

    def draw(self, numbers: Int, rng: Generator) -> NDArray[Any]:
        """Returns the values with these ``numbers`` (one for each); for bins, draws a number uniformly within each.
        ``self.ends`` are the lowest and the highest number seen, and ``self.cuts`` the cuts between bins.
        """
        if self.cuts is None:
            have_one_type = len({type(value) for value in self.values}) == 1
            return np.array(self.values, dtype=None if have_one_type else object)[numbers]
        first_edge = min([self.ends[0], *self.cuts[:1]])
        last_edge = max([self.ends[1], *self.cuts[-1:]])
        edges = np.array([first_edge, *self.cuts, last_edge])  # of the bins
        low = edges[numbers]  # of each draw's bin, as all that follows
        high = edges[numbers + 1]
        if self.kind != "integer" or np.abs(edges).max() >= LARGEST_INTEGER:
            half_offset = (high / 2.0 - low / 2.0) * rng.random(len(numbers))  # the whole width may overflow
            return low + half_offset + half_offset
        first = np.ceil(low).astype(np.int64)  # whole number in the bin
        after_last = np.ceil(high).astype(np.int64)
        after_last += (numbers == len(self.cuts)) & (high == after_last)  # the highest itself is in the last bin
        return np.asarray(rng.integers(first, np.maximum(after_last, first + 1)))


def kind_of_values(values: Sequence[Any]) -> Kind:
    """Returns the type of a node's values, leaving out None; "string" for any other type than the four."""
    kind = kind_of([value for value in values if value is not None])
    return kind if kind in ("boolean", "integer", "float", "string") else "string"


def encode_variables(batch: Batch, variables: Sequence[Variable], threads: int) -> Batch:
    """Returns the batch with the columns of these variables as codes of their keys, so that they can be counted; raises
    an error for a value that is not declared.
    """
    return batch.with_columns(
        {variable.name: variable.codes_to_count(batch, threads).as_categorical() for variable in variables}
    )


def count_numbers(batch: Batch, name: str, weights: Real | None = None) -> tuple[Real, Real]:
    """Returns the distinct numbers of a column, in order, and the rows of each, or their total weight. Missing numbers
    and rows of weight 0 do not count. ``weights`` has one for each row.
    """
    numbers = finite_numbers(batch, name)  # rows; NaN: missing
    is_counted = ~np.isnan(numbers)
    if weights is not None:
        if len(weights) != batch.n_rows:
            raise errors.length_mismatch("weights", len(weights), batch.n_rows)
        is_counted &= weights > 0
    # The distinct numbers, and which of them each counted row has.
    values, value_number = np.unique(numbers[is_counted], return_inverse=True)
    rows_of_value = np.bincount(value_number.reshape(-1), None if weights is None else weights[is_counted], len(values))
    return values, rows_of_value.astype(np.float64)


def fine_cuts(values: Real, rows: Real, n_bins: int) -> tuple[float, ...]:
    """Returns cuts into about ``n_bins`` bins of about equal size, in ascending order, each cut in the widest gap
    nearby. ``values`` are distinct numbers in order, and ``rows`` the rows of each.

    Values that stand apart are therefore not in one bin, and a number that alone is as frequent as a bin has its own.
    """
    last_of_bin = np.arange(len(values) - 1)  # the index of the last value of each bin but the last
    if len(values) > n_bins:
        n_rows = rows.sum()
        # The bin of each value but the last, if all bins had as many rows.
        bin_by_size = ((np.cumsum(rows) - rows / 2.0) / n_rows * n_bins).astype(np.int64)[:-1]
        with np.errstate(over="ignore"):  # by bin, the values before the widest gaps first
            widest_first = np.lexsort((-np.diff(values), bin_by_size))
        last_of_bin = widest_first[np.unique(bin_by_size[widest_first], return_index=True)[1]]
        frequent_values = np.flatnonzero(rows * n_bins > n_rows)  # indices, too
        last_of_bin = np.unique(np.concatenate([last_of_bin, frequent_values, frequent_values - 1]))
        last_of_bin = last_of_bin[(last_of_bin >= 0) & (last_of_bin < len(values) - 1)]
    return cuts_after(values, last_of_bin)


def can_be_node(feature: Feature) -> bool:
    """Whether a column can have a table of its values or of bins of its numbers."""
    family = feature.family
    if feature.columns or feature.reads_text:
        return False
    return not family.has_density() or cutting_histogram(feature) is not None


def as_node(
    batch: Batch, feature: Feature, bins: Bins, weights: Real | None = None, n_fine: int = MOST_FINE
) -> Variable:
    """Returns the variable of a column. The rows of ``batch``, which are the first, decide where numbers are cut;
    ``weights`` are theirs.

    ``bins`` says how numbers are cut if the column's own family does not. If cuts depend on the classes ("mdl"), which
    are not known here, the numbers are cut into ``n_fine`` fine bins first (see ``Variable.join_bins``).
    """
    histogram = cutting_histogram(feature) if feature.family.has_density() else None
    if histogram is None:
        return Variable(feature.name, sort_keys(feature.family.permanent_keys() or ()), feature.family, feature.kind)
    values, rows = count_numbers(batch, feature.name, weights)  # distinct numbers in order, and the rows of each
    if histogram.bins == "auto":
        histogram = replace(histogram, bins=bins)
    if histogram.bins == "mdl" and histogram.width is None:
        cuts = fine_cuts(values, rows, n_fine)
    else:
        cuts = histogram.node_cuts(values, rows[:, None], NODE_BINS, feature.name)
    kind: Kind = "integer" if batch.kind(feature.name) == "integer" else "float"
    ends = (float(values[0]), float(values[-1])) if len(values) else (0.0, 0.0)
    return Variable(feature.name, intervals(cuts), histogram, kind, cuts, ends)


def intervals(cuts: Sequence[float]) -> Keys:
    """Returns names of the intervals between cuts, in order: "below 2", "2 to 5", "5 and above"; "any" without cuts."""
    if not cuts:
        return ("any",)
    names_of_cuts = format_distinctly(cuts)  # with as few digits as tell them apart
    middle_intervals = (f"{low} to {high}" for low, high in pairwise(names_of_cuts))
    return (f"below {names_of_cuts[0]}", *middle_intervals, f"{names_of_cuts[-1]} and above")


def no_block(block: str) -> errors.BadSetting:
    """Returns the error for a block of columns where a network needs single columns."""
    text = f"block {block!r} cannot be a node, because the nodes of a network are single columns. "
    text += "Name the columns one by one in features=, or leave the block out of it."
    return errors.BadSetting(text, name="features", value=block)


# Forests: where each variable has at most one parent beside the queried variable, one pass sums out all missing values, by
# message passing (the sum–product algorithm). Children come before their parents. The message of a child to its parent has, for
# every row and every queried value, the log-likelihood of the row's values at the child and below it, given the parent's value.
# If a row lacks the parent's value, the message has it for each value of the parent. Rows need not lack the same values.

# Takes rows, and the parent's value in each; without it, the message has a number for each of the parent's values.
MessageOfRows = Callable[[Int, ValueNumbers | None], Real]


@dataclass(frozen=True)
class Node:
    """A variable (by number), its parent or None, and its table P(value | queried value, parent's value): queried
    values × parent's values × values.
    """

    variable: int
    parent: int | None
    table: Real
    unseen: Real | None  # log-probability of a value that was never counted: queried values × parent's values

    @cached_property
    def logs(self) -> Real:
        """The logarithm of the table (queried values × parent's values × values)."""
        return log(self.table)

    def log_observed(self, values: ValueNumbers, parent_values: ValueNumbers | None) -> Real:
        """Returns the message log P(value | parent's value) of rows that have a value: rows × queried values.

        ``values`` has the number of each row's value, and ``parent_values`` of the parent's. If it is None because
        these rows lack the parent's value: rows × queried values × parent's values.
        """
        # ``logs``: log-probabilities, queried values × parent's values × values.
        if parent_values is None:
            return self.logs.transpose(2, 0, 1)[values]
        return self.logs.transpose(2, 1, 0)[values, parent_values]

    def sum_out(self, messages: Real, parent_values: ValueNumbers | None) -> Real:
        """Returns the message of rows that lack the variable, summed over its values: rows × queried values, and if
        ``parent_values`` is None because these rows lack the parent's value, × parent's values.

        ``messages`` has the sum of the messages from the variable's children (rows × queried values × values), and
        ``parent_values`` the number of the parent's value in each row. ``self.table`` has P(value | queried value,
        parent's value): queried values × parent's values × values.
        """
        highest = messages.max(axis=2, keepdims=True)  # so that no exponential is too small
        highest = np.where(np.isfinite(highest), highest, 0.0)
        weights = np.exp(messages - highest)  # in the shape of ``messages``
        if parent_values is None:
            return log((weights.transpose(1, 0, 2) @ self.table.transpose(0, 2, 1)).transpose(1, 0, 2)) + highest
        return log((weights * self.table.transpose(1, 0, 2)[parent_values]).sum(axis=2)) + highest[:, :, 0]

    def log_unseen(self, unseen: Real, parent_values: ValueNumbers | None) -> Real:
        """Returns the message of rows with a value that was never counted: rows × queried values, and if
        ``parent_values`` (the number of the parent's value in each row) is None, × parent's values. ``unseen`` has the
        log-probability of such a value (queried values × parent's values).
        """
        return unseen[None] if parent_values is None else unseen.T[parent_values]


@dataclass
class Messages:
    """What is known about each row so far, while messages go from children to parents.

    Args:
        log_joint: The sum of the messages to parents whose value the rows have (rows × queried values).
        below: For a variable that some rows lack, the sum of the messages from its children (rows × queried values × values).
        lacking: For such a variable, whether each row lacks it and has a message.
    """

    log_joint: Real
    below: dict[int, Real] = field(default_factory=dict)
    lacking: dict[int, Bool] = field(default_factory=dict)

    def add(self, node: Node, rows: Int, parent_values: ValueNumbers, message: MessageOfRows) -> None:
        """Adds the message of a node for some rows (their numbers) in place: to the joint probability if a row has the
        parent's value, otherwise to the messages that the parent has received.

        ``parent_values`` has the number of the parent's value in each row, negative if it has none, and ``message``
        computes the message for some of the rows. ``self.log_joint`` is rows × queried values; ``self.below`` has, by
        variable, the sum of the messages from its children for rows that lack it (rows × queried values × values), and
        ``self.lacking`` which rows these are.
        """
        has_parent = parent_values[rows] >= 0
        complete_rows = rows[has_parent]
        incomplete_rows = rows[~has_parent]
        self.log_joint[complete_rows] += message(complete_rows, parent_values[complete_rows])
        if node.parent is not None and len(incomplete_rows):
            if node.parent not in self.below:
                # Rows × queried values × values of the parent.
                self.below[node.parent] = np.zeros((*self.log_joint.shape, node.table.shape[1]))
                self.lacking[node.parent] = np.zeros(len(self.log_joint), dtype=np.bool_)
            self.below[node.parent][incomplete_rows] += message(incomplete_rows, None)
            self.lacking[node.parent][incomplete_rows] = True

    def send(self, node: Node, values: ValueNumbers, parent_values: ValueNumbers) -> None:
        """Sends the messages of a node to its parent, in place, after all of its children have sent theirs. ``values``
        has the number of each row's value of the node (MISSING or UNSEEN if it has none), and ``parent_values`` of its
        parent. ``self.below`` has, by variable, the messages from its children for rows that lack it, and
        ``self.lacking`` which rows these are.
        """

        def message_of_value(rows: Int, parent_values: ValueNumbers | None) -> Real:
            """Returns the message of rows that have a value of the node."""
            return node.log_observed(values[rows], parent_values)

        self.add(node, np.flatnonzero(values >= 0), parent_values, message_of_value)
        if node.variable in self.below:
            from_children = self.below.pop(node.variable)
            lacking = self.lacking.pop(node.variable)

            def message_of_children(rows: Int, parent_values: ValueNumbers | None) -> Real:
                """Returns the message of rows that lack a value of the node, from those of its children."""
                return node.sum_out(from_children[rows], parent_values)

            self.add(node, np.flatnonzero(lacking), parent_values, message_of_children)
        if (unseen := node.unseen) is not None:

            def message_of_unseen(rows: Int, parent_values: ValueNumbers | None) -> Real:
                """Returns the message of rows whose value of the node was never counted."""
                return node.log_unseen(unseen, parent_values)

            self.add(node, np.flatnonzero(values == UNSEEN), parent_values, message_of_unseen)


@dataclass(frozen=True)
class NodeForest:
    """The nodes of a forest, children before their parents; the number of the queried variable (``query``), None if
    there is none; and how many queried values, or classes, the first axis of each table has (``size``).
    """

    nodes: tuple[Node, ...]
    query: int | None
    size: int

    @classmethod
    def of(
        cls,
        tables: Sequence[Real],
        unseen: Sequence[Real | None],
        parents: Sequence[tuple[int, ...]],
        query: int | None,
    ) -> NodeForest | None:
        """Returns the forest that remains without the queried variable; None if a variable has two other parents.

        Args:
            tables: For each variable, P(value | parents' values): values × values of each parent.
            unseen: For each variable, the log-probability of a value that was never counted, by the parents' values; or None.
            parents: For each variable, the numbers of its parents.
            query: The number of the queried variable, or None.
        """
        other_parents = [[k for k in node_parents if k != query] for node_parents in parents]  # of each variable
        if any(len(node_parents) > 1 for node_parents in other_parents):
            return None
        parent = [node_parents[0] if node_parents else None for node_parents in other_parents]
        n_queried = 1 if query is None else len(tables[query])  # values of the queried variable
        nodes = []
        for variable in children_first(parent):
            scope = (variable, *parents[variable])  # the variables of the old table's axes
            axes = (query, parent[variable])  # those of the new table's first axes
            log_unseen = unseen[variable]
            if variable == query:  # it has one value, whichever is asked for
                table = _arrange_axes(tables[variable], scope, axes, n_queried)[:, :, None]
                log_unseen = None
            else:
                table = _arrange_axes(tables[variable], scope, (*axes, variable), n_queried)
            if log_unseen is not None:
                log_unseen = _arrange_axes(log_unseen, parents[variable], axes, n_queried)
            nodes.append(Node(variable, parent[variable], table, log_unseen))
        return cls(tuple(nodes), query, n_queried)

    def for_queried_value(self, k: int) -> NodeForest:
        """Returns the forest whose tables have value number k of the queried variable alone, so that their first axis
        has length 1. Tables are queried values × parent's values × values.
        """
        nodes = []
        for node in self.nodes:
            unseen = None if node.unseen is None else node.unseen[k : k + 1]  # queried values × parent's values
            nodes.append(replace(node, table=node.table[k : k + 1], unseen=unseen))
        return replace(self, nodes=tuple(nodes), size=1)

    @property
    def width(self) -> int:
        """How many numbers the messages of one row have at most: queried values times the values of all nodes."""
        return self.size * sum(int(node.table.shape[2]) for node in self.nodes)

    def log_joint(self, values: Sequence[ValueNumbers]) -> Real:
        """Returns log P(queried value, observed values) (rows × queried values). ``values`` has for each variable the
        numbers of the rows' values, negative where there is none. ``self.query`` is the number of the queried variable,
        and ``self.size`` that of its values.
        """
        n_rows = len(values[0])
        messages = Messages(np.zeros((n_rows, self.size)))
        zeros = np.zeros(n_rows, dtype=np.int32)  # value numbers of the queried variable, and of a missing parent
        for node in self.nodes:
            node_values = zeros if node.variable == self.query else values[node.variable]
            messages.send(node, node_values, zeros if node.parent is None else values[node.parent])
        return messages.log_joint


def children_first(parent: Sequence[int | None]) -> list[int]:
    """Returns the numbers of the nodes with children before their parents. ``parent`` has the parent of each node, or
    None.
    """
    children: list[list[int]] = [[] for _ in parent]  # of each node
    for node, node_parent in enumerate(parent):
        if node_parent is not None:
            children[node_parent].append(node)
    parents_first = [node for node, node_parent in enumerate(parent) if node_parent is None]
    for node in parents_first:  # which grows meanwhile
        parents_first += children[node]
    return parents_first[::-1]


def _arrange_axes(table: Real, scope: tuple[int, ...], axes: tuple[int | None, ...], size: int) -> Real:
    """Returns ``table``, whose axes belong to the variables ``scope``, with the axes ``axes`` instead. An axis that the
    table does not have (None, or another variable) gets length 1, and the first axis length ``size``.
    """
    transposed = table.transpose([scope.index(variable) for variable in axes if variable in scope])
    # With axes of length 1 for the variables that the table does not have.
    expanded = np.expand_dims(transposed, [axis for axis, variable in enumerate(axes) if variable not in scope])
    return np.broadcast_to(expanded, (size, *expanded.shape[1:]))
