"""BeliefNetwork: nodes with their parents and conditional probability tables; it answers questions given evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from banbury.families.column_tree import DependencyTree, check_bins, find_trees, tree_of_columns
from banbury.families.dirichlet import conditional
from banbury.families.family import Choice, Feature, How, check_positive, in_words
from banbury.families.histogram import NODE_BINS
from banbury.families.information import entropy, shares
from banbury.families.nodes import MISSING, Bins, ValueNumbers, Variable, as_node, can_be_node, kind_of_values, no_block
from banbury.model.naive_bayes import (
    UNUSED_GENERATOR,
    Model,
    check_sample_size,
    choice_of,
    model_under,
    warn_about_other_columns,
)
from banbury.model.networks.counting import NetworkCounts, count_batches
from banbury.model.networks.scoring import Scorer, log_query, marginals
from banbury.model.networks.structure import complete_parents, in_topological_order
from banbury.model.networks.tables import table_of_node, values_of_node
from banbury.notebooks import Displayed, NotebookTable
from banbury.reading import Batch, ParserWork, Source, n_threads, read
from banbury.reading.columns import is_missing
from banbury.sums import MOST_ROWS, Key, Keys, readable_counts
from banbury.tally.schema import ColumnFacts, FamilyOption, Missing, expand_stars, infer, with_few_values
from banbury.tally.table import Labels, read_batches
from banbury.tally.tally import count

SHOWN = 40  # nodes that are printed, and columns that were left out


@dataclass(frozen=True, eq=False, repr=False)
class BeliefNetwork(Displayed):
    """A Bayesian belief network: each node has a conditional probability table P(value | values of its parents). It is
    immutable.

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

    _variables: tuple[Variable, ...]  # the nodes with their values
    _parents: tuple[tuple[int, ...], ...]  # the numbers of each node's parents
    choice: Choice  # the estimator and the pseudo-count
    _counts: NetworkCounts | None  # None if the user gave the tables
    _given_tables: tuple[Real, ...] = ()  # the user's table of each node, if they were given
    target: str | None = None
    columns: tuple[str, ...] = ()  # the columns of the training data, in order, without the target
    _named: bool = True  # whether these columns had names
    left_out: Mapping[str, str] = field(default_factory=dict)  # the reason why a column is no node, by column
    threads: int | None = None
    _reading: Mapping[str, Any] = field(default_factory=dict)  # the options with which the training data were read

    # Constructors

    def __new__(cls, _variables: Any = None, *fields: Any, **named_fields: Any) -> BeliefNetwork:
        """Creates a network from its fields, of which ``_variables`` is the first, for the class methods below; raises
        an error if users call the class itself.
        """
        if not isinstance(_variables, tuple) or not all(isinstance(variable, Variable) for variable in _variables):
            raise errors.BadSetting(
                "bb.BeliefNetwork has no constructor. Count the tables of a structure with bb.BeliefNetwork.count(data, "
                "parents), give them with bb.BeliefNetwork.from_tables(tables, parents), or learn a tree with "
                "bb.BeliefNetwork.tan(data, target).",
                name="BeliefNetwork",
                value=None,
            )
        return super().__new__(cls)

    def __getnewargs__(self) -> tuple[tuple[Variable, ...]]:
        """Returns what ``__new__`` needs for copies and pickles."""
        return (self._variables,)

    @classmethod
    def count(
        cls,
        data: Any,
        parents: Mapping[str, Sequence[str]],
        *,
        how: How = "mean",
        alpha: float = 1.0,
        seed: int = 0,
        features: FamilyOption = "auto",
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
        parents. ``how``, ``alpha`` and ``seed`` are those of ``bb.estimate``; ``weights``, ``missing``, ``threads`` and
        the options for ``reading`` files those of ``bb.count``.

        >>> import banbury as bb
        >>> rooms = {"door": ["open", "open", "shut", "shut"], "celsius": [12, 14, 21, 22]}
        >>> network = bb.BeliefNetwork.count(rooms, {"celsius": ["door"]}, bins=2)
        >>> round(network.query("door", {"celsius": 20})["shut"], 3)
        0.75
        """
        structure = complete_parents(parents)  # the names of each node's parents
        order = in_topological_order(structure)  # the names of the nodes, parents before their children
        choice = choice_of(how, alpha, seed)
        bins = check_bins(bins, with_classes=False)
        source = read(data, **reading)
        labels = Labels.without_target(source.weights if weights is None else weights, n_threads(threads))
        first_batch: list[Batch] = []  # set by ``settle_nodes``, again if all rows are read again

        def settle_nodes(batch: Batch, facts: ColumnFacts) -> Callable[[Batch], NetworkCounts]:
            """Settles the nodes by the first batch, and returns the function that counts a batch. ``facts`` is what is
            known of its columns.
            """
            first_batch[:] = [batch]
            declared = _families_of_columns(features, order)
            schema = infer(batch.only(order), (), None, declared, missing, more_to_come=True, trees="none", facts=facts)
            schema = with_few_values(schema, batch, missing, facts)
            for name, reason in schema.left_out.items():
                raise errors.BadSetting(
                    f"column {name!r} is named in parents= but cannot be counted: {reason}. Declare it in features=, or take it "
                    "out.",
                    name="parents",
                    value=name,
                )
            weights = labels.weights_of(batch)
            nodes = {feature.name: _make_node(batch, feature, bins, weights) for feature in schema.features}
            variables = [nodes[name] for name in order]
            return lambda batch: NetworkCounts.count(batch, variables, parent_numbers, labels)

        parent_numbers = _number_parents(structure, order)
        counts: NetworkCounts = count_batches(source, labels, settle_nodes)
        return cls(
            counts.variables,
            parent_numbers,
            choice,
            counts,
            columns=tuple(name for name in first_batch[0].names if name not in labels.roles()),
            _named=first_batch[0].named,
            threads=threads,
            _reading=source.reading,
        )

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
        features: FamilyOption = "auto",
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
        this by column, as in ``count``. ``how``, ``alpha`` and ``seed`` are those of ``bb.estimate``, all others those
        of ``bb.count``.

        >>> import banbury as bb
        >>> rooms = {"warm": [True, True, False, False] * 40, "celsius": [25.0, 24.0, 15.0, 16.0] * 40,
        ...          "door": ["a", "a", "a", "a", "b"] * 32, "full": ["yes", "yes", "yes", "no", "no", "no", "no", "yes"] * 20}
        >>> bb.BeliefNetwork.tan(rooms, target="full").edges
        [('full', 'warm'), ('full', 'celsius'), ('warm', 'celsius'), ('full', 'door')]
        """
        choice = choice_of(how, alpha, seed)
        tree = tree_of_columns(level=level, root=root, bins=bins, columns=features)
        tally = count(data, target, features=tree, weights=weights, missing=missing, threads=threads, **reading)
        return cls.from_model(model_under(tally, choice, class_prior=None))

    @classmethod
    def from_model(cls, model: Model) -> BeliefNetwork:
        """Returns the network of a model with a ``bb.ColumnTree``. It answers questions about other columns than the
        class. The target is node 0; columns without a table are left out.
        """
        tree = _tree_of(model)  # of the model's columns
        if tree is None:
            raise errors.bad_setting(
                "the model", "a model without a tree", "a model counted with features=bb.ColumnTree()"
            )
        schema = model.schema
        target = schema.target or "class"
        while target in schema.columns:
            target += "_"
        left_out = {
            **schema.left_out,
            **{variable.name: "no value" for variable in tree.variables if variable.size == 0},
        }
        for feature in schema.features:
            if set(feature.inputs).isdisjoint(variable.name for variable in tree.variables):
                description = feature.why if feature.holds_lists else in_words(feature.family)
                description = "texts" if feature.reads_text else description
                left_out[feature.name] = f"{description}, which have no table"
        target_node = Variable(target, model.classes, kind=kind_of_values(model.classes))
        counts = NetworkCounts.of_tree(tree, target_node, model.tally.rows)
        return cls(
            counts.variables,
            counts.parents,
            model.choice,
            counts,
            target=target,
            columns=schema.columns,
            _named=schema.named,
            left_out=left_out,
            threads=model.threads,
            _reading=schema.reading,
        )

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
        values of each node, tables can be arrays (values × values of each parent). ``parents`` maps nodes to the names
        of their parents.

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
        # The names of each node's parents, none by default.
        structure = dict[str, tuple[str, ...]].fromkeys(tables, ()) | (complete_parents(parents) if parents else {})
        for name in structure:
            if name not in tables:
                raise errors.unknown_column(name, list(tables))
        order = in_topological_order(structure)  # the nodes, parents before their children
        nodes = dict[str, Variable]()  # by name
        for name in order:
            node_values = values_of_node(name, tables[name], len(structure[name]), values)
            nodes[name] = Variable(name, node_values, kind=kind_of_values(node_values))
        node_tables = tuple(
            table_of_node(nodes[name], [nodes[parent] for parent in structure[name]], tables[name]) for name in order
        )
        variables = tuple(nodes.values())
        parent_numbers = _number_parents(structure, order)
        return cls(
            variables, parent_numbers, Choice("mle"), _counts=None, _given_tables=node_tables, columns=tuple(tables)
        )

    # The algebra

    def count_more(self, data: Any, *, weights: Any = None, **reading: Any) -> BeliefNetwork:
        """Counts more rows with this network's structure and bins, and returns their network: ``network +
        network.count_more(rows)`` adds them. The arguments are those of ``bb.count``.
        """
        counts = self._require_counts("no more rows can be counted")
        target = None if self.target is None else self._node_number(self.target)  # the number of its node

        def count(batch: Batch) -> NetworkCounts:
            """Returns the counts of a batch, for this network's structure."""
            return NetworkCounts.count(
                self._align(batch, all_nodes=True), self._variables, counts.parents, labels, target
            )

        source = self._read(data, reading)
        # The weights of the rows, and the number of threads.
        labels = Labels.without_target(source.weights if weights is None else weights, n_threads(self.threads))
        return self._with_counts(count_batches(source, labels, lambda batch, facts: count))

    def __add__(self, other: BeliefNetwork) -> BeliefNetwork:
        """Returns the network of both data sets together."""
        if not isinstance(other, BeliefNetwork):
            raise errors.not_a_tally(other, "add")
        return self._with_counts(
            self._require_counts("it cannot be added to") + other._require_counts("it cannot be added")
        )

    def __radd__(self, other: object) -> BeliefNetwork:
        """Returns this network for ``0 + network``."""
        return self if other == 0 else NotImplemented  # so that sum(networks) works

    def __sub__(self, other: BeliefNetwork) -> BeliefNetwork:
        """Returns the network of this data set without the rows of the other; raises an error if it does not contain
        them.
        """
        if not isinstance(other, BeliefNetwork):
            raise errors.not_a_tally(other, "subtract")
        return self._with_counts(
            self._require_counts("nothing can be subtracted") - other._require_counts("it cannot be subtracted")
        )

    def __mul__(self, factor: float) -> BeliefNetwork:
        """Returns the network with the weight of every row multiplied by a factor; one below 1 lets old rows fade."""
        if isinstance(factor, bool) or not isinstance(factor, (int, float, np.integer, np.floating)):
            return NotImplemented
        check_positive("the factor of a network", float(factor), zero=True)
        if float(factor) * self.n_rows >= MOST_ROWS or factor >= MOST_ROWS:
            raise errors.bad_setting("the factor of a network", factor, "a factor that leaves fewer than 2**63 rows")
        return self._with_counts(self._require_counts("it cannot be scaled") * float(factor))

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same counts, or were given the same tables."""
        if not isinstance(other, BeliefNetwork):
            return NotImplemented
        if self._counts is not None and other._counts is not None:
            return self._counts.equals(other._counts)
        has_same_nodes = self._variables == other._variables and self._parents == other._parents
        has_same_origin = self._counts is other._counts  # None if the tables were given
        return (
            has_same_origin
            and has_same_nodes
            and all(
                np.array_equal(table, other_table)
                for table, other_table in zip(self._given_tables, other._given_tables, strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def estimate(self, how: How = "mean", alpha: float = 1.0, seed: int = 0) -> BeliefNetwork:
        """Returns the network with its tables estimated anew from the same counts."""
        self._require_counts("they stay as they are")
        return replace(self, choice=choice_of(how, alpha, seed))

    def _require_counts(self, reason: str) -> NetworkCounts:
        """Returns the counts. If the tables were given instead, raises an error whose ``reason`` says what cannot be
        done.
        """
        if self._counts is None:
            raise errors.BadSetting(
                f"this network's tables were given rather than counted, so {reason}. Count a network with "
                "bb.BeliefNetwork.count(data, parents).",
                name="network",
                value=reason,
            )
        return self._counts

    def _with_counts(self, counts: NetworkCounts) -> BeliefNetwork:
        """Returns the same network with other counts."""
        return replace(self, _variables=counts.variables, _counts=counts)

    # Structure and tables

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes; a node's number is its position here."""
        return tuple(variable.name for variable in self._variables)

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """The names of the parents of each node, by its name."""
        return {
            name: tuple(self.nodes[parent] for parent in parent_numbers)
            for name, parent_numbers in zip(self.nodes, self._parents, strict=True)
        }

    @property
    def edges(self) -> list[tuple[str, str]]:
        """The edges from parent to child, child by child."""
        return [(parent, child) for child, parents in self.parents.items() for parent in parents]

    @cached_property
    def values(self) -> dict[str, Keys]:
        """The values of each node by its name, in order; for numbers, the bins."""
        return {variable.name: variable.values for variable in self._variables}

    @property
    def n_rows(self) -> float:
        """The number of rows counted, or their total weight if weights are fractional."""
        rows = self._require_counts("it has no rows").rows
        return readable_counts(rows).tolist()[0]  # type: ignore[no-any-return]

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: for each node, one less than its number of values for every combination of its
        parents' values.
        """
        sizes = [variable.size for variable in self._variables]
        return sum(
            (size - 1) * prod(sizes[parent] for parent in parents)
            for size, parents in zip(sizes, self._parents, strict=True)
        )

    @property
    def bic(self) -> float:
        """The Bayesian information criterion of the counted rows, −2 log L + k log n, at maximum likelihood. Lower is
        better.
        """
        counts = self._require_counts("it has no rows")
        log_likelihood = 0.0
        for cells in counts.cell_counts:
            rows = cells.value  # values × values of each parent
            rows_by_parents = np.broadcast_to(rows.sum(axis=0), rows.shape)
            # P(value | values of the parents), 1 for cells without rows.
            probabilities = np.divide(rows, rows_by_parents, out=np.ones(rows.shape), where=rows > 0)
            log_likelihood += float((rows * np.log(probabilities)).sum())
        return -2.0 * log_likelihood + self.n_parameters * float(np.log(max(self.n_rows, 1.0)))

    @cached_property
    def information(self) -> dict[tuple[str, str], float]:
        """I(parent; node | the node's other parents) of each edge in the counted rows, in bits.

        >>> import banbury as bb
        >>> network = bb.BeliefNetwork.count({"a": [True, False] * 4, "b": [True, False] * 4}, {"b": ["a"]})
        >>> network.information
        {('a', 'b'): 1.0}
        """
        bits = {}  # by edge
        for node, cells in enumerate(self._require_counts("it has no rows").cell_counts):
            joint = shares(cells.value)  # of all rows: values × values of each parent
            for axis, parent in enumerate(self._parents[node], start=1):
                # The entropy (in bits) of the table without the axis of the node, of the parent, or of both.
                without_node, without_parent, without_either = (
                    entropy(np.asarray(joint.sum(axis=axes))) for axes in (0, axis, (0, axis))
                )
                edge_bits = without_node + without_parent - entropy(joint) - without_either
                bits[self.nodes[parent], self.nodes[node]] = max(edge_bits, 0.0)
        return bits

    @cached_property
    def tables(self) -> dict[str, Real]:
        """P(value | values of the parents) of each node (values × values of each parent)."""
        return dict(zip(self.nodes, self._scorer.tables, strict=True))

    @cached_property
    def _scorer(self) -> Scorer:
        """The estimated tables, and exact inference with them."""
        sizes = tuple(variable.size for variable in self._variables)
        if self._counts is None:
            return Scorer(sizes, self._parents, self._given_tables, (None,) * len(sizes))
        rng = np.random.default_rng(self.choice.seed) if self.choice.how == "gibbs" else UNUSED_GENERATOR
        tables = []  # by node: P(value | values of the parents)
        log_unseen = list[Real | None]()  # by node: the log-probability of a value that was never counted
        for variable, cells in zip(self._variables, self._counts.cell_counts, strict=True):
            if variable.size == 0:
                raise errors.EmptyData(
                    f"no counted row has a value of {variable.name!r}, so it has no table. Count rows with a value, or "
                    "leave it out."
                )
            is_target = variable.name == self.target  # its table has the class frequencies, as in naive Bayes
            alpha = variable.family.pseudo_counts(variable.values, self.choice.alpha)  # of each value
            table, log_unseen_value = conditional(cells.value, alpha, "mle" if is_target else self.choice.how, rng)
            tables.append(table)
            log_unseen.append(None if is_target else log_unseen_value)
        return Scorer(sizes, self._parents, tuple(tables), tuple(log_unseen))

    # Questions

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
        query = tuple(self._node_number(name) for name in names)  # the numbers of the queried nodes
        errors.require(query and len(set(query)) == len(query), "of", of, "a node, or several different nodes")
        # log P(values, evidence), with an axis for each queried node.
        log_joint = log_query(self._scorer, query, self._evidence(given))
        self._check_possible(np.isfinite(log_joint).any(), given)
        weights = np.exp(log_joint - log_joint.max())  # proportional to the probabilities
        probabilities = (weights / weights.sum()).reshape(-1)
        values = [self._variables[node].values for node in query]
        keys: Iterable[Any] = values[0] if isinstance(of, str) else product(*values)
        return dict(zip(keys, probabilities.tolist(), strict=True))

    def posteriors(self, given: Mapping[str, Any] | None = None) -> dict[str, dict[Any, float]]:
        """Returns P(value | given) of every node at once. ``given`` maps nodes to a value, to a list or set of possible
        values, or to the likelihood of the observation under each value.

        >>> import banbury as bb
        >>> shares = {"a": {0: 0.5, 1: 0.5}, "b": {0: {0: 1.0, 1: 0.0}, 1: {0: 0.5, 1: 0.5}}}
        >>> coins = bb.BeliefNetwork.from_tables(shares, {"b": ["a"]})
        >>> coins.posteriors({"b": 1})
        {'a': {0: 0.0, 1: 1.0}, 'b': {0: 0.0, 1: 1.0}}
        """
        posteriors = {}
        # ``weights`` are P(value, evidence) of one node, up to a constant.
        for variable, weights in zip(self._variables, marginals(self._scorer, self._evidence(given)), strict=True):
            total = weights.sum()
            self._check_possible(total > 0, given)
            posteriors[variable.name] = dict(zip(variable.values, (weights / total).tolist(), strict=True))
        return posteriors

    def probability(self, event: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> float:
        """Returns P(event | given). Both map nodes to a value, to a list or set of possible values, or to the likelihood
        of the observation under each value.

        >>> import banbury as bb
        >>> die = bb.BeliefNetwork.from_tables({"die": {1: 0.5, 2: 0.25, 3: 0.25}})
        >>> die.probability({"die": [2, 3]}), die.probability({"die": 2}, {"die": [2, 3]})
        (0.5, 0.5)
        """
        return float(np.exp(self.log_probability(event, given)))

    def log_probability(self, event: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> float:
        """Returns log P(event | given); −∞ if the event is impossible. Both map nodes to observations."""
        # For each observed node, by number: the likelihood of the observation under each value.
        evidence = self._evidence(given)
        joint_evidence = self._evidence(event)  # of the event and what is given
        for node, likelihood in evidence.items():
            joint_evidence[node] = joint_evidence.get(node, 1.0) * likelihood
        log_evidence = float(log_query(self._scorer, query=(), evidence=evidence))
        self._check_possible(np.isfinite(log_evidence), given)
        return float(log_query(self._scorer, query=(), evidence=joint_evidence)) - log_evidence

    def _check_possible(self, possible: Any, evidence: Mapping[str, Any] | None) -> None:
        """Raises an error that shows the evidence if it is not ``possible`` (a boolean)."""
        if not possible:
            shown = [f"{name} = {value!r}" for name, value in self._read_evidence(evidence).items()]
            raise errors.impossible_given(shown, self.choice.how not in ("mle", "map"))

    def _node_number(self, name: Any) -> int:
        """Returns the number of a node by its name; raises an error if there is none."""
        if name not in self.nodes:
            if isinstance(name, str) and name in self.left_out:
                raise errors.UnknownColumn(
                    f"column {name!r} is not a node of this network: it was left out ({self.left_out[name]}). Name its family in "
                    "features= to include it.",
                    column=name,
                )
            raise errors.unknown_column(name, self.nodes)
        return self.nodes.index(name)

    def _evidence(self, evidence: Mapping[str, Any] | None) -> dict[int, Real]:
        """Returns the user's evidence as likelihoods: for each observed node, by its number, an array of one number per
        value. ``evidence`` maps nodes to observations: a value, possible values, or a likelihood of each value.
        """
        observations = {
            self._node_number(name): observation for name, observation in self._read_evidence(evidence).items()
        }
        return {node: self._variables[node].likelihood(observation) for node, observation in observations.items()}

    def _read_evidence(self, evidence: Any) -> dict[str, Any]:
        """Returns the user's evidence as a mapping from nodes to observations, without missing ones. Raises an error if
        it is not a mapping or names an unknown node.

        A pandas Series may have other columns, which are ignored, with a warning if they were not in the training data.
        """
        if hasattr(evidence, "to_dict") and hasattr(evidence, "index"):
            row: dict[Any, Any] = evidence.to_dict()
            evidence = {name: observation for name, observation in row.items() if name in self.nodes}
            if row and not evidence:
                example = next((name for name in self.nodes if name != self.target), self.nodes[0])
                raise errors.unknown_column(example, list(row))
            warn_about_other_columns([], [name for name in row if name not in {*self.columns, *evidence}], set())
        if evidence is not None and not isinstance(evidence, Mapping):
            raise errors.bad_setting("given", evidence, "a mapping from nodes to known values, or a row")
        observations = {}
        for name, observation in (evidence or {}).items():
            variable = self._variables[self._node_number(name)]
            if not is_missing(observation):
                observations[name] = observation
            elif None in variable.index:  # "missing" is one of the node's values
                observations[name] = None
        return observations

    # Rows

    def log_joint(self, rows: Any, of: str | None = None, **reading: Any) -> Real:
        """Returns log P(value, observed values) (rows × values of the node ``of``, which is the target unless given).
        Missing values are summed out exactly. ``rows`` are read as by ``bb.count``, with its options for ``reading``.
        """
        return self._score(rows, (self._target_node(of),), reading)

    def log_likelihood(self, rows: Any, **reading: Any) -> Real:
        """Returns log P(observed values) of each row. The probability of a number is that of its bin. ``rows`` are read
        as by ``bb.count``, with its options for ``reading``.

        >>> import banbury as bb
        >>> network = bb.BeliefNetwork.from_tables({"coin": {"heads": 0.5, "tails": 0.5}})
        >>> network.log_likelihood({"coin": ["heads", None]}).round(3).tolist()
        [-0.693, 0.0]
        """
        return self._score(rows, (), reading)

    def _normalise(self, log_joint: Real, node: int) -> Real:
        """Returns log P(value | observed values) from log P(value, observed values) (rows × values of the node). Rows of
        probability zero get the log-probabilities without evidence, and a warning. Changes ``log_joint`` in place.
        """
        highest = log_joint.max(axis=1, keepdims=True, initial=-np.inf)  # of each row (rows × 1)
        impossible = ~np.isfinite(highest[:, 0])  # of each row
        if impossible.any():
            rows = many(int(impossible.sum()), "row")
            errors.warn(
                f"{rows} of probability zero under how={self.choice.how!r}; the answer without evidence "
                "was returned. Use how='mean' to smooth the tables."
            )
            log_joint[impossible] = log_query(self._scorer, (node,), {})
            highest = log_joint.max(axis=1, keepdims=True)
        log_joint -= highest
        return np.asarray(log_joint - np.log(np.exp(log_joint).sum(axis=1, keepdims=True)))

    def posterior(self, rows: Any, of: str | None = None, **reading: Any) -> Real:
        """Returns P(value | observed values) (rows × values of ``of``, which is the target unless given).

        Missing cells and columns are summed out exactly, and a warning names columns that are missing or were never
        counted. A value that was never counted is treated like a new value in naive Bayes when it depends on its
        parents, and otherwise as missing. A row of probability zero gets the posterior without evidence, and a warning.
        ``rows`` are read as by ``bb.count``, with its options for ``reading``.

        >>> import banbury as bb
        >>> days = bb.datasets.play_tennis()
        >>> network = bb.BeliefNetwork.tan({name: days[name] for name in ("outlook", "wind", "play")}, target="play")
        >>> network.posterior({"outlook": ["sunny", None], "wind": ["strong", "weak"]}).round(3).tolist()
        [[0.636, 0.364], [0.272, 0.728]]
        """
        return np.exp(self._normalise(self.log_joint(rows, of, **reading), self._target_node(of)))

    def predict(self, rows: Any, of: str | None = None, **reading: Any) -> NDArray[Any]:
        """Returns the most probable value of the node ``of``, which is the target unless given, in each row; the first
        one in a tie. ``rows`` are read as by ``bb.count``, with its options for ``reading``.
        """
        values = self._variables[self._target_node(of)].values
        # Of each row, the number of the value.
        best_numbers = self.posterior(rows, of, **reading).argmax(axis=1)
        have_one_type = len({type(value) for value in values}) == 1
        return np.asarray(np.array(values, dtype=None if have_one_type else object)[best_numbers])

    def _target_node(self, of: str | None) -> int:
        """Returns the number of the queried node, which is the target unless given."""
        if of is None and self.target is None:
            raise errors.BadSetting(
                "name the node to query with of=..., because this network has no target.",
                name="of",
                value=None,
            )
        return self._node_number(self.target if of is None else of)

    def _score(self, rows: Any, query: tuple[int, ...], reading: Mapping[str, Any]) -> Real:
        """Returns log P(query nodes, observed values) of all rows (rows × values of each query node). ``query`` has the
        numbers of these nodes, and ``reading`` the user's options for reading the rows.
        """
        no_rows = np.empty((0, *(self._scorer.sizes[node] for node in query)))  # for a source without batches
        warned = set[str]()  # the kinds of warnings about columns that were given, which every batch would repeat
        source = rows if isinstance(rows, Source) else self._read(rows, reading)
        log_joints = [
            self._scorer.log_joint(self._value_numbers(self._align(batch), query, warned), query)
            for batch in read_batches(source, "scoring", ParserWork(self.threads))
        ]
        return np.concatenate([no_rows, *log_joints])

    def _value_numbers(self, batch: Batch, query: tuple[int, ...], warned: set[str]) -> list[ValueNumbers]:
        """Returns for each node the number of each row's value (rows,), negative if it is missing or was never counted;
        values of query nodes count as missing. ``warned`` collects the kinds of warnings that were given about columns.
        """
        threads = n_threads(self.threads)
        present = {*batch.names}
        not_required = {self.target, *(self.nodes[node] for node in query)}
        absent = [name for name in self.nodes if name not in present and name not in not_required]
        warn_about_other_columns(absent, sorted(present.difference(self.columns, self.nodes)), warned)
        all_missing = np.full(batch.n_rows, MISSING, dtype=np.int32)
        return [
            variable.value_numbers(batch, threads) if node not in query and variable.name in present else all_missing
            for node, variable in enumerate(self._variables)
        ]

    def _read(self, rows: Any, reading: Mapping[str, Any]) -> Source:
        """Opens rows as batches, read like the rows that were counted unless ``reading`` (options) says otherwise.
        Variables with ``cuts`` are numbers that are cut into bins.
        """
        kinds: dict[str, Any] = {variable.name: "number" for variable in self._variables if variable.cuts is not None}
        kinds |= {
            variable.name: "string"
            for variable in self._variables
            if variable.cuts is None and variable.kind == "string"
        }
        return read(rows, kinds=kinds, **{"remembered": self._reading, **reading})

    def _align(self, batch: Batch, all_nodes: bool = False) -> Batch:
        """Returns the batch with this network's column names if its columns have no names. Raises an error if it has no
        column of a node, or with ``all_nodes`` if it lacks any.
        """
        includes_target = self.target in batch.names and set(batch.names).issuperset(self.columns)
        if not batch.named and self.columns and batch.names != self.columns and not includes_target:
            if len(batch.names) != len(self.columns):
                raise errors.wrong_width(len(batch.names), len(self.columns), "BeliefNetwork", self.columns)
            batch = batch.rename(self.columns)
        absent = [name for name in self.nodes if name not in batch.names]
        if not all_nodes:  # one node is enough
            absent = [name for name in absent if name != self.target] if len(absent) == len(self.nodes) else []
        if absent:
            raise errors.unknown_column(absent[0], batch.names, batch.source)
        return batch

    def sample(self, n: int, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Draws ``n`` rows from the network, as a mapping of columns. Numbers are drawn uniformly within their bins.

        >>> import banbury as bb
        >>> network = bb.BeliefNetwork.from_tables({"coin": {"heads": 0.5, "tails": 0.5}})
        >>> network.sample(4, seed=1)["coin"].tolist()
        ['tails', 'tails', 'heads', 'tails']
        """
        check_sample_size(n, seed)
        rng = np.random.default_rng(seed)
        scorer = self._scorer
        value_numbers: dict[str, NDArray[np.int64]] = {}  # of each row, by the name of the node
        for name in in_topological_order(self.parents):
            node = self.nodes.index(name)
            # Of each row, the number of its combination of parents' values.
            parent_combination = np.zeros(n, dtype=np.int64)
            for parent in self._parents[node]:
                parent_combination = parent_combination * scorer.sizes[parent] + value_numbers[self.nodes[parent]]
            # Cumulative probabilities (values but the last × combinations of parents' values).
            cumulative = np.cumsum(scorer.tables[node].reshape(scorer.sizes[node], -1), axis=0)[:-1]
            value_numbers[name] = (cumulative[:, parent_combination] <= rng.random(n)).sum(axis=0)
        return {variable.name: variable.draw(value_numbers[variable.name], rng) for variable in self._variables}

    def __repr__(self) -> str:
        """Returns the network as text: a line about its size, and a line for each node with its parents and values."""
        rows = "tables given" if self._counts is None else many(self.n_rows, "row")
        lines = [f"BeliefNetwork: {many(len(self.nodes), 'node')}, {many(len(self.edges), 'edge')}, {rows}"]
        for variable, parents in list(zip(self._variables, self.parents.values(), strict=True))[:SHOWN]:
            condition = f" given {errors.listed(parents)}" if parents else ""
            lines.append(f"  {variable.name}{condition}: {errors.listed(variable.values, 6)}")
        if len(self.nodes) > SHOWN:
            lines.append(f"  … and {len(self.nodes) - SHOWN:,} more")
        if self.left_out:
            left_out = errors.listed((f"{name} ({why})" for name, why in self.left_out.items()), SHOWN)
            lines.append(f"  left out: {left_out}")
        return "\n".join(lines)

    def _notebook_tables(self) -> list[NotebookTable]:
        """Returns the table that a notebook shows: the nodes with their parents and values."""
        parents = [", ".join(parents) for parents in self.parents.values()]
        values = [errors.listed(variable.values, 6) for variable in self._variables]
        return [NotebookTable("", {"node": self.nodes, "parents": parents, "values": values})]


def _number_parents(structure: Mapping[str, Sequence[str]], order: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Returns the numbers of each node's parents, where nodes are numbered in this order, a tuple per node.
    ``structure`` maps the names of nodes to those of their parents.
    """
    return tuple(tuple(order.index(parent) for parent in structure[name]) for name in order)


def _families_of_columns(features: FamilyOption, names: Sequence[str]) -> FamilyOption:
    """Returns the families that ``features`` declares for these columns (``names``), by column, or the one setting for
    all columns; raises an error if it declares a block.
    """
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


def _tree_of(model: Model) -> DependencyTree | None:
    """Returns the tree of a model's columns if it has exactly one tree, else None."""
    trees = find_trees(model.parameters)
    return trees[0] if len(trees) == 1 else None


def _make_node(batch: Batch, feature: Feature, bins: Bins, weights: Real | None) -> Variable:
    """Returns the node of the column that ``feature`` describes, with its values in the batch, or the bins into which its
    numbers are cut (``bins``: how many, or "mdl"); raises an error if it cannot have a table. ``weights`` has one
    number per row, or None.
    """
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
