"""Scoring: log P(some variables, what a row shows) for many rows at once, what is missing summed out exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from banbury.arrays import Int, Real
from banbury.families.dirichlet import log
from banbury.families.nodes import MISSING, UNSEEN, NodeForest, Places
from banbury.model.networks.elimination import ROW, Factor, eliminate, products_of_others
from banbury.model.networks.structure import ancestors

Scoped = tuple[tuple[int, ...], Real]  # a table and its variables
MOST_PATTERNS = 16  # of missing values: the most frequent are answered each by itself, rows of all others together
FEW_ROWS = 64  # for each pattern that is answered by itself
MOST_AT_ONCE = 1 << 22  # numbers in the tables of the rows that are answered together


@dataclass(frozen=True)
class Scorer:
    """The tables of a network: P(value | parents' values) of each variable (values × values of each parent)."""

    sizes: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[Real, ...]
    unseen: tuple[Real | None, ...]  # log-probability of a value that was never counted, by the parents' values

    @cached_property
    def logs(self) -> list[Real]:
        return [log(table) for table in self.tables]

    def log_joint(self, places: Sequence[Places], keep: tuple[int, ...]) -> Real:
        """Returns log P(keep, observed values) (rows × values of each kept variable). Observed values of kept variables
        are ignored.
        """
        n_rows = len(places[0])
        answer = np.empty((n_rows, *(self.sizes[k] for k in keep)))
        gaps = any(column.min(initial=0) < 0 for v, column in enumerate(places) if v not in keep)
        if gaps and (forest := self._forest(keep)) is not None:
            at_once = max(int(MOST_AT_ONCE // forest.width), 1)
            for start in range(0, n_rows, at_once):
                part = slice(start, start + at_once)
                answer[part] = self._in_forest(forest, [column[part] for column in places], keep)
            return answer
        for rows, hidden in self._groups(places, keep, n_rows):
            open_ = ([self.sizes[u] for u in (v, *above) if u in hidden] for v, above in enumerate(self.parents))
            at_once = max(int(MOST_AT_ONCE // max(float(sum(map(prod, open_))), 1)), 1)  # by the numbers a row needs
            for start in range(0, len(rows), at_once):
                some = rows[start : start + at_once]
                answer[some] = self._of_group([column[some] for column in places], keep, hidden)
        return answer

    @cached_property
    def _forests(self) -> dict[int | None, NodeForest | None]:
        return {}

    def _forest(self, keep: tuple[int, ...]) -> NodeForest | None:
        """The forest that is left beside what is asked for; where nothing is, beside the variable that most others depend on."""
        if len(keep) > 1:
            return None
        tops = [p for above in self.parents for p in above if not self.parents[p]]  # such as the class of a tree
        for node in keep or [None, *([max(set(tops), key=tops.count)] if tops else [])]:
            if node not in self._forests:
                self._forests[node] = NodeForest.of(self.tables, self.unseen, self.parents, node)
            if (forest := self._forests[node]) is not None:
                return forest
        return None

    def _in_forest(self, forest: NodeForest, places: Sequence[Places], keep: tuple[int, ...]) -> Real:
        """log P(keep, what the rows show), without the axis of what the forest is beside where that is not kept."""
        if keep:
            return forest.log_joint(places)
        if forest.query is None:
            return forest.log_joint(places)[:, 0]
        answer = np.empty(len(places[0]))
        beside = places[forest.query]
        unseen = self.unseen[forest.query]
        for k in np.unique(beside).tolist():
            rows = np.flatnonzero(beside == k)
            places_of_rows = [column[rows] for column in places]
            if k >= 0:
                answer[rows] = forest.at(k).log_joint(places_of_rows)[:, 0]
            else:
                new = float(unseen) if unseen is not None and k == UNSEEN else 0.0
                answer[rows] = np.logaddexp.reduce(forest.log_joint(places_of_rows), axis=1) + new
        return answer

    def _groups(self, places: Sequence[Places], keep: tuple[int, ...], n_rows: int) -> Iterator[tuple[Int, set[int]]]:
        """Rows that lack the same values, with what they lack and what is asked for."""
        often = [v for v, column in enumerate(places) if v not in keep and n_rows and column.min() < 0]
        if not often or not n_rows:
            yield np.arange(n_rows), set(keep)
            return
        lacking = np.stack([places[v] < 0 for v in often], axis=1)
        patterns, of_row, n = np.unique(lacking, axis=0, return_inverse=True, return_counts=True)
        of_row = of_row.reshape(-1)
        most = min(MOST_PATTERNS, 1 + n_rows // FEW_ROWS)
        if len(patterns) > most:
            frequent = np.argsort(-n, kind="stable")[: most - 1]
            is_rare = np.ones(len(patterns), dtype=np.bool_)
            is_rare[frequent] = False
            place = np.full(len(patterns), len(frequent))
            place[frequent] = np.arange(len(frequent))
            patterns = np.stack([*patterns[frequent], patterns[is_rare].any(axis=0)])
            of_row = place[of_row]
        order = np.argsort(of_row, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(of_row[order])) + 1):
            pattern = patterns[of_row[rows[0]]]
            yield rows, {*keep, *(often[j] for j in np.flatnonzero(pattern))}

    def _of_group(self, places: Sequence[Places], keep: tuple[int, ...], hidden: set[int]) -> Real:
        """Rows that show at least what is not hidden; what some of them show of the hidden is given as evidence."""
        n_rows = len(places[0])
        evident = [v not in keep and (place != MISSING).any() for v, place in enumerate(places)]
        shown = [v for v in range(len(self.sizes)) if v not in hidden or evident[v]]
        needed = ancestors({*keep, *shown}, self.parents)
        log_shown = np.zeros(n_rows)  # log-probability of what the rows show alone
        single: dict[int, Real] = {}  # log-potentials of one hidden variable
        factors: list[Factor] = []
        for v in needed:
            for scope, table in self._terms(v, places, hidden, n_rows):
                if not scope:
                    log_shown = log_shown + table
                elif len(scope) == 1:
                    single[scope[0]] = single.get(scope[0], 0.0) + table.reshape(-1, self.sizes[scope[0]])
                else:
                    factors.append(Factor((ROW, *scope) if table.ndim > len(scope) else scope, np.exp(table)))
        for v in hidden.difference(keep).intersection(shown):
            single[v] = single.get(v, 0.0) + self._evidence(places[v], v)
        if not factors and set(single) == set(keep) and len(keep) == 1:
            return np.asarray(log_shown[:, None] + single[keep[0]])
        for v, logs in single.items():  # with a largest entry of 1 in each row
            highest = np.broadcast_to(logs, (n_rows, logs.shape[1])).max(axis=1)
            highest = np.where(np.isfinite(highest), highest, 0.0)
            factors.append(Factor((ROW, v), np.exp(logs - highest[:, None])))
            log_shown = log_shown + highest
        log_hidden = eliminate(factors, (ROW, *keep), {ROW: n_rows, **dict(enumerate(self.sizes))})
        return np.asarray(log_shown.reshape(-1, *(1,) * len(keep)) + log_hidden)

    def _terms(self, v: int, places: Sequence[Places], hidden: set[int], n_rows: int) -> Iterator[Scoped]:
        """A variable's table at what the rows show, over what is hidden of it and its parents.

        And where rows have a value that was never counted, what that says of its parents.
        """
        parents = self.parents[v]
        yield self._slice((v, *parents), self.logs[v], places, hidden, n_rows)
        unseen = self.unseen[v]
        if unseen is not None and v in hidden and (places[v] == UNSEEN).any():
            scope, table = self._slice(parents, unseen, places, hidden, n_rows)
            met = (places[v] == UNSEEN).reshape(-1, *(1,) * len(scope))
            yield scope, np.where(met, table, 0.0)

    def _slice(
        self, scope: tuple[int, ...], logs: Real, places: Sequence[Places], hidden: set[int], n_rows: int
    ) -> Scoped:
        """The hidden variables of a table, and (rows, their values); without an axis of rows where these show none of it."""
        shown = [variable for variable in scope if variable not in hidden]
        rest = tuple(variable for variable in scope if variable in hidden)
        if not shown:
            return rest, logs
        table = logs.transpose([scope.index(variable) for variable in (*shown, *rest)])
        cells = np.zeros(n_rows, dtype=np.int64)
        for variable in shown:
            cells = cells * self.sizes[variable] + places[variable]
        return rest, np.asarray(table.reshape(-1, *table.shape[len(shown) :])[cells])

    def _evidence(self, places: Places, v: int) -> Real:
        """0 at a row's own value and −inf at others; 0 everywhere where it has none."""
        logs = np.where(places[:, None] == np.arange(self.sizes[v]), 0.0, -np.inf)
        logs[places < 0] = 0.0
        return logs


def log_query(scorer: Scorer, keep: tuple[int, ...], evidence: Mapping[int, Real]) -> Real:
    """Returns log P(keep, evidence), with an axis for each kept variable. Evidence has a weight for each value of a
    variable.
    """
    needed = ancestors({*keep, *evidence}, scorer.parents)
    certain = _certain(evidence, keep)
    factors = [_condition(scorer, v, certain) for v in needed]
    factors += [Factor((v,), weights) for v, weights in evidence.items() if v not in certain]
    constant = sum(float(log(evidence[v].max())) for v in certain)
    return np.asarray(eliminate(factors, keep, dict(enumerate(scorer.sizes))) + constant)


def marginals(scorer: Scorer, evidence: Mapping[int, Real]) -> list[Real]:
    """Returns P(value, evidence) of every variable up to a constant, at about three times the cost of one."""
    certain = _certain(evidence, ())
    factors = [_condition(scorer, v, certain) for v in range(len(scorer.sizes))]
    soft = [Factor((v,), weights) for v, weights in evidence.items() if v not in certain]
    rest = products_of_others([*factors, *soft], dict(enumerate(scorer.sizes)))
    weights_of_values = []
    for v, (factor, rest_product) in enumerate(zip(factors, rest, strict=False)):
        joint = factor.table * rest_product
        if v in certain:
            weights_of_values.append(np.where(np.arange(scorer.sizes[v]) == certain[v], joint.sum(), 0.0))
        else:
            weights_of_values.append(
                joint.sum(axis=tuple(range(1, joint.ndim)))
            )  # a variable's own axis is its table's first
    return weights_of_values


def _certain(evidence: Mapping[int, Real], keep: tuple[int, ...]) -> dict[int, int]:
    """The variables of which one value is left, and its number."""
    single = (v for v, weights in evidence.items() if v not in keep and np.count_nonzero(weights) == 1)
    return {v: int(np.flatnonzero(evidence[v])[0]) for v in single}


def _condition(scorer: Scorer, v: int, certain: Mapping[int, int]) -> Factor:
    """A variable's table without the axes of what is known."""
    scope = (v, *scorer.parents[v])
    table = scorer.tables[v][tuple(certain.get(variable, slice(None)) for variable in scope)]
    return Factor(tuple(variable for variable in scope if variable not in certain), table)
