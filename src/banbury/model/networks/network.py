"""BeliefNetwork: nodes, the tables of each given its parents, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.errors import many
from banbury.families.column_tree import DrawnTree, check_bins, find_trees, tree_of_columns
from banbury.families.dirichlet import conditional
from banbury.families.family import Choice, Feature, How, check_positive, in_words
from banbury.families.histogram import NODE_BINS
from banbury.families.information import entropy, shares
from banbury.families.nodes import MISSING, Bins, Places, Variable, as_node, can_be_node, kind_of_values, no_block
from banbury.model.naive_bayes import Model, check_drawn, choice_of, model_under, tell_other_columns
from banbury.model.networks.counting import NetworkCounts, count_batches
from banbury.model.networks.scoring import Scorer, log_query, marginals
from banbury.model.networks.structure import complete_parents, in_topological_order
from banbury.model.networks.tables import table_of_node, values_of_node
from banbury.notebooks import Displayed, NotebookTable
from banbury.reading import Batch, Beside, Source, n_threads, read
from banbury.reading.columns import missing
from banbury.sums import MOST_ROWS, Key, Keys, rows_of
from banbury.tally.schema import ColumnFacts, Features, Missing, expand_stars, infer, with_few_values
from banbury.tally.table import Labels, batches
from banbury.tally.tally import count

UNUSED = np.random.default_rng(0)
SHOWN = 40  # nodes, and columns that were left out, when a network is printed


@dataclass(frozen=True, eq=False, repr=False)
class BeliefNetwork(Displayed):
    """A Bayesian belief network with a table P(value | values of its parents) for each node. It is a frozen value.

    ``BeliefNetwork.count`` counts the tables of a given structure, ``BeliefNetwork.tan`` also learns the structure, and
    ``BeliefNetwork.from_tables`` takes probabilities. Networks that were counted can be added and subtracted like
    tallies.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> network = bb.BeliefNetwork.count(weather, parents={"play": ["outlook", "wind"], "humidity": ["outlook"]})
    >>> {value: round(p, 3) for value, p in network.query("play", {"outlook": "rain", "wind": "strong"}).items()}
    {'no': 0.807, 'yes': 0.193}
    >>> {value: round(p, 3) for value, p in network.query("humidity", {"play": "no"}).items()}
    {'high': 0.512, 'normal': 0.488}
    """

    kind: ClassVar[str] = "network"

    variables: tuple[Variable, ...]
    _parents: tuple[tuple[int, ...], ...]
    choice: Choice
    sums: NetworkCounts | None  # None where the tables were given
    _given: tuple[Real, ...] = ()
    target: str | None = None
    columns: tuple[str, ...] = ()  # of the table it was counted from, in order, without the target
    named: bool = True
    left_out: Mapping[str, str] = field(default_factory=dict)  # column → why
    threads: int | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)  # how files were read, so that others are read likewise

    # Making one

    def __new__(cls, variables: Any = None, *parts: Any, **named: Any) -> BeliefNetwork:
        """Takes the parts that the methods below make; raises where it is called with anything else."""
        if not isinstance(variables, tuple) or not all(isinstance(variable, Variable) for variable in variables):
            raise errors.BadSetting(
                "bb.BeliefNetwork has no constructor. Count the tables of a structure with bb.BeliefNetwork.count(data, "
                "parents), give them with bb.BeliefNetwork.from_tables(tables, parents), or learn a tree with "
                "bb.BeliefNetwork.tan(data, target).",
                name="BeliefNetwork",
                value=None,
            )
        return super().__new__(cls)

    def __getnewargs__(self) -> tuple[tuple[Variable, ...]]:
        return (self.variables,)  # for copies and pickles

    @classmethod
    def count(
        cls,
        data: Any,
        parents: Mapping[str, Sequence[str]],
        *,
        how: How = "mean",
        alpha: float = 1.0,
        seed: int = 0,
        features: Features = "auto",
        bins: int = NODE_BINS,
        weights: Any = None,
        missing: Missing = "skip",
        threads: int | None = None,
        **reading: Any,
    ) -> BeliefNetwork:
        """Counts the tables of a given structure. ``parents`` maps columns to the columns they depend on.

        ``data`` is read as by ``bb.count``. Strings, booleans and columns of few whole numbers, such as 0 and 1, are
        used as they are. Other numbers are cut into ``bins`` of about equal size, settled by the first batch, unless
        ``features`` declares them as "categorical", "bernoulli", ``bb.Histogram(bins=...)`` or
        ``bb.Histogram(start=..., width=...)``. A row counts for a node if it has a value of the node and of all its
        parents. ``how``, ``alpha`` and ``seed`` are those of ``bb.estimate``.

        >>> import banbury as bb
        >>> rooms = {"door": ["open", "open", "shut", "shut"], "celsius": [12, 14, 21, 22]}
        >>> network = bb.BeliefNetwork.count(rooms, {"celsius": ["door"]}, bins=2)
        >>> round(network.query("door", {"celsius": 20})["shut"], 3)
        0.75
        """
        structure = complete_parents(parents)
        order = in_topological_order(structure)
        choice = choice_of(how, alpha, seed)
        bins = check_bins(bins, with_classes=False)
        source = read(data, **reading)
        labels = Labels.without_target(source.weights if weights is None else weights, n_threads(threads))
        first: list[Batch] = []

        def begin(batch: Batch, facts: ColumnFacts) -> Callable[[Batch], NetworkCounts]:
            first[:] = [batch]
            declared = _only(features, order)
            schema = infer(batch.only(order), (), None, declared, missing, more_to_come=True, trees="none", facts=facts)
            schema = with_few_values(schema, batch, missing, facts)
            for name, why in schema.left_out.items():
                raise errors.BadSetting(
                    f"column {name!r} is named in parents= but cannot be counted: {why}. Declare it in features=, or take it "
                    "out.",
                    name="parents",
                    value=name,
                )
            weights = labels.weights_of(batch)
            nodes = {feature.name: _node(batch, feature, bins, weights) for feature in schema.features}
            variables = [nodes[name] for name in order]
            return lambda batch: NetworkCounts.count(batch, variables, indexed, labels)

        indexed = tuple(tuple(order.index(parent) for parent in structure[name]) for name in order)
        sums: NetworkCounts = count_batches(source, labels, begin)
        columns = tuple(n for n in first[0].names if n not in labels.roles())
        named = first[0].named
        return cls(sums.variables, indexed, choice, sums, (), None, columns, named, {}, threads, reading=source.reading)

    @classmethod
    def tan(
        cls,
        data: Any,
        target: Any,
        *,
        how: How = "mean",
        alpha: float = 1.0,
        seed: int = 0,
        level: float | None = 0.05,
        root: str | None = None,
        features: Features = "auto",
        bins: Bins = "mdl",
        weights: Any = None,
        missing: Missing = "skip",
        threads: int | None = None,
        **reading: Any,
    ) -> BeliefNetwork:
        """Learns a tree-augmented naive Bayes network: each column depends on the class and on at most one other
        column.

        The tree is the Chow–Liu tree, which maximises the sum of I(A; B | class) over its edges. Only edges that are
        significant at the ``level`` are kept, as in ``bb.diagnose``, so that columns that are independent given the
        class stay as in naive Bayes; ``level=None`` keeps all edges. Edges lead away from ``root``, or from the first
        column. All pairs are counted in one pass.

        Numbers are cut into bins, settled by the first batch: ``bins="mdl"`` cuts where the class frequencies change,
        by the minimum description length principle (Fayyad and Irani, 1993), and into ten bins of about equal size if
        no cut is worth it. A number cuts all columns into that many bins of about equal size. ``features`` can override
        this by column, as in ``count``.

        >>> import banbury as bb
        >>> rooms = {"warm": [True, True, False, False] * 40, "celsius": [25.0, 24.0, 15.0, 16.0] * 40,
        ...          "door": ["a", "a", "a", "a", "b"] * 32, "full": ["yes", "yes", "yes", "no", "no", "no", "no", "yes"] * 20}
        >>> bb.BeliefNetwork.tan(rooms, target="full").edges
        [('full', 'warm'), ('full', 'celsius'), ('warm', 'celsius'), ('full', 'door')]
        """
        choice = choice_of(how, alpha, seed)
        tree = tree_of_columns(level=level, root=root, bins=bins, columns=features)
        settings = {"weights": weights, "missing": missing, "threads": threads, **reading}
        return cls.from_model(model_under(count(data, target, features=tree, **settings), choice, None))

    @classmethod
    def from_model(cls, model: Model) -> BeliefNetwork:
        """Returns the network of a model with a ``bb.ColumnTree``. It answers questions about other columns than the
        class.
        """
        drawn = _tree_of(model)
        if drawn is None:
            raise errors.bad_setting(
                "the model", "a model without a tree", "a model counted with features=bb.ColumnTree()"
            )
        schema = model.schema
        name = schema.target or "class"
        while name in schema.columns:
            name += "_"
        target = Variable(name, model.classes, kind=kind_of_values(model.classes))
        left_out = {**schema.left_out, **{v.name: "no value" for v in drawn.variables if v.size == 0}}
        for feature in schema.features:
            if set(feature.inputs).isdisjoint(variable.name for variable in drawn.variables):
                what = feature.why if feature.holds_lists else in_words(feature.family)
                what = "texts" if feature.reads_text else what
                left_out[feature.name] = f"{what}, which have no table"
        sums = NetworkCounts.of_tree(drawn, target, model.tally.rows)
        rest = name, schema.columns, schema.named, left_out, model.threads
        return cls(sums.variables, sums.parents, model.choice, sums, (), *rest, reading=schema.reading)

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[str, Any],
        parents: Mapping[str, Sequence[str]] | None = None,
        *,
        values: Mapping[str, Sequence[Key]] | None = None,
    ) -> BeliefNetwork:
        """Returns a network with given probability tables.

        The table of a node without parents maps each value to a probability. The table of any other node maps the value
        of its parent, or a tuple of the values of its parents, to such a mapping. With ``values``, which lists the
        values of each node, tables can be arrays (values × values of each parent).

        >>> import banbury as bb
        >>> network = bb.BeliefNetwork.from_tables(
        ...     {"rain": {True: 0.2, False: 0.8}, "wet": {True: {True: 0.9, False: 0.1}, False: {True: 0.1, False: 0.9}}},
        ...     parents={"wet": ["rain"]})
        >>> round(network.query("rain", {"wet": True})[True], 4)
        0.6923
        """
        if not isinstance(tables, Mapping) or not tables:
            raise errors.bad_setting("tables", tables, "a mapping from each node to its table")
        for name in tables:
            errors.require(isinstance(name, str), "the name of a node", name, "a text")
        structure = dict[str, tuple[str, ...]].fromkeys(tables, ()) | (complete_parents(parents) if parents else {})
        for name in structure:
            if name not in tables:
                raise errors.unknown_column(name, list(tables))
        order = in_topological_order(structure)
        node_values = {name: values_of_node(name, tables[name], len(structure[name]), values) for name in order}
        variables = tuple(Variable(name, node_values[name], kind=kind_of_values(node_values[name])) for name in order)
        indexed = tuple(tuple(order.index(parent) for parent in structure[name]) for name in order)
        above = [[variables[p] for p in parent_numbers] for parent_numbers in indexed]
        node_tables = tuple(
            table_of_node(v, parent_numbers, tables[v.name]) for v, parent_numbers in zip(variables, above, strict=True)
        )
        return cls(variables, indexed, Choice("mle"), None, node_tables, columns=tuple(tables))

    # The algebra

    def count_more(self, data: Any, *, weights: Any = None, **reading: Any) -> BeliefNetwork:
        """Counts more rows with this network's structure and bins, and returns their network: ``network +
        network.count_more(rows)`` adds them.
        """
        sums = self._sums("no more rows can be counted")
        target = None if self.target is None else self._node(self.target)

        def count(batch: Batch) -> NetworkCounts:
            return NetworkCounts.count(self._align(batch, every=True), self.variables, sums.parents, labels, target)

        source = self._read(data, reading)
        labels = Labels.without_target(source.weights if weights is None else weights, n_threads(self.threads))
        return self._with(count_batches(source, labels, lambda batch, facts: count))

    def __add__(self, other: BeliefNetwork) -> BeliefNetwork:
        """Both data sets together."""
        if not isinstance(other, BeliefNetwork):
            raise errors.not_a_tally(other, "add")
        return self._with(self._sums("it cannot be added to") + other._sums("it cannot be added"))

    def __radd__(self, other: object) -> BeliefNetwork:
        return self if other == 0 else NotImplemented  # so that sum(networks) works

    def __sub__(self, other: BeliefNetwork) -> BeliefNetwork:
        """This data set without the other, which must be part of it; raises, and changes nothing, where it shows not to be."""
        if not isinstance(other, BeliefNetwork):
            raise errors.not_a_tally(other, "subtract")
        return self._with(self._sums("nothing can be subtracted") - other._sums("it cannot be subtracted"))

    def __mul__(self, factor: float) -> BeliefNetwork:
        """Every row so many times; a factor below one lets the past fade."""
        if isinstance(factor, bool) or not isinstance(factor, (int, float, np.integer, np.floating)):
            return NotImplemented
        check_positive("the factor of a network", float(factor), zero=True)
        if float(factor) * self.n_rows >= MOST_ROWS or factor >= MOST_ROWS:
            raise errors.bad_setting("the factor of a network", factor, "a factor that leaves fewer than 2**63 rows")
        return self._with(self._sums("it cannot be scaled") * float(factor))

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same sums, or were given the same tables."""
        if not isinstance(other, BeliefNetwork):
            return NotImplemented
        if self.sums is not None and other.sums is not None:
            return self.sums.same(other.sums)
        same = self.sums is other.sums and self.variables == other.variables and self._parents == other._parents
        return same and all(np.array_equal(a, b) for a, b in zip(self._given, other._given, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def estimate(self, how: How = "mean", alpha: float = 1.0, seed: int = 0) -> BeliefNetwork:
        """Returns the same counts with tables estimated in another way, without counting again."""
        self._sums("they stay as they are")
        return replace(self, choice=choice_of(how, alpha, seed))

    def _sums(self, what: str) -> NetworkCounts:
        if self.sums is None:
            raise errors.BadSetting(
                f"this network's tables were given rather than counted, so {what}. Count a network with "
                "bb.BeliefNetwork.count(data, parents).",
                name="network",
                value=what,
            )
        return self.sums

    def _with(self, sums: NetworkCounts) -> BeliefNetwork:
        return replace(self, variables=sums.variables, sums=sums)

    # Looking

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """The parents of each node."""
        numbered = zip(self.nodes, self._parents, strict=True)
        return {name: tuple(self.nodes[p] for p in parent_numbers) for name, parent_numbers in numbered}

    @property
    def edges(self) -> list[tuple[str, str]]:
        """The edges from parent to child, child by child."""
        return [(parent, name) for name, above in self.parents.items() for parent in above]

    @cached_property
    def values(self) -> dict[str, Keys]:
        """The values of each node, in order; for numbers, the bins."""
        return {variable.name: variable.values for variable in self.variables}

    @property
    def n_rows(self) -> float:
        """The number of rows counted, or their total weight if weights are fractional."""
        rows = self._sums("it has no rows").rows
        return rows_of(rows).tolist()[0]  # type: ignore[no-any-return]

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: for each node, one less than its number of values for every combination of its
        parents' values.
        """
        sizes = [variable.size for variable in self.variables]
        return sum((sizes[v] - 1) * prod(sizes[p] for p in above) for v, above in enumerate(self._parents))

    @property
    def bic(self) -> float:
        """The Bayesian information criterion of the counted rows, −2 log L + k log n, at maximum likelihood. Lower is
        better.
        """
        sums = self._sums("it has no rows")
        log_likelihood = 0.0
        for cells in (rows.value for rows in sums.cells):
            within = cells.sum(axis=0, keepdims=True)
            some = cells > 0
            parts = np.where(some, cells, 1.0) / np.where(some, np.broadcast_to(within, cells.shape), 1.0)
            log_likelihood += float((cells * np.log(parts)).sum())
        return -2.0 * log_likelihood + self.n_parameters * float(np.log(max(self.n_rows, 1.0)))

    @cached_property
    def information(self) -> dict[tuple[str, str], float]:
        """I(parent; node | the node's other parents) of each edge in the counted rows, in bits.

        >>> import banbury as bb
        >>> network = bb.BeliefNetwork.count({"a": [True, False] * 4, "b": [True, False] * 4}, {"b": ["a"]})
        >>> network.information
        {('a', 'b'): 1.0}
        """
        bits = {}
        for v, rows in enumerate(self._sums("it has no rows").cells):
            cells = shares(rows.value)
            for axis, parent in enumerate(self._parents[v], 1):
                ways = (cells, cells.sum(axis=0), cells.sum(axis=axis), cells.sum(axis=(0, axis)))
                all_, above, without, without_both = (entropy(np.asarray(way)) for way in ways)
                bits[self.nodes[parent], self.nodes[v]] = max(above + without - all_ - without_both, 0.0)
        return bits

    @cached_property
    def tables(self) -> dict[str, Real]:
        """P(value | values of the parents) of each node (values × values of each parent)."""
        return dict(zip(self.nodes, self._scorer.tables, strict=True))

    @cached_property
    def _scorer(self) -> Scorer:
        sizes = tuple(variable.size for variable in self.variables)
        if self.sums is None:
            return Scorer(sizes, self._parents, self._given, (None,) * len(sizes))
        rng = np.random.default_rng(self.choice.seed) if self.choice.how == "gibbs" else UNUSED
        tables = []
        unseen = list[Real | None]()
        for variable, rows in zip(self.variables, self.sums.cells, strict=True):
            if variable.size == 0:
                raise errors.EmptyData(
                    f"no counted row has a value of {variable.name!r}, so it has no table. Count rows with a value, or "
                    "leave it out."
                )
            of_target = variable.name == self.target  # which has the frequencies, as in naive Bayes
            alpha = variable.family.pseudo_counts(variable.values, self.choice.alpha)
            table, new = conditional(rows.value, alpha * (not of_target), "mle" if of_target else self.choice.how, rng)
            tables.append(table)
            unseen.append(None if of_target else new)
        return Scorer(sizes, self._parents, tuple(tables), tuple(unseen))

    # Asking

    def query(self, of: str | Sequence[str], given: Mapping[str, Any] | None = None) -> dict[Any, float]:
        """Returns P(of | given): the probability of each value of a node, or of each tuple of values of several nodes.

        ``given`` is the evidence, a mapping from node to a value, a list or set of possible values, or soft evidence: a
        mapping (or pandas Series) from every value to the likelihood of the observation under it. None and NaN mean no
        evidence. Evidence of probability zero raises an error.

        >>> import banbury as bb
        >>> network = bb.BeliefNetwork.from_tables({"die": {1: 0.5, 2: 0.25, 3: 0.25}})
        >>> network.query("die", {"die": [2, 3]})
        {1: 0.0, 2: 0.5, 3: 0.5}
        >>> {value: round(p, 2) for value, p in network.query("die", {"die": {1: 0.1, 2: 0.4, 3: 0.4}}).items()}
        {1: 0.2, 2: 0.4, 3: 0.4}
        """
        errors.require(isinstance(of, (str, Sequence)), "of", of, "a node, or several different nodes")
        names = (of,) if isinstance(of, str) else tuple(of)
        keep = tuple(self._node(name) for name in names)
        errors.require(keep and len(set(keep)) == len(keep), "of", of, "a node, or several different nodes")
        joint = log_query(self._scorer, keep, self._evidence(given))
        self._check_possible(np.isfinite(joint).any(), given)
        weights = np.exp(joint - joint.max())
        probabilities = (weights / weights.sum()).reshape(-1)
        values = [self.variables[k].values for k in keep]
        keys: Iterable[Any] = values[0] if isinstance(of, str) else product(*values)
        return dict(zip(keys, probabilities.tolist(), strict=True))

    def posteriors(self, given: Mapping[str, Any] | None = None) -> dict[str, dict[Any, float]]:
        """Returns P(value | given) of every node at once. ``given`` is as in ``query``.

        >>> import banbury as bb
        >>> shares = {"a": {0: 0.5, 1: 0.5}, "b": {0: {0: 1.0, 1: 0.0}, 1: {0: 0.5, 1: 0.5}}}
        >>> coins = bb.BeliefNetwork.from_tables(shares, {"b": ["a"]})
        >>> coins.posteriors({"b": 1})
        {'a': {0: 0.0, 1: 1.0}, 'b': {0: 0.0, 1: 1.0}}
        """
        posteriors = {}
        for variable, weights in zip(self.variables, marginals(self._scorer, self._evidence(given)), strict=True):
            total = weights.sum()
            self._check_possible(total > 0, given)
            posteriors[variable.name] = dict(zip(variable.values, (weights / total).tolist(), strict=True))
        return posteriors

    def probability(self, event: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> float:
        """Returns P(event | given). Both are evidence as in ``query``.

        >>> import banbury as bb
        >>> die = bb.BeliefNetwork.from_tables({"die": {1: 0.5, 2: 0.25, 3: 0.25}})
        >>> die.probability({"die": [2, 3]}), die.probability({"die": 2}, {"die": [2, 3]})
        (0.5, 0.5)
        """
        return float(np.exp(self.log_probability(event, given)))

    def log_probability(self, event: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> float:
        """Returns log P(event | given); −∞ if the event is impossible."""
        evidence = self._evidence(given)
        both = self._evidence(event)
        for node, likelihood in evidence.items():
            both[node] = both.get(node, 1.0) * likelihood
        log_evidence = float(log_query(self._scorer, (), evidence))
        self._check_possible(np.isfinite(log_evidence), given)
        return float(log_query(self._scorer, (), both)) - log_evidence

    def _check_possible(self, possible: Any, evidence: Mapping[str, Any] | None) -> None:
        """Raises where what is given has probability zero."""
        if not possible:
            shown = [f"{name} = {value!r}" for name, value in self._read_evidence(evidence).items()]
            raise errors.impossible_given(shown, self.choice.how not in ("mle", "map"))

    def _node(self, name: Any) -> int:
        if name not in self.nodes:
            if isinstance(name, str) and name in self.left_out:
                raise errors.UnknownColumn(
                    f"column {name!r} is not a node of this network: it was left out ({self.left_out[name]}). Name its family in "
                    "features= to include it.",
                    column=name,
                )
            raise errors.unknown_column(name, self.nodes)
        return self.nodes.index(name)

    def _evidence(self, observed: Mapping[str, Any] | None) -> dict[int, Real]:
        """How likely what was observed is under each value, by node."""
        evidence = {self._node(name): value for name, value in self._read_evidence(observed).items()}
        return {v: self.variables[v].likelihood(value) for v, value in evidence.items()}

    def _read_evidence(self, evidence: Any) -> dict[str, Any]:
        """What is given of nodes, without those of which nothing is; of a pandas Series those that are nodes.

        What else a Series has was left out, or is named in a warning as ``explain`` does.
        """
        if hasattr(evidence, "to_dict") and hasattr(evidence, "index"):
            row: dict[Any, Any] = evidence.to_dict()
            evidence = {name: observation for name, observation in row.items() if name in self.nodes}
            if row and not evidence:
                raise errors.unknown_column(next((n for n in self.nodes if n != self.target), self.nodes[0]), list(row))
            tell_other_columns([], [name for name in row if name not in {*self.columns, *evidence}], set())
        if evidence is not None and not isinstance(evidence, Mapping):
            raise errors.bad_setting("given", evidence, "a mapping from nodes to known values, or a row")
        plain = {name: None if missing(observation) else observation for name, observation in (evidence or {}).items()}
        values = {name: self.variables[self._node(name)].index for name in plain}
        return {
            name: observation for name, observation in plain.items() if observation is not None or None in values[name]
        }

    # Rows

    def log_joint(self, rows: Any, of: str | None = None, **reading: Any) -> Real:
        """Returns log P(value, observed values) (rows × values of ``of``). Missing values are summed out exactly."""
        return self._score(rows, (self._target_node(of),), reading)

    def log_likelihood(self, rows: Any, **reading: Any) -> Real:
        """Returns log P(observed values) of each row. The probability of a number is that of its bin.

        >>> import banbury as bb
        >>> network = bb.BeliefNetwork.from_tables({"coin": {"heads": 0.5, "tails": 0.5}})
        >>> network.log_likelihood({"coin": ["heads", None]}).round(3).tolist()
        [-0.693, 0.0]
        """
        return self._score(rows, (), reading)

    def _normalise(self, joint: Real, node: int) -> Real:
        """log P(value | what the row shows), from log P(value, what the row shows)."""
        highest = joint.max(axis=1, keepdims=True, initial=-np.inf)
        impossible = ~np.isfinite(highest[:, 0])
        if impossible.any():
            rows = many(int(impossible.sum()), "row")
            errors.warn(
                errors.BanburyWarning(
                    f"{rows} of probability zero under how={self.choice.how!r}; the answer without evidence "
                    "was returned. Use how='mean' to smooth the tables."
                )
            )
            joint[impossible] = log_query(self._scorer, (node,), {})
            highest = joint.max(axis=1, keepdims=True)
        joint -= highest
        return np.asarray(joint - np.log(np.exp(joint).sum(axis=1, keepdims=True)))

    def posterior(self, rows: Any, of: str | None = None, **reading: Any) -> Real:
        """Returns P(value | observed values) (rows × values of ``of``, which is the target unless given).

        Missing cells and columns are summed out exactly, and a warning names columns that are missing or were never
        counted. A value that was never counted is treated like a new value in naive Bayes when it depends on its
        parents, and otherwise as missing. A row of probability zero gets the posterior without evidence, and a warning.

        >>> import banbury as bb
        >>> days = bb.datasets.play_tennis()
        >>> network = bb.BeliefNetwork.tan({name: days[name] for name in ("outlook", "wind", "play")}, target="play")
        >>> network.posterior({"outlook": ["sunny", None], "wind": ["strong", "weak"]}).round(3).tolist()
        [[0.636, 0.364], [0.272, 0.728]]
        """
        return np.exp(self._normalise(self.log_joint(rows, of, **reading), self._target_node(of)))

    def predict(self, rows: Any, of: str | None = None, **reading: Any) -> NDArray[Any]:
        """Returns the most probable value of ``of`` in each row; the first one in a tie."""
        values = self.variables[self._target_node(of)].values
        best = self.posterior(rows, of, **reading).argmax(axis=1)
        same = len({type(value) for value in values}) == 1
        return np.asarray(np.array(values, dtype=None if same else object)[best])

    def _target_node(self, of: str | None) -> int:
        if of is None and self.target is None:
            raise errors.BadSetting(
                "name the node to query with of=..., because this network has no target.",
                name="of",
                value=None,
            )
        return self._node(self.target if of is None else of)

    def _score(self, rows: Any, keep: tuple[int, ...], reading: Mapping[str, Any]) -> Real:
        nothing = np.empty((0, *(self._scorer.sizes[k] for k in keep)))
        return np.concatenate([nothing, *(joint for _, joint in self._each(rows, keep, reading))])

    def _each(self, rows: Any, keep: tuple[int, ...], reading: Mapping[str, Any]) -> Iterator[tuple[Batch, Real]]:
        """Batches of rows, and log P(keep, what these rows show); where a column widens that is no node, they are read again."""
        warned = set[str]()  # what was said of their columns
        source = rows if isinstance(rows, Source) else self._read(rows, reading)
        for batch in batches(source, "scoring", Beside(self.threads)):
            yield batch, self._scorer.log_joint(self._place(self._align(batch), keep, warned), keep)

    def _place(self, batch: Batch, keep: tuple[int, ...], warned: set[str]) -> list[Places]:
        """The number of each row's value of each node; of those in ``keep`` none."""
        threads = n_threads(self.threads)
        present = {*batch.names}
        not_missed = present.union([self.target], (self.nodes[k] for k in keep))
        absent = [name for name in self.nodes if name not in not_missed]
        tell_other_columns(absent, sorted(present.difference(self.columns, self.nodes)), warned)
        nothing = np.full(batch.n_rows, MISSING, dtype=np.int32)
        shown = [v not in keep and variable.name in present for v, variable in enumerate(self.variables)]
        columns = zip(self.variables, shown, strict=True)
        return [variable.places(batch, threads) if there else nothing for variable, there in columns]

    def _read(self, rows: Any, reading: Mapping[str, Any]) -> Source:
        kinds: dict[str, Any] = {v.name: "number" for v in self.variables if v.cuts is not None}
        kinds |= {v.name: "string" for v in self.variables if v.cuts is None and v.kind == "string"}
        return read(rows, kinds=kinds, **{"remembered": self.reading, **reading})

    def _align(self, batch: Batch, every: bool = False) -> Batch:
        """The batch with this network's names where it has positions only; raises where it has none of the columns."""
        numbered = self.target in batch.names and set(batch.names).issuperset(self.columns)  # and the target
        if not batch.named and self.columns and batch.names != self.columns and not numbered:
            if len(batch.names) != len(self.columns):
                raise errors.wrong_width(len(batch.names), len(self.columns), "BeliefNetwork", self.columns)
            batch = batch.rename(self.columns)
        required = self.nodes if every else ()
        for name in required:
            if name not in batch.names:
                raise errors.unknown_column(name, batch.names, batch.source)
        features = [name for name in self.nodes if name != self.target]
        if features and not any(name in batch.names for name in self.nodes):
            raise errors.unknown_column(features[0], batch.names, batch.source)
        return batch

    def sample(self, n: int, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Draws ``n`` rows from the network, as a mapping of columns. Numbers are drawn uniformly within their bins.

        >>> import banbury as bb
        >>> network = bb.BeliefNetwork.from_tables({"coin": {"heads": 0.5, "tails": 0.5}})
        >>> network.sample(4, seed=1)["coin"].tolist()
        ['tails', 'tails', 'heads', 'tails']
        """
        check_drawn(n, seed)
        rng = np.random.default_rng(seed)
        scorer = self._scorer
        places: dict[str, NDArray[np.int64]] = {}
        for name in in_topological_order(self.parents):
            v = self.nodes.index(name)
            cells = np.zeros(n, dtype=np.int64)
            for parent in self._parents[v]:
                cells = cells * scorer.sizes[parent] + places[self.nodes[parent]]
            below = np.cumsum(scorer.tables[v].reshape(scorer.sizes[v], -1), axis=0)[:-1]
            places[name] = (below[:, cells] <= rng.random(n)).sum(axis=0)
        return {variable.name: variable.draw(places[variable.name], rng) for variable in self.variables}

    def __repr__(self) -> str:
        rows = "tables given" if self.sums is None else many(self.n_rows, "row")
        lines = [f"BeliefNetwork: {many(len(self.nodes), 'node')}, {many(len(self.edges), 'edge')}, {rows}"]
        for variable, above in list(zip(self.variables, self.parents.values(), strict=True))[:SHOWN]:
            depends = f" given {errors.listed(above)}" if above else ""
            lines.append(f"  {variable.name}{depends}: {errors.listed(variable.values, 6)}")
        if len(self.nodes) > SHOWN:
            lines.append(f"  … and {len(self.nodes) - SHOWN:,} more")
        if self.left_out:
            left_out = errors.listed((f"{name} ({why})" for name, why in self.left_out.items()), SHOWN)
            lines.append(f"  left out: {left_out}")
        return "\n".join(lines)

    def _notebook_tables(self) -> list[NotebookTable]:
        parents = [", ".join(map(str, above)) for above in self.parents.values()]
        values = [errors.listed(variable.values, 6) for variable in self.variables]
        nodes = [variable.name for variable in self.variables]
        return [NotebookTable("", {"node": nodes, "parents": parents, "values": values})]


def _only(features: Features, names: Sequence[str]) -> Features:
    if not isinstance(features, Mapping):
        return features
    declared = dict(expand_stars(features, names))
    for block in declared:
        if isinstance(block, tuple):
            raise no_block(" + ".join(map(str, block)))
    return {name: family for name, family in declared.items() if name in names}


def has_tree(model: Model) -> bool:
    """Whether ``BeliefNetwork.from_model`` accepts the model."""
    return _tree_of(model) is not None


def _tree_of(model: Model) -> DrawnTree | None:
    """The one tree that a model has."""
    trees = find_trees(model.parameters)
    return trees[0] if len(trees) == 1 else None


def _node(batch: Batch, feature: Feature, bins: Bins, weights: Real | None) -> Variable:
    """The node of a column; raises where it has no table."""
    if feature.columns:
        raise no_block(feature.name)
    if not can_be_node(feature):
        family = "texts" if feature.reads_text else feature.family.name
        raise errors.BadSetting(
            f"column {feature.name!r} cannot be a node as {family}, because a node has a table of values. Declare it "
            "'categorical', 'bernoulli' or bb.Histogram(bins=...) in features=, or leave it out with "
            f"features={{{feature.name!r}: None}}.",
            name="features",
            value=feature.name,
        )
    return as_node(batch, feature, bins, weights)
