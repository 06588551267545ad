"""Model: a class prior times families, derived from a tally; it predicts, explains and samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Real
from banbury.distributions import Categorical
from banbury.distributions.categorical import values_of
from banbury.distributions.dirichlet import log
from banbury.distributions.family import HOWS, Choice, Feature, How, Kind, Parameters, check_positive
from banbury.distributions.histogram import HistogramParameters
from banbury.distributions.histogram_block import HistogramBlockParameters
from banbury.distributions.kernel_block import KernelBlockParameters
from banbury.distributions.kernel_density import KernelDensityParameters
from banbury.distributions.occurrences import OTHERS, OccurrencesParameters
from banbury.distributions.text import TextParameters
from banbury.explain import Explanation, Informative, Term, explained, informative
from banbury.explain.page import printable
from banbury.progress import watched
from banbury.readers import Batch, Source, Widened, from_texts, is_texts, n_threads, read, read_row
from banbury.readers.columns import Empty
from banbury.schema import Schema
from banbury.sums import Words
from banbury.tally import Label, Tally, Touched, many, named

MOST_SAMPLED = 10**10
FEWEST_ALONE = 50  # rows of a joint table before it is doubted
UNUSED = np.random.default_rng(0)  # only "gibbs" draws, and making a generator takes longer than most estimates
ClassPrior = Literal["uniform"] | float | Sequence[float] | Mapping[Any, float] | None


def estimate(
    tally: Tally,
    *,
    how: How = "mean",
    alpha: float = 1.0,
    class_prior: ClassPrior = None,
    features: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Model:
    """A model from a tally: a prior and a choice. It costs milliseconds, and never a recount.

    ``how``: "mle" (maximum likelihood: a zero stays zero), "map" (the posterior's mode), "mean" (its mean; with ``alpha`` 1 that
    is add-one smoothing), "predictive" (parameters integrated out) or "gibbs" (one draw of them, by ``seed``). ``alpha`` is the
    Dirichlet prior of families that have none of their own; 0 is taken as 1e-10. ``class_prior``: None for the frequencies,
    "uniform", a probability per class, or a number α for (n + α) / (N + αC). ``features`` gives columns another prior.

    >>> import banbury as bb
    >>> tally = bb.count(bb.datasets.play_tennis(), target="play")
    >>> row = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
    >>> bb.estimate(tally, how="mle").posterior(row).round(3).tolist()
    [[0.795, 0.205]]
    """
    if not isinstance(tally, Tally):
        raise errors.bad_setting("the tally", type(tally).__name__, "a Tally, as bb.count makes it")
    if features is not None and not isinstance(features, Mapping):
        raise errors.bad_setting("features", features, "a mapping from column to family")
    if not isinstance(how, str) or how not in HOWS:
        raise errors.unknown_choice("how", how, HOWS)
    check_positive("alpha", alpha, zero=True)
    if not tally.classes:
        raise errors.empty_data(None, "the tally has no class, so there is nothing to tell apart")
    check_seed(seed)
    rng = np.random.default_rng(seed) if how == "gibbs" else UNUSED
    choice = Choice(how, float(alpha), int(seed))
    if features:
        tally = replace(tally, schema=tally.schema.with_families(features))
    log_prior = _log_prior(class_prior, tally)
    _warn_of_blocks(tally)
    parameters = tuple(given.estimate(columns, sums, choice, rng) for given, columns, sums in tally.groups)
    return Model(tally, choice, class_prior, log_prior, parameters)


def _warn_of_blocks(tally: Tally) -> None:
    """Says which blocks tell nothing: without a complete row, or of fractional numbers that hardly two rows have in common."""
    for block, products in zip(tally.schema.blocks, tally.products, strict=True):
        if products.n.is_zero().all():
            errors.warn(errors.no_complete_row(block.name, block.columns))
    for f, block in enumerate(tally.schema.keyed):
        if "float" in block.kinds:
            rows = tally.counts.feature(f)[1].value.sum(axis=1)
            if rows.sum() >= FEWEST_ALONE and np.count_nonzero(rows == 1) > rows.sum() / 2:
                errors.warn(errors.combinations_of_one_row(block.name))


class Calibrates(Protocol):
    """What turns log posteriors into calibrated posteriors: ``bb.calibrate`` makes it."""

    @property
    def n_classes(self) -> int: ...
    @property
    def keeps_order(self) -> bool:
        """Whether the most probable class always stays the most probable."""
        ...

    def apply(self, log_posteriors: Any) -> Real: ...
    def log_apply(self, log_posteriors: Any) -> Real: ...


class Answering(Protocol):
    """What predicts classes and says why: a model, or a belief network with a target."""

    @property
    def classes(self) -> tuple[Any, ...]: ...
    @property
    def target(self) -> str | None: ...
    @property
    def target_kind(self) -> Kind | None: ...

    def stream(self, rows: Any, **reading: Any) -> Iterator[tuple[Batch, Real]]: ...
    def explain(self, row: Any, against: Any = None) -> Explanation: ...
    def _read(self, rows: Any, reading: Mapping[str, Any]) -> Source: ...


class LinearForm(NamedTuple):
    """A text model's weights: a text scores ``intercepts + counts @ weights`` in each class."""

    words: list[str]
    weights: Real  # (words, classes)
    intercepts: Real  # (classes,)

    def __repr__(self) -> str:
        return f"LinearForm of {len(self.words):,} words and {len(self.intercepts):,} classes"


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """Parameters derived from a tally: disposable, and enough to predict, explain and sample."""

    tally: Tally
    choice: Choice
    class_prior: ClassPrior
    log_prior: Real
    parameters: tuple[Parameters, ...]
    threads: int | None = None
    calibration: Calibrates | None = None  # what makes posteriors honest

    def __reduce__(self) -> Any:
        """A model is derived from its tally, wherever it is unpacked."""
        return _unpacked, (self.tally, self.choice, self.class_prior, self.threads, self.calibration)

    @property
    def classes(self) -> tuple[Label, ...]:
        return self.tally.classes

    @property
    def schema(self) -> Schema:
        return self.tally.schema

    @property
    def target(self) -> str | None:
        """The column of the classes; None where labels were given apart."""
        return self.schema.target

    @property
    def target_kind(self) -> Kind | None:
        """What the classes are, where they are a column."""
        return self.schema.target_kind

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The classes as an array, of strings or numbers where all are."""
        kinds = {type(name) for name in self.classes}
        return np.array(self.classes, dtype=object if len(kinds) > 1 else None)

    def after(self, tally: Tally, touched: Sequence[Touched]) -> Model:
        """The model of a tally that grew or shrank since: of its columns of text in these words alone, changed in place."""
        if tally.classes != self.classes or self.choice.how == "gibbs":
            choice = self.choice
            model = estimate(tally, how=choice.how, alpha=choice.alpha, class_prior=self.class_prior, seed=choice.seed)
            return replace(model, threads=self.threads)
        parameters: list[Parameters] = []
        for old, (given, features, sums) in zip(self.parameters, tally.groups, strict=True):
            if isinstance(old, (TextParameters, OccurrencesParameters)) and isinstance(sums, Words) and old.live:
                ids = [words[features[0].name] for words in touched]
                parameters.append(old.refreshed(sums, ids[0] if len(ids) == 1 else np.unique(np.concatenate(ids))))
            else:
                parameters.append(given.estimate(features, sums, self.choice, UNUSED))
        prior = _log_prior(self.class_prior, tally)
        return replace(self, tally=tally, log_prior=prior, parameters=tuple(parameters))

    def with_class_prior(self, class_prior: ClassPrior) -> Model:
        """The same model under another class prior: "uniform", a probability per class, or None for the frequencies.

        It is not calibrated: a calibration was learned under the old one.
        """
        return replace(self, class_prior=class_prior, log_prior=_log_prior(class_prior, self.tally), calibration=None)

    def calibrated(self, calibration: Calibrates | None) -> Model:
        """The same model with posteriors that this calibration makes honest; None takes one away."""
        if calibration is not None and not hasattr(calibration, "log_apply"):
            raise errors.bad_setting("calibration", calibration, "what bb.calibrate makes, or None")
        if calibration is not None and calibration.n_classes != len(self.classes):
            raise errors.bad_setting(
                "calibration",
                f"one of {calibration.n_classes} classes",
                f"one of the model's {len(self.classes)} classes",
            )
        return replace(self, calibration=calibration)

    # Answers

    def predict(self, rows: Any, *, costs: Any = None, unsure: float | None = None, **reading: Any) -> NDArray[Any]:
        """The most probable class of each row.

        ``costs`` (a matrix, true class × predicted class, or {true: {predicted: cost}}, where what is not given costs 1, and 0
        when right): the class of the least expected cost instead. ``unsure``: None where the posterior of the answer is below it.
        """
        if costs is None and unsure is None:
            return np.asarray(self.labels[self._best(self._scored(rows, self._wanted, reading))])
        if unsure is not None and not (isinstance(unsure, (int, float, np.number)) and 0 <= unsure <= 1):
            raise errors.bad_setting("unsure", unsure, "a probability from 0 to 1")
        matrix = None if costs is None else cost_matrix(costs, self.classes)
        posterior = self.posterior(rows, **reading)
        best = posterior.argmax(axis=1) if matrix is None else (posterior @ matrix).argmin(axis=1)
        answer = self.labels[best]
        if unsure is None:
            return np.asarray(answer)
        certain: NDArray[Any] = answer.astype(object)
        certain[posterior[np.arange(len(best)), best] < unsure] = None
        return certain

    def posterior(self, rows: Any, **reading: Any) -> Real:
        """P(class | row), rows × classes, in the order of ``classes``."""
        if self.calibration is None:
            return self._scored(rows, "posterior", reading)
        return self.calibration.apply(self._scored(rows, "log_posterior", reading))

    def log_posterior(self, rows: Any, **reading: Any) -> Real:
        """log P(class | row)."""
        found = self._scored(rows, "log_posterior", reading)
        return found if self.calibration is None else self.calibration.log_apply(found)

    def log_joint(self, rows: Any, **reading: Any) -> Real:
        """log P(class) + log P(row | class), rows × classes; −inf only under "mle" and "map"."""
        return self._scored(rows, "log_joint", reading)

    def stream(self, rows: Any, **reading: Any) -> Iterator[tuple[Batch, Real]]:
        """Batch by batch some rows and P(class | row) of each, however long the table: no more than a batch is held.

        >>> import banbury as bb
        >>> weather = bb.datasets.play_tennis()
        >>> model = bb.estimate(bb.count(weather, target="play"))
        >>> [(batch.n_rows, posterior.shape) for batch, posterior in model.stream(weather)]
        [(14, (14, 2))]
        """
        source = rows if isinstance(rows, Source) else self._read(rows, reading)
        n_done, told = 0, set[str]()
        while True:
            try:
                for batch in watched(source, "scoring", source.name):
                    if batch.first_row < n_done:  # it was read before a column widened
                        continue
                    batch.threads = self.threads
                    fitting, parameters = self._fitting(batch, told)
                    want = "posterior" if self.calibration is None else "log_posterior"
                    found, impossible = self._kernel(fitting, parameters, want)
                    self._warn_impossible(impossible, want)
                    yield batch, found if self.calibration is None else self.calibration.apply(found)
                    n_done = batch.first_row + batch.n_rows
                return
            except Widened as wider:  # of a column that is not a feature
                if not source.again:
                    raise errors.cannot_restart(wider.column, wider.kind) from None

    def explain(self, row: Any, against: Any = None) -> Explanation:
        """The weight of evidence, in decibans, for the most probable class against the runner-up or another.

        >>> import banbury as bb
        >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
        >>> model.explain({"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"})
        'no' 72.0% against 'yes' 28.0%, in decibans:
          prior                     -2.55  ---
          outlook      = sunny      +3.01  +++
          humidity     = high       +2.93  +++
          wind         = strong     +1.96  ++
          temperature  = cool       -1.25  -
          sum                       +4.10
        """
        if len(self.classes) < 2:
            raise errors.bad_setting(
                "the model",
                f"one class, {self.classes[0]!r}",
                "one of two classes at least; of one, bb.Density.from_model(model).surprise(row) says what is unusual",
            )
        batch, parameters = self._fitting(self._one_row(row), set())
        posterior = self._kernel(batch, parameters, "posterior")[0][0]
        winner, ranked, calibrated = self._answer(batch, parameters)
        other = next(c for c in ranked if c != winner) if against is None else class_number(against, self.classes)
        if other == winner:
            raise errors.bad_setting("against", against, "another class than the most probable one")
        likelihoods = iter(self._kernel(batch, parameters, "parts")[0][0])
        terms = [
            term for group in parameters for f in group.features for term in self._terms(group, f, batch, likelihoods)
        ]
        place = {name: f for f, feature in enumerate(self.schema.features) for name in feature.inputs}
        terms.sort(key=lambda term: place.get(term.feature, len(place)))
        bags = [group for group in parameters if isinstance(group, TextParameters)]
        texts = {bag.features[0].name: text for bag in bags if (text := bag.text(batch)) is not None}
        unknown = [word for bag in bags for word in bag.unknown(texts.get(bag.features[0].name, ""))]
        return explained(self.classes, self.log_prior, terms, posterior, winner, other, unknown, texts, calibrated)

    def _answer(self, batch: Batch, parameters: Sequence[Parameters]) -> tuple[int, list[int], float | None]:
        """Of one row the class that predict gives it, all classes from the most probable down, and its calibrated probability.

        Where calibrated posteriors are equal, and there may be many zeros, the model's own tell the classes apart.
        """
        scores = self._kernel(batch, parameters, "log_posterior")[0]
        winner = int(self._best(self._kernel(batch, parameters, self._wanted)[0])[0])
        if self.calibration is None:
            return winner, np.argsort(-scores[0], kind="stable").tolist(), None
        honest = self.calibration.apply(scores)[0]
        return winner, np.lexsort((-scores[0], -honest)).tolist(), float(honest[winner])

    def _terms(self, group: Parameters, feature: Feature, batch: Batch, likelihoods: Iterator[Real]) -> list[Term]:
        """What a feature of the row says of each class: one term, or one for each of a text's words."""
        likelihood = next(likelihoods)
        if isinstance(group, OccurrencesParameters):
            return [
                Term(feature.name, OTHERS, says) if name == OTHERS else Term(name, _short(number), says)
                for name, number, says in group.evidence(batch)
            ]
        if isinstance(group, TextParameters) and (text := group.text(batch)) is not None:
            places = group.family.places(text)
            return [
                Term(
                    feature.name,
                    word.word,
                    word.log_likelihood,
                    times=max(len(word.numbers), 1),
                    positions=tuple(places[i] for i in word.numbers),
                )
                for word in group.evidence(text)
            ]
        if feature.columns:
            values = [next(iter(batch.head(name, 1)), None) for name in feature.columns]
            return [Term(feature.name, ", ".join(map(printable, values)), likelihood)]
        value = next(iter(batch.head(feature.name, 1)), None)
        return [Term(feature.name, value, likelihood, self._is_seen(feature.name, batch))]

    def informative(self, n: int = 10, classes: Sequence[Any] | None = None) -> Informative:
        """The ``n`` values that best tell each class from the rest, as likelihood ratios; ``classes``: of these alone.

        The rest are all other classes, mixed by their prior. The first is the one with the highest product of two things: how
        much more of the class's rows than of the rest's have the value, and the logarithm of its ratio. So a word must be
        common in its class as well as rare elsewhere. A number speaks by the stretch of its values that tells most; so does each
        column of a Gaussian block, by itself. A joint table speaks by its combinations of values.

        >>> import banbury as bb
        >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
        >>> model.informative(2)
        'no'
          humidity = high     no : rest = 2.0 : 1
          outlook = sunny     no : rest = 2.0 : 1
        'yes'
          outlook = overcast  yes : rest = 3.3 : 1
          humidity = normal   yes : rest = 2.2 : 1
        """
        return informative(self.classes, self.parameters, self.log_prior, n, classes)

    def _one_row(self, row: Any) -> Batch:
        """The row as predict would read it: a mapping or Series by name, an array or list by position, a table of one, a text."""
        if isinstance(row, str) and len(self.schema.features) == len(self.schema.texts) == 1:
            row = {self.schema.features[0].name: row}
        if isinstance(row, list) and len(self.schema.columns) == 1 and len(row) > 1 and isinstance(row[0], str):
            raise errors.not_one_row(len(row))
        if isinstance(row, (list, tuple, np.ndarray)) and not len(row):
            raise errors.not_one_row(0)
        if isinstance(row, (list, tuple, np.ndarray)) and np.ndim(row) == 1 and not isinstance(row[0], Mapping):
            if len(row) != len(self.schema.columns):
                raise errors.wrong_width(len(row), len(self.schema.columns))
            return read_row(row, self.schema.columns, self.schema.named)
        batches = list(self._read(row, {}))
        if sum(batch.n_rows for batch in batches) != 1:
            raise errors.not_one_row(sum(batch.n_rows for batch in batches))
        return next(batch for batch in batches if batch.n_rows)

    def _is_seen(self, name: str, batch: Batch) -> bool:
        """Whether any counted row has the value that this one has."""
        feature = self.schema[name]
        if not isinstance(feature.family, Categorical):
            return True
        keys = self.tally.counts.index[[f.name for f in self.schema.keyed].index(name)]
        column = values_of(batch, feature)
        at = int(column.codes[0]) - column.low
        return not 0 <= at < len(column.values) or column.values[at] in keys

    def likelihood(self, feature: str, value: Any) -> dict[Label, float]:
        """P(value | class) of one feature, or its density, for every class; of a block that of a value for each column."""
        alone = self._group(feature)
        (only,) = alone.features
        several = isinstance(value, (list, tuple, np.ndarray))
        if len(only.columns) == 1 and not several:
            value, several = (value,), True
        if only.columns and not (several and len(value) == len(only.columns)):
            wanted = f"as many values as {only.name!r} has columns ({errors.listed(only.columns)})"
            raise errors.bad_setting("value", value, wanted)
        values = dict(zip(only.columns, value, strict=True)) if only.columns else {only.name: value}
        batch = next(iter(read({name: [each] for name, each in values.items()})))
        found = self._kernel(batch, [alone], "parts")[0][0, 0]
        return dict(zip(self.classes, np.exp(found).tolist(), strict=True))

    def log_likelihood(self, rows: Any, feature: str | None = None, **reading: Any) -> Real:
        """log P(value | class) of one feature, rows × classes; of a text that of its bag of words, in whatever order.

        That is the multinomial likelihood with its coefficient, which is the same for every class. ``feature`` may be left out
        where there is one only. A missing value says nothing: 0.

        >>> import banbury as bb
        >>> model = bb.estimate(bb.count(["good good bad", "bad"], target=["yes", "no"]))
        >>> model.log_likelihood(["bad good"]).round(3).tolist()  # two orders of one third and two thirds; of 2/5 and 3/5
        [[-0.811, -0.734]]
        """
        group = self._group(feature)
        found = []
        for batch in self._read(rows, reading):
            batch, _ = self._fitting(batch, {"absent", "extra"})
            if isinstance(group, TextParameters):
                found.append(group.log_likelihoods(batch))
            else:
                found.append(self._kernel(batch, [group], "parts")[0][:, 0])
        return np.concatenate(found)

    def cuts(self, feature: str | None = None) -> list[float]:
        """The numbers at which the bins of a histogram end and the next begin, in order; ``feature`` as for ``log_likelihood``,
        or a column of a block of histograms.

        >>> import banbury as bb
        >>> ages = {"age": [3.0, 4.0, 12.0, 13.0], "school": ["none", "none", "high", "high"]}
        >>> bb.estimate(bb.count(ages, target="school", features={"age": bb.Histogram(bins="mdl")})).cuts("age")
        [8.0]
        """
        for blocks in (group for group in self.parameters if isinstance(group, HistogramBlockParameters)):
            for block, cells in zip(blocks.features, blocks.cells, strict=True):
                if feature in block.columns:
                    return cells.axes[block.columns.index(feature)].cuts()
        group = self._group(feature)
        if isinstance(group, HistogramBlockParameters):
            raise errors.bad_setting(
                "feature", feature, f"one column of the block: {errors.listed(group.features[0].columns)}"
            )
        if not isinstance(group, HistogramParameters):
            raise errors.bad_setting("feature", group.features[0].name, "a column that is a histogram, to have cuts")
        return [float(cut) for cut in group.cuts(0)]

    def bandwidths(self, feature: str | None = None) -> dict[Label, Any]:
        """The bandwidth of a kernel density in each class, in the column's own unit; of a block that of each column.

        >>> import banbury as bb
        >>> waits = {"wait": [1.0, 1.2, 4.8, 5.0, 2.9, 3.1], "kind": ["a", "a", "a", "a", "b", "b"]}
        >>> tally = bb.count(waits, target="kind", features={"wait": bb.KernelDensity()})
        >>> {kind: round(h, 2) for kind, h in bb.estimate(tally).bandwidths("wait").items()}
        {'a': 1.66, 'b': 0.13}
        """
        group = self._group(feature)
        if isinstance(group, KernelBlockParameters):
            found: Any = [
                dict(zip(group.features[0].columns, each, strict=True)) for each in group.bandwidths(0).tolist()
            ]
        elif isinstance(group, KernelDensityParameters):
            found = (group.bumps[0].bandwidth * group.features[0].unit).tolist()
        else:
            raise errors.bad_setting("feature", group.features[0].name, "a kernel density, to have bandwidths")
        return dict(zip(self.classes, found, strict=True))

    def linear(self, feature: str | None = None) -> LinearForm:
        """A model of text as the linear classifier it is: log P(class) + log P(text | class) = intercepts + counts @ weights.

        Of a block of occurrences, the words are its columns; where it has a threshold, what is above counts 1, and all else 0.

        >>> import banbury as bb
        >>> model = bb.estimate(bb.count(["good good bad", "bad"], target=["yes", "no"]))
        >>> form = model.linear()
        >>> form.words, (form.intercepts + [2, 1] @ form.weights).round(3).tolist()
        (['bad', 'good'], [-2.603, -3.037])
        >>> model.log_joint(["bad good bad"]).round(3).tolist()
        [[-2.603, -3.037]]
        """
        group = self._group(feature)
        if not isinstance(group, (TextParameters, OccurrencesParameters)):
            wanted = "a column of text, or a block of occurrences, for the linear form of a model"
            raise errors.bad_setting("feature", group.features[0].name, wanted)
        words, weights, intercepts = group.linear()
        return LinearForm(words, weights, self.log_prior + intercepts)

    def _group(self, feature: str | None) -> Parameters:
        """The parameters of one feature."""
        if feature is None and len(self.schema.features) != 1:
            names = errors.listed(f.name for f in self.schema.features)
            raise errors.bad_setting("feature", feature, f"the name of one of the features ({names})")
        name = self.schema.features[0].name if feature is None else self.schema[feature].name
        group = next(g for g in self.parameters if any(f.name == name for f in g.features))
        return group.select([[f.name for f in group.features].index(name)])

    def sample(self, n: int, seed: int = 0) -> dict[str, NDArray[Any]]:
        """``n`` rows drawn from the model, as a mapping of columns, the class under the target's name ("class" without one)."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 0 <= n <= MOST_SAMPLED:
            raise errors.bad_setting("n", n, f"a whole number from 0 up, {MOST_SAMPLED:,} at most")
        check_seed(seed)
        rng = np.random.default_rng(seed)
        classes = rng.choice(len(self.classes), size=n, p=np.exp(self.log_prior))
        drawn: dict[str, NDArray[Any]] = {}
        for group in self.parameters:
            names = (name for f in group.features for name in f.inputs)
            with np.errstate(over="ignore"):
                drawn |= dict(zip(names, map(_finite, group.sample(classes, rng)), strict=True))
        columns = {name: drawn[name] for feature in self.schema.features for name in feature.inputs}
        name = self.schema.target or "class"
        while name in columns:
            name += "_"
        return columns | {name: self.labels[classes]}

    def __str__(self) -> str:
        settings = f"how={self.choice.how!r}, alpha={self.choice.alpha:g}"
        settings += "" if self.calibration is None else f", calibrated: {self.calibration}"
        head = f"Model of {many(len(self.classes), 'class')}, {many(len(self.schema.features), 'feature')} ({settings})"
        names = [errors.shortened(repr(name)) for name in self.classes[:20]]
        width = max(map(len, names))
        lines = [f"  P({name:{width}}) = {p:.4f}" for name, p in zip(names, np.exp(self.log_prior), strict=False)]
        more = [f"  … and {len(self.classes) - 20:,} more classes"] if len(self.classes) > 20 else []
        return "\n".join([head, *lines, *more])

    __repr__ = __str__

    # Scoring

    @property
    def _wanted(self) -> str:
        """What has to be scored to find the most probable class."""
        return "class" if self.calibration is None or self.calibration.keeps_order else "log_posterior"

    def _best(self, found: NDArray[Any]) -> NDArray[Any]:
        """The number of each row's most probable class, from what was scored."""
        if self.calibration is None or self._wanted == "class":
            return found
        return np.asarray(self.calibration.apply(found).argmax(axis=1))

    def _scored(self, rows: Any, want: str, reading: Mapping[str, Any]) -> NDArray[Any]:
        if self._texts_alone is not None and type(rows) is list and rows and type(rows[0]) is str and not reading:
            try:
                answer, impossible = self._score(len(rows), [self._texts_alone.part(rows)], want)
            except TypeError:  # something among them is no text: the long way says what
                pass
            else:
                self._warn_impossible(impossible, want)
                return answer
        source = self._read(rows, reading)
        while True:
            found: list[NDArray[Any]] = []
            impossible, told = 0, set[str]()
            try:
                for batch in watched(source, "scoring", source.name):
                    batch.threads = self.threads
                    batch, parameters = self._fitting(batch, told)
                    answer, none_left = self._kernel(batch, parameters, want)
                    found.append(answer)
                    impossible += none_left
                break
            except Widened as wider:  # of a column that is not a feature
                if not source.again:
                    raise errors.cannot_restart(wider.column, wider.kind) from None
        self._warn_impossible(impossible, want)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _read(self, rows: Any, reading: Mapping[str, Any]) -> Source:
        """The rows' batches. To a model of texts a list of strings holds texts: none of them is taken for a file's name."""
        if self.schema.texts and not reading and is_texts(rows):
            return from_texts(rows, None, None)
        return read(rows, kinds=None if isinstance(rows, Batch) else self.schema.kinds(), **reading)

    @cached_property
    def _texts_alone(self) -> TextParameters | None:
        """The parameters of the one column there is, if the rows are plain texts: they need no reader."""
        alone = self.parameters[0] if len(self.parameters) == 1 and not self.schema.named else None
        return alone if isinstance(alone, TextParameters) and alone.plain and len(self.schema.columns) == 1 else None

    def _warn_impossible(self, n_rows: int, want: str) -> None:
        if n_rows and want != "log_joint":
            errors.warn(errors.all_impossible(n_rows, f"how={self.choice.how!r}"))

    def _score(self, n_rows: int, parts: list[tuple[Any, ...]], want: str) -> tuple[NDArray[Any], int]:
        return _core.score(n_rows, self.log_prior, parts, want, n_threads(self.threads))

    def _kernel(self, batch: Batch, parameters: Sequence[Parameters], want: str) -> tuple[NDArray[Any], int]:
        for group in parameters:
            if isinstance(group, OccurrencesParameters):
                group.family.check(batch, group.features[0])
        parts = [part for group in parameters for part in group.parts(batch)]
        try:
            return self._score(batch.n_rows, parts, want)
        except _core.BadValue as bad:
            raise _named(bad, parameters, batch) from None

    def _fitting(self, batch: Batch, told: set[str]) -> tuple[Batch, Sequence[Parameters]]:
        """The batch under the schema's names, and the parameters of the features it has; ``told`` keeps what was said."""
        schema = self.schema
        if not (batch.named and schema.named):
            if batch.named and schema.target in batch.names:
                batch = batch.without(schema.target)
            if len(batch.names) != len(schema.columns):
                raise errors.wrong_width(
                    len(batch.names), len(schema.columns), names=schema.columns if schema.named else ()
                )
            return batch.renamed(schema.columns), self.parameters
        present = set(batch.names)
        gaps = [name for f in schema.features if f.columns and f.family.shape != "words" for name in f.inputs]
        gaps = [name for name in gaps if name not in present and self._is_partly(name, present)]
        if gaps:  # a block is scored by the columns that there are
            batch = batch.with_columns({name: Empty(batch.n_rows) for name in gaps})
            present.update(gaps)
        absent = [f.name for f in schema.features if not present.issuperset(f.inputs)]
        if absent and len(absent) == len(schema.features):
            lacking = next(name for name in schema.features[0].inputs if name not in present)
            raise errors.unknown_column(lacking, batch.names, batch.source)
        extra = present.difference(schema.columns, [schema.target])
        tell_other_columns([*gaps, *absent], sorted(extra), told)
        if not absent:
            return batch, self.parameters
        kept = [[i for i, f in enumerate(g.features) if present.issuperset(f.inputs)] for g in self.parameters]
        return batch, [g.select(index) for g, index in zip(self.parameters, kept, strict=True) if index]

    def _is_partly(self, column: str, present: set[str]) -> bool:
        """Whether other columns of the block that this one is of are present."""
        return any(column in f.columns and not present.isdisjoint(f.columns) for f in self.schema.features)


def tell_other_columns(absent: Sequence[str], extra: Sequence[str], told: set[str]) -> None:
    """Warns of columns that the rows lack, and of those that were never counted; each once, as ``told`` remembers."""
    for what, names in (("absent", absent), ("extra", extra)):
        if names and what not in told:
            told.add(what)
            errors.warn(errors.other_columns_than_counted(what, names))


def cost_matrix(costs: Any, classes: Sequence[Any]) -> Real:
    """Costs as a matrix, true class × predicted class."""
    size = len(classes)
    wanted = f"a finite {size} × {size} matrix, true class × predicted class, or {{true: {{predicted: cost}}}}"
    try:
        if isinstance(costs, Mapping):
            matrix = 1.0 - np.eye(size)
            for true, row in costs.items():
                for predicted, cost in row.items():
                    matrix[class_number(true, classes), class_number(predicted, classes)] = cost
        else:
            matrix = np.asarray(costs, dtype=np.float64)
    except errors.UnknownClass:
        raise
    except (TypeError, ValueError, AttributeError):
        raise errors.bad_setting("costs", costs, wanted) from None
    if matrix.shape != (size, size) or not np.all(np.isfinite(matrix)):
        raise errors.bad_setting("costs", costs, wanted)
    return matrix


def class_number(name: Any, classes: Sequence[Any]) -> int:
    if name not in classes:
        raise errors.unknown_class(name, classes)
    return classes.index(name)


def score_each(
    models: Sequence[Model], batch: Batch, which: NDArray[np.int32], want: str, threads: int, out: Real
) -> int:
    """Puts what the model of its number says of each row into ``out``, rows × classes; a row's number is −1 for none.

    Returns how many rows are impossible in every class.
    """
    parts = [[part for group in model.parameters for part in group.parts(batch)] for model in models]
    pairs = [(model.log_prior, each) for model, each in zip(models, parts, strict=True)]
    try:
        return _core.score_each(which, pairs, want, threads, out)
    except _core.BadValue as bad:
        raise _named(bad, models[0].parameters, batch) from None


def log_sum(log_joint: Real) -> Real:
    """log P(row) of each row, whatever its class: the logarithm of the sum over classes; −inf where every class rules it out."""
    highest = log_joint.max(axis=1)
    safe = np.where(np.isfinite(highest), highest, 0.0)
    return np.asarray(safe + log(np.exp(log_joint - safe[:, None]).sum(axis=1)))


def _named(bad: _core.BadValue, parameters: Sequence[Parameters], batch: Batch) -> errors.BadValue:
    """A value that cannot be scored, in a user's words. A block counts as one feature, but its columns are numbered on."""
    _, at, row, value = bad.args
    features = [f for group in parameters for f in group.features]
    for first, feature in enumerate(features):
        if feature.columns and first <= at < first + len(feature.columns):
            column = feature.columns[at - first]
            found = batch.take(np.array([row])).numbers([column])[0].reshape(-1)[0]
            if found == value or (found != found and value != value):
                return named(_core.BadValue(bad.args[0], 0, row, value), [column], batch)
    return named(bad, [f.name for f in features], batch)


def _finite(column: NDArray[Any]) -> NDArray[Any]:
    """Numbers that a file and a count would take."""
    largest = np.finfo(np.float64).max
    return np.clip(column, -largest, largest) if column.dtype.kind == "f" else column


def _short(number: float) -> float:
    """A whole number without its point."""
    return int(number) if number == int(number) else number


def _unpacked(
    tally: Tally, choice: Choice, class_prior: ClassPrior, threads: int | None, calibration: Calibrates | None
) -> Model:
    model = estimate(tally, how=choice.how, alpha=choice.alpha, class_prior=class_prior, seed=choice.seed)
    return replace(model, threads=threads, calibration=calibration)


def check_seed(seed: Any) -> None:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise errors.bad_setting("seed", seed, "a whole number from 0 up")


def _log_prior(class_prior: ClassPrior, tally: Tally) -> Real:
    rows, size = tally.rows.value, len(tally.classes)
    if not rows.sum() > 0:
        raise errors.empty_data(None, "the weights of all rows have faded to nothing")
    if class_prior is None:
        return log(rows / rows.sum())
    if isinstance(class_prior, str):
        if class_prior != "uniform":
            raise errors.unknown_choice("class_prior", class_prior, ["uniform"])
        return np.full(size, -np.log(size))
    if isinstance(class_prior, (int, float)) and not isinstance(class_prior, bool):
        check_positive("class_prior", class_prior, zero=True)
        return log((rows + class_prior) / (rows.sum() + class_prior * size))
    if isinstance(class_prior, Mapping):
        for name in class_prior:
            if name not in tally.classes:
                raise errors.unknown_class(name, tally.classes)
        if lacking := [repr(c) for c in tally.classes if c not in class_prior]:
            wanted = f"a probability for each class; {errors.listed(lacking)} has none"
            raise errors.bad_setting("class_prior", class_prior, wanted)
    try:
        values = [class_prior[c] for c in tally.classes] if isinstance(class_prior, Mapping) else class_prior
        given = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise errors.bad_setting(
            "class_prior", class_prior, f"one probability for each of the {size} classes"
        ) from None
    if given.shape != (size,):
        raise errors.bad_setting("class_prior", class_prior, f"one probability for each of the {size} classes")
    if not np.all(given >= 0) or not abs(given.sum() - 1.0) <= 1e-9:
        wanted = f"probabilities that sum to 1, one for each class (these sum to {given.sum():g})"
        raise errors.bad_setting("class_prior", class_prior, wanted)
    return log(given)
