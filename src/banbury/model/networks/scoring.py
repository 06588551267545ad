"""Exact inference: log P(query variables, observed values) of many rows at once; missing values are summed out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from banbury.arrays import Int, Real
from banbury.families.dirichlet import log
from banbury.families.nodes import MISSING, UNSEEN, NodeForest, ValueNumbers
from banbury.model.networks.elimination import ROW, Factor, eliminate, outside_products
from banbury.model.networks.structure import ancestors

MOST_PATTERNS = 16  # the most frequent patterns of missing values, whose rows are scored separately; others together
ROWS_PER_PATTERN = 64  # at least so many rows, on average, for each pattern that is scored separately
MOST_NUMBERS = 1 << 22  # in the tables of the rows that are scored together


@dataclass(frozen=True)
class Scorer:
    """The conditional probability tables of a network, and exact inference with them. Variables are numbers.

    Three methods give the same answers. If one pass of messages suffices, because the network is a forest apart from
    one variable, ``NodeForest`` does it. Otherwise rows that lack the same values are scored together by variable
    elimination.
    """

    sizes: tuple[int, ...]  # the number of values of each variable
    parents: tuple[tuple[int, ...], ...]  # the parents of each variable
    tables: tuple[Real, ...]  # P(value | parents' values): values × values of each parent
    log_unseen: tuple[Real | None, ...]  # log-probability of a value that was never counted: values of each parent

    @cached_property
    def log_tables(self) -> list[Real]:
        """The logarithm of each variable's table (values × values of each parent)."""
        return [log(table) for table in self.tables]

    def log_joint(self, value_numbers: Sequence[ValueNumbers], query: tuple[int, ...]) -> Real:
        """Returns log P(query variables, observed values) (rows × values of each query variable).

        Args:
            value_numbers: For each variable, the number of the value of each row; MISSING, or UNSEEN if the value was never
                counted.
            query: The query variables, whose observed values are ignored; none for log P(observed values).
        """
        n_rows = len(value_numbers[0])
        log_joint = np.empty((n_rows, *(self.sizes[variable] for variable in query)))
        lacks_values = any(
            column.min(initial=0) < 0 for variable, column in enumerate(value_numbers) if variable not in query
        )
        if lacks_values and (forest := self._forest(query)) is not None:
            for rows in _slices(np.arange(n_rows), forest.width):  # width: the numbers that it computes for a row
                log_joint[rows] = self._log_joint_in_forest(forest, [column[rows] for column in value_numbers], query)
            return log_joint
        for group, hidden in self._group_rows(value_numbers, query):  # row numbers, and their hidden variables
            hidden_sizes = (  # of each table: the numbers of values of its hidden variables
                [self.sizes[member] for member in (variable, *parents) if member in hidden]
                for variable, parents in enumerate(self.parents)
            )
            for rows in _slices(group, sum(map(prod, hidden_sizes))):
                log_joint[rows] = self._eliminate_hidden([column[rows] for column in value_numbers], query, hidden)
        return log_joint

    # By one pass of messages

    @cached_property
    def _forests(self) -> dict[int | None, NodeForest | None]:
        """The forests that were built so far, by the variable that they leave out (None: no variable); None if what
        remains is no forest. ``_forest`` adds to it.
        """
        return {}

    def _forest(self, query: tuple[int, ...]) -> NodeForest | None:
        """Returns the forest that remains without the query variable. If there is none, returns the forest of all
        variables, or without the root that has the most children, such as the class. None if what remains is no forest.
        """
        if len(query) > 1:
            return None
        left_out: list[int | None] = [*query]  # the variables to try to leave out, in order; None: no variable
        if not query:
            # The variables without parents, once per child.
            roots = [parent for parents in self.parents for parent in parents if not self.parents[parent]]
            left_out = [None, *([max(set(roots), key=roots.count)] if roots else [])]
        for variable in left_out:
            if variable not in self._forests:
                self._forests[variable] = NodeForest.of(self.tables, self.log_unseen, self.parents, variable)
            if (forest := self._forests[variable]) is not None:
                return forest
        return None

    def _log_joint_in_forest(
        self, forest: NodeForest, value_numbers: Sequence[ValueNumbers], query: tuple[int, ...]
    ) -> Real:
        """Returns log P(query variable, observed values) (rows × its values), or log P(observed values) of each row if
        there is no query variable. ``forest`` is what ``_forest`` returned: ``forest.query`` is the variable that it
        leaves out, or None. ``value_numbers`` has for each variable the number of each row's value; MISSING, or UNSEEN
        if the value was never counted.
        """
        if query:
            return forest.log_joint(value_numbers)
        if forest.query is None:
            return forest.log_joint(value_numbers)[:, 0]
        log_joint = np.empty(len(value_numbers[0]))
        log_unseen = self.log_unseen[forest.query]  # the log-probability of a value that was never counted, or None
        for value_number in np.unique(value_numbers[forest.query]).tolist():
            rows = np.flatnonzero(value_numbers[forest.query] == value_number)
            numbers_of_rows = [column[rows] for column in value_numbers]  # ``value_numbers`` of these rows
            if value_number >= 0:
                log_joint[rows] = forest.for_queried_value(value_number).log_joint(numbers_of_rows)[:, 0]
            else:
                log_evidence = float(log_unseen) if log_unseen is not None and value_number == UNSEEN else 0.0
                log_joint[rows] = np.logaddexp.reduce(forest.log_joint(numbers_of_rows), axis=1) + log_evidence
        return log_joint

    # By variable elimination

    def _group_rows(
        self, value_numbers: Sequence[ValueNumbers], query: tuple[int, ...]
    ) -> Iterator[tuple[Int, set[int]]]:
        """Yields groups of row numbers, and the hidden variables of each group: the query, and those that some row of
        the group lacks. Rows of a group lack the same values, except that rare patterns are one group.
        ``value_numbers`` has for each variable the number of each row's value, negative if missing.
        """
        n_rows = len(value_numbers[0])
        incomplete = [
            variable
            for variable, column in enumerate(value_numbers)
            if variable not in query and column.min(initial=0) < 0
        ]
        if not incomplete:
            yield np.arange(n_rows), set(query)
            return
        # Rows × incomplete variables; a pattern is a distinct line of it.
        is_missing = np.stack([value_numbers[variable] < 0 for variable in incomplete], axis=1)
        # The patterns, the number of each row's pattern, and the number of rows of each pattern.
        patterns, pattern_of_row, rows_of_pattern = np.unique(
            is_missing, axis=0, return_inverse=True, return_counts=True
        )
        pattern_of_row = pattern_of_row.reshape(-1)
        most_patterns = min(MOST_PATTERNS, 1 + n_rows // ROWS_PER_PATTERN)
        if len(patterns) > most_patterns:
            # The numbers of the most frequent patterns.
            frequent = np.argsort(-rows_of_pattern, kind="stable")[: most_patterns - 1]
            is_rare = np.ones(len(patterns), dtype=np.bool_)
            is_rare[frequent] = False
            group_of_pattern = np.full(len(patterns), len(frequent))  # the last group has all rare patterns
            group_of_pattern[frequent] = np.arange(len(frequent))
            patterns = np.stack([*patterns[frequent], patterns[is_rare].any(axis=0)])
            pattern_of_row = group_of_pattern[pattern_of_row]
        for number in np.unique(pattern_of_row).tolist():
            yield np.flatnonzero(pattern_of_row == number), {*query, *np.array(incomplete)[patterns[number]].tolist()}

    def _eliminate_hidden(
        self, value_numbers: Sequence[ValueNumbers], query: tuple[int, ...], hidden: set[int]
    ) -> Real:
        """Returns log P(query variables, observed values) (rows × values of each query variable) of rows that have a
        value of every variable that is not hidden. If a row has the value of a hidden variable, the value is evidence
        about it. The query is among the hidden variables. ``value_numbers`` has for each variable the number of each
        row's value; MISSING, or UNSEEN if the value was never counted.
        """
        n_rows = len(value_numbers[0])
        has_values = [  # for each variable, whether some row has a value of it
            variable not in query and (column != MISSING).any() for variable, column in enumerate(value_numbers)
        ]
        observed = [variable for variable in range(len(self.sizes)) if variable not in hidden or has_values[variable]]
        log_constant = np.zeros(n_rows)  # the log-probability of what is observed with all of its parents
        # By hidden variable, the product of the factors that have it alone: rows × values, or 1 × values.
        log_potentials = dict[int, Real]()
        factors: list[Factor] = []  # those of several hidden variables
        for variable in ancestors({*query, *observed}, self.parents):
            for scope, log_table in self._condition_on_rows(variable, value_numbers, hidden, n_rows):
                if not scope:
                    log_constant = log_constant + log_table
                elif len(scope) == 1:
                    log_potential = log_table.reshape(-1, self.sizes[scope[0]])
                    log_potentials[scope[0]] = log_potentials.get(scope[0], 0.0) + log_potential
                else:
                    factors.append(Factor((ROW, *scope) if log_table.ndim > len(scope) else scope, np.exp(log_table)))
        for variable in hidden.difference(query).intersection(observed):
            # Rows × values: the value that was observed, or any.
            is_possible = (value_numbers[variable][:, None] == np.arange(self.sizes[variable])) | (
                value_numbers[variable][:, None] < 0
            )
            log_potentials[variable] = log_potentials.get(variable, 0.0) + np.where(is_possible, 0.0, -np.inf)
        if not factors and (*log_potentials,) == query and len(query) == 1:  # as in naive Bayes: nothing to sum out
            return np.asarray(log_constant[:, None] + log_potentials[query[0]])
        for variable, log_potential in log_potentials.items():
            # Scaled before the exponential, lest all of a row underflow.
            highest = np.broadcast_to(log_potential, (n_rows, self.sizes[variable])).max(axis=1)
            highest = np.where(np.isfinite(highest), highest, 0.0)
            factors.append(Factor((ROW, variable), np.exp(log_potential - highest[:, None])))
            log_constant = log_constant + highest
        log_joint = eliminate(factors, (ROW, *query), {ROW: n_rows, **dict(enumerate(self.sizes))})
        return np.asarray(log_constant.reshape(-1, *(1,) * len(query)) + log_joint)

    def _condition_on_rows(
        self, variable: int, value_numbers: Sequence[ValueNumbers], hidden: set[int], n_rows: int
    ) -> Iterator[tuple[tuple[int, ...], Real]]:
        """Yields the hidden variables of a variable's table, and its log table at the rows' observed values (rows ×
        values of each hidden variable), as ``_select_observed`` returns them. If rows have a value of the variable that
        was never counted, also yields the log-probability of such a value given its hidden parents. ``value_numbers``
        has for each variable the number of each row's value, UNSEEN if it was never counted.
        """
        yield self._select_observed(
            (variable, *self.parents[variable]), self.log_tables[variable], value_numbers, hidden, n_rows
        )
        log_unseen = self.log_unseen[variable]
        is_unseen = value_numbers[variable] == UNSEEN
        if log_unseen is not None and variable in hidden and is_unseen.any():
            scope, log_table = self._select_observed(self.parents[variable], log_unseen, value_numbers, hidden, n_rows)
            yield scope, np.where(is_unseen.reshape(-1, *(1,) * len(scope)), log_table, 0.0)

    def _select_observed(
        self,
        scope: tuple[int, ...],
        log_table: Real,
        value_numbers: Sequence[ValueNumbers],
        hidden: set[int],
        n_rows: int,
    ) -> tuple[tuple[int, ...], Real]:
        """Returns the hidden variables of a log table over the variables ``scope``, and the table at the rows' values
        of the others: rows × values of each hidden variable, or without rows if all variables are hidden. The axes of
        ``log_table`` are in the order of ``scope``. ``value_numbers`` has for each variable the number of each row's
        value.
        """
        observed = [variable for variable in scope if variable not in hidden]
        hidden_scope = tuple(variable for variable in scope if variable in hidden)
        if not observed:
            return hidden_scope, log_table
        # The log table with the axes of observed variables first.
        transposed = log_table.transpose([scope.index(variable) for variable in (*observed, *hidden_scope)])
        cells = np.zeros(n_rows, dtype=np.int64)  # of each row, the number of its combination of observed values
        for variable in observed:
            cells = cells * self.sizes[variable] + value_numbers[variable]
        return hidden_scope, np.asarray(transposed.reshape(-1, *transposed.shape[len(observed) :])[cells])


def _slices(rows: Int, numbers_per_row: int) -> Iterator[Int]:
    """Yields the row numbers ``rows`` in pieces of at least one row, whose tables, with so many numbers per row, have
    at most MOST_NUMBERS numbers.
    """
    n_rows = max(MOST_NUMBERS // max(numbers_per_row, 1), 1)
    for start in range(0, len(rows), n_rows):
        yield rows[start : start + n_rows]


# Questions without rows -----------------------------------------------------------------------------------------------
# Evidence gives for some variables the likelihood of the observation under each value: 1 and 0 if the value was observed.


def log_query(scorer: Scorer, query: tuple[int, ...], evidence: Mapping[int, Real]) -> Real:
    """Returns log P(query variables, evidence), with an axis for each query variable. ``scorer`` has the tables of the
    network, and ``evidence`` for each observed variable the likelihood of the observation under each value.
    """
    certain = _find_certain_values(evidence, query)  # by variable, the number of its only possible value
    relevant = ancestors({*query, *evidence}, scorer.parents)  # summing out all others gives 1
    factors = [_condition(scorer, variable, certain) for variable in relevant]
    factors += [Factor((variable,), likelihood) for variable, likelihood in evidence.items() if variable not in certain]
    log_constant = sum(float(log(evidence[variable].max())) for variable in certain)  # the likelihood of these values
    return np.asarray(eliminate(factors, query, dict(enumerate(scorer.sizes))) + log_constant)


def marginals(scorer: Scorer, evidence: Mapping[int, Real]) -> list[Real]:
    """Returns P(value, evidence) of every variable up to a constant, an array (values,) each, at about three times the
    cost of one variable. ``scorer`` has the tables of the network, and ``evidence`` for each observed variable the
    likelihood of the observation under each value.
    """
    certain = _find_certain_values(evidence, query=())  # by variable, the number of its only possible value
    tables = [_condition(scorer, variable, certain) for variable in range(len(scorer.sizes))]
    uncertain_evidence = [
        Factor((variable,), likelihood) for variable, likelihood in evidence.items() if variable not in certain
    ]
    products = outside_products([*tables, *uncertain_evidence], dict(enumerate(scorer.sizes)))
    variable_weights = []
    for variable, (factor, outside_product) in enumerate(zip(tables, products, strict=False)):
        joint = factor.table * outside_product  # P(value, values of the parents, evidence), up to a constant
        if variable in certain:
            weights = np.where(np.arange(scorer.sizes[variable]) == certain[variable], joint.sum(), 0.0)
        else:
            weights = joint.sum(axis=tuple(range(1, joint.ndim)))  # the first axis is the variable's own
        variable_weights.append(weights)
    return variable_weights


def _find_certain_values(evidence: Mapping[int, Real], query: tuple[int, ...]) -> dict[int, int]:
    """Returns, by variable, the number of the only value that the evidence leaves possible, for those variables outside
    the query that have only one. ``evidence`` has for each observed variable the likelihood of the observation under
    each value.
    """
    certain = (
        variable
        for variable, likelihood in evidence.items()
        if variable not in query and np.count_nonzero(likelihood) == 1
    )
    return {variable: int(np.flatnonzero(evidence[variable])[0]) for variable in certain}


def _condition(scorer: Scorer, variable: int, certain: Mapping[int, int]) -> Factor:
    """Returns the table of a variable given its parents, one of the tables that ``scorer`` has, without the axes of
    variables whose value is certain. ``certain`` has the numbers of these values by variable.
    """
    scope = (variable, *scorer.parents[variable])
    table = scorer.tables[variable][tuple(certain.get(member, slice(None)) for member in scope)]
    return Factor(tuple(member for member in scope if member not in certain), table)
