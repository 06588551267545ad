"""Hypotheses: what is believed of each before and after rows, and what all of them together say of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import isfinite, log, log1p, pi
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real, plain
from banbury.hypotheses.examples import Askable, Chosen, Examples, Functions, Predictions
from banbury.hypotheses.values import Array, codes, floats, is_hashable, is_missing, matrix, vector

Likelihood = Literal["noise_free", "label_noise", "gaussian", "bernoulli"]

LIKELIHOODS = get_args(Likelihood)
MOST = 10_000_000  # hypotheses that are held
ROUNDING = 1e-6  # by which a prior may miss one: single precision does
CELLS = 2**23  # of a block of predictions
COLUMNS = 2**11  # hypotheses whose votes are counted together
ALIKE = 1e-12  # scores that differ by less, in parts of their size, are equal
LARGEST = 1e300  # a log-likelihood: a hundred million of them still have a sum


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Hypotheses:
    """A finite hypothesis space with the probabilities P(h), P(rows | h) and P(h | rows). It is a frozen value.

    Args:
        hypotheses: Functions of a row, in a list or by name; or only names, or how many there are.
        prior: "uniform", a probability for each hypothesis, in order or by name, or "description_length" for 2 to the
            power of minus ``lengths``.
        likelihood: What a prediction means. "noise_free": the label of the row. "label_noise": the label, which is
            observed as another one with probability ``noise``. "gaussian": the mean of a number with standard deviation
            ``noise``. "bernoulli": the probability of the second label.
        noise: The noise of the likelihood.
        labels: All labels that a row can have.
        lengths: The description length of each hypothesis, in bits.

    >>> test = Hypotheses(["cancer", "healthy"], prior=[0.008, 0.992]).update(likelihoods=[0.98, 0.03])
    >>> test.map, test.ml
    ('healthy', 'cancer')
    >>> test.posterior.round(4).tolist()
    [0.2085, 0.7915]
    >>> at_least = {f"at least {n}": lambda row, n=n: row >= n for n in range(1, 6)}
    >>> Hypotheses(at_least).update([1, 4, 2], [False, True, False])
    5 hypotheses after 3 rows, 2 of them possible
      0.5000  at least 3
      0.5000  at least 4
    """

    names: Sequence[Any]
    log_prior: Real
    log_likelihood: Real  # of all rows so far
    n_rows: int
    likelihood: Likelihood
    noise: float
    labels: tuple[Any, ...]
    _asked: Askable | None  # None: hypotheses known by name only

    def __init__(
        self,
        hypotheses: Mapping[Any, Any] | Iterable[Any] | int,
        prior: Any = "uniform",
        *,
        lengths: Any = None,
        likelihood: Likelihood = "noise_free",
        noise: float | None = None,
        labels: Iterable[Any] = (False, True),
    ) -> None:
        names, askable = name_hypotheses(hypotheses)
        self._set(names=names, _asked=askable, log_prior=log_prior(names, prior, lengths))
        self._set(log_likelihood=np.zeros(len(names)), n_rows=0)
        noise = check_noise(likelihood, noise)
        labels = check_labels(labels, likelihood)
        self._set(likelihood=likelihood, noise=noise, labels=labels)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def _after(self, evidence: _Likelihoods, part: slice) -> Self:
        total = self.log_likelihood + evidence.of(part, None)
        if self._rules_out_all(total):
            raise self._impossible(evidence, self.log_likelihood, part)
        after = object.__new__(type(self))
        after._set(**{field.name: getattr(self, field.name) for field in fields(self)})
        after._set(log_likelihood=total, n_rows=self.n_rows + part.stop - part.start)
        return after

    def __len__(self) -> int:
        return len(self.log_prior)

    # What is believed -------------------------------------------------------------------------------------------------

    @property
    def log_joint(self) -> Real:
        """log P(h) P(rows | h) of each hypothesis."""
        return self.log_prior + self.log_likelihood

    @cached_property
    def _scale(self) -> tuple[float, float]:
        """The highest log joint, and the log of the sum of all in parts of it: beside −1e20 the second would not be seen."""
        joint = self.log_joint
        top = float(joint.max())
        return top, float(np.log(np.exp(joint - top).sum()))

    @property
    def log_evidence(self) -> float:
        """log P(rows): the likelihood averaged over the prior."""
        return sum(self._scale)

    @cached_property
    def posterior(self) -> Real:
        """P(h | rows) of each hypothesis.

        >>> far = Hypotheses(3, prior=[0.5, 0.25, 0.25]).update(log_likelihoods=[-1000.0, -1000.0, -2000.0])
        >>> far.posterior.round(3).tolist()
        [0.667, 0.333, 0.0]
        """
        joint = self.log_joint
        shares: Real = np.exp(joint - joint.max())
        shares /= shares.sum()
        shares.flags.writeable = False
        return shares

    @property
    def log_posterior(self) -> Real:
        """log P(h | rows), also where the probability underflows; −∞ means impossible."""
        top, rest = self._scale
        return self.log_joint - top - rest

    @property
    def map(self) -> Any:
        """The hypothesis with the highest posterior; the first one in a tie."""
        return self.names[_first_best(self.log_joint)]

    @property
    def ml(self) -> Any:
        """The hypothesis with the highest likelihood, regardless of the prior; the first one in a tie."""
        return self.names[_first_best(self.log_likelihood)]

    @property
    def mdl(self) -> Any:
        """The hypothesis with the minimum description length, which is the most probable one."""
        return self.names[_first_best(-self.description_length)]

    @property
    def description_length(self) -> Real:
        """−log₂ P(h) P(rows | h): the bits needed to encode the hypothesis, and then the rows given the hypothesis.

        >>> coins = Hypotheses(["fair", "bent"], "description_length", lengths=[1, 4], likelihood="bernoulli")
        >>> coins.update(predictions=[[0.5, 0.9]] * 5, target=[1] * 5).description_length.round(2).tolist()
        [5.17, 3.93]
        """
        return -self.log_joint / log(2)

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Whether each hypothesis is still possible."""
        return np.asarray(self.log_joint > -np.inf)

    @property
    def version_space(self) -> list[Any]:
        """The hypotheses that are still possible. Without noise, these are the ones that are consistent with every row.

        >>> Hypotheses(["a", "b", "c"]).update(predictions=[[1, 0, 1], [0, 0, 0]], target=[True, False]).version_space
        ['a', 'c']
        """
        return [self.names[h] for h in np.flatnonzero(self.possible).tolist()]

    def most_probable(self, n: int = 10) -> list[tuple[Any, float]]:
        """Returns the ``n`` most probable hypotheses and their posteriors, best first, without impossible ones.

        >>> Hypotheses(["rain", "dry"]).update(likelihoods={"rain": 0.1, "dry": 0.5}).most_probable(1)
        [('dry', 0.8333333333333334)]
        """
        errors.check_whole("n", n, 0)
        joint = self.log_joint
        best = np.argsort(-joint, kind="stable")[:n].tolist()
        return [(self.names[h], float(self.posterior[h])) for h in best if joint[h] > -np.inf]

    def __str__(self) -> str:
        n = len(self)
        possible = int(self.possible.sum())
        size = f"{n:,} hypothes{'i' if n == 1 else 'e'}s after {_rows(self.n_rows)}, {possible:,} of them possible"
        lines = [f"  {share:.4f}  {errors.shortened(name, 100)}" for name, share in self.most_probable(8)]
        return "\n".join([size, *lines] + [f"  … and {possible - 8:,} more"] * (possible > 8))

    __repr__ = __str__

    # What rows teach --------------------------------------------------------------------------------------------------

    def update(
        self,
        rows: Any = None,
        target: Any = None,
        *,
        predictions: Any = None,
        likelihoods: Any = None,
        log_likelihoods: Any = None,
    ) -> Self:
        """Returns the space after more rows. This space does not change.

        Rows are a table (a frame or a mapping of columns) or a list of rows, and ``target`` is a column or has the
        label or number of each row. ``predictions`` are the predictions of the hypotheses (rows × hypotheses).
        ``likelihoods`` or ``log_likelihoods`` are the probabilities of the evidence under each hypothesis; they need
        not sum to one. Rows can be added all at once or one by one, in any order, with the same result.

        >>> days = {"sky": ["sunny", "rainy"], "play": ["yes", "no"]}
        >>> says = {"if sunny": lambda day: "yes" if day["sky"] == "sunny" else "no", "never": lambda day: "no"}
        >>> Hypotheses(says, labels=["no", "yes"]).update(days, "play").version_space
        ['if sunny']
        """
        evidence = self._evidence(rows, target, predictions, likelihoods, log_likelihoods)
        space = self
        for part in _blocks(evidence.n_rows, len(self), evidence.at_once):
            space = space._after(evidence, part)
        return space

    def trace(
        self,
        rows: Any = None,
        target: Any = None,
        *,
        predictions: Any = None,
        likelihoods: Any = None,
        log_likelihoods: Any = None,
        n: int = 7,
    ) -> Trace:
        """Returns the posteriors before and after every row, for the ``n`` hypotheses that reach the highest ones.
        Arguments are those of ``update``.

        >>> seen = Hypotheses(["a", "b"]).trace(likelihoods=[[0.5, 0.5], [0.2, 0.8], [0.1, 0.4]])
        >>> seen.posteriors.round(2).tolist()
        [[0.5, 0.5], [0.5, 0.5], [0.2, 0.8], [0.06, 0.94]]
        """
        errors.check_whole("n", n, 1)
        evidence = self._evidence(rows, target, predictions, likelihoods, log_likelihoods)
        last = self
        highest = self.log_posterior
        scales = [(*self._scale, self.possible.sum())]
        for row in range(evidence.n_rows):
            last = last._after(evidence, slice(row, row + 1))
            np.maximum(highest, last.log_posterior, out=highest)
            scales.append((*last._scale, last.possible.sum()))
        kept = np.arange(len(self)) if len(self) <= n else np.lexsort((-last.log_joint, -highest))[:n]
        row_evidence = [self.log_likelihood[kept]] + [
            evidence.of(slice(r, r + 1), kept) for r in range(evidence.n_rows)
        ]
        tops, rests, n_possible = np.array(scales).T
        posteriors = np.exp(self.log_prior[kept] + np.cumsum(row_evidence, axis=0) - tops[:, None] - rests[:, None])
        return Trace([self.names[h] for h in kept.tolist()], posteriors, n_possible.astype(np.int64), self, last)

    def _rules_out_all(self, log_likelihood: Real) -> bool:
        return bool((self.log_prior + log_likelihood).max() == -np.inf)

    def _impossible(self, evidence: _Likelihoods, total: Real, part: slice) -> errors.ImpossibleEvidence:
        """Names the row after which nothing is possible: what is ruled out stays so, so that halves are looked at."""
        first = part.start
        last = part.stop - 1
        while first < last:
            half = (first + last) // 2 + 1
            after = total + evidence.of(slice(first, half), None)
            first, last, total = (first, half - 1, total) if self._rules_out_all(after) else (half, last, after)
        possible = int((self.log_prior + total > -np.inf).sum())
        noisy = "Allow for mistakes with likelihood='label_noise', or add hypotheses."
        advice = noisy if self.likelihood == "noise_free" else "Add hypotheses."
        return errors.ImpossibleEvidence(
            f"row {first:,} has probability zero under every hypothesis that was still possible ({possible:,} of "
            f"{len(self):,}), so there is no posterior. The space is as it was before the update. {advice}",
            row=first,
            n_possible=possible,
        )

    def _evidence(
        self, rows: Any, target: Any, predictions: Any, likelihoods: Any, log_likelihoods: Any
    ) -> _Likelihoods:
        outright = {"likelihoods": likelihoods, "log_likelihoods": log_likelihoods}
        kinds = {"rows": rows, "predictions": predictions, **outright}
        there = [kind for kind, value in kinds.items() if value is not None]
        errors.require(len(there) == 1, "the evidence", " and ".join(there) or None, f"one of {', '.join(kinds)}")
        if there[0] in outright:
            errors.require(target is None, "target", target, f"omitted when {there[0]} are given")
            return self._outright(outright[there[0]], there[0])
        errors.require(target is not None, "target", target, "a column's name, or each row's label or number")
        table = None if rows is None else Examples(rows, target)
        predicted = self._predictions(table, predictions)
        column = vector(target) if table is None else table.target(target)
        if len(column) != predicted.n_rows:
            raise errors.length_mismatch("targets", len(column), predicted.n_rows)
        truth = self._truth(column)

        def of(part: slice, chosen: Chosen) -> Real:
            if predicted.mistakes is not None:
                wrong = predicted.mistakes(part, truth[part], chosen)
                return self._of_mistakes(wrong, part.stop - part.start)
            return self._log_likelihood_of(self._check(predicted, part, chosen), truth[part])

        return _Likelihoods(predicted.n_rows, of, max(predicted.at_once, predicted.counted_at_once))

    def _outright(self, values: Any, what: str) -> _Likelihoods:
        """Likelihoods, or their logarithms, said outright."""
        logs = what == "log_likelihoods"
        numbers = self._matrix(by_name(what, values, self.names), what)

        def of(part: slice, chosen: Chosen) -> Real:
            values = floats(block := numbers[part] if chosen is None else numbers[part, chosen])
            if logs:
                wrong = ~(np.isneginf(values) | (np.abs(values) <= LARGEST))
                self._refuse(
                    wrong,
                    block,
                    part,
                    chosen,
                    "log-likelihood",
                    "a number of at most 1e300 in absolute value, or −inf,",
                )
                return np.asarray(values.sum(axis=0))
            wrong = ~(np.isfinite(values) & (values >= 0))
            self._refuse(wrong, block, part, chosen, "likelihood", "a finite number of at least 0")
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(values).sum(axis=0))

        return _Likelihoods(len(numbers), of)

    def _truth(self, column: Array) -> Array:
        """The targets as the likelihood takes them: numbers, or the numbers of labels."""
        gaussian = self.likelihood == "gaussian"
        values = floats(column) if gaussian else codes(column, self.labels)
        for row in np.flatnonzero(~np.isfinite(values) if gaussian else values < 0).tolist():
            value = plain(column[row])
            what = f"the target of row {row:,} is {value!r},"
            if gaussian:
                raise errors.BadValue(
                    f"{what} but must be a finite number. Remove the row, or choose another likelihood=.",
                    value=value,
                    row=row,
                )
            raise errors.UnknownLabel(
                f"{what} which is not one of the labels.{errors.did_you_mean(value, self.labels)}\n  Labels: "
                f"{errors.listed(map(repr, self.labels))}. Name all labels with labels=[...], or remove the row.",
                value=value,
                row=row,
            )
        return values

    def _log_likelihood_of(self, predicted: Array, truth: Array) -> Real:
        """log P(targets of some rows | h), of each hypothesis."""
        n = len(truth)
        if self.likelihood == "gaussian":
            with np.errstate(over="ignore"):
                distances = predicted - truth[:, None]
                distances /= self.noise
                squares = np.einsum("rh,rh->h", distances, distances)
            return np.asarray(-0.5 * squares - n * (log(self.noise) + 0.5 * log(2 * pi)))
        if self.likelihood == "bernoulli":
            with np.errstate(divide="ignore"):
                yes = np.log(predicted[truth == 1]).sum(axis=0)
                no = np.log1p(-predicted[truth == 0]).sum(axis=0)
            return np.asarray(yes + no)
        return self._of_mistakes((predicted != truth[:, None]).sum(axis=0, dtype=np.uint8 if n < 256 else np.int64), n)

    def _of_mistakes(self, wrong: Array, n_rows: int) -> Real:
        """log P(labels of some rows | h), where each hypothesis gets so many of them wrong."""
        if self.noise == 0:
            return np.where(wrong > 0, -np.inf, 0.0)
        right = log1p(-self.noise)
        mistake = log(self.noise / (len(self.labels) - 1))
        return np.asarray(n_rows * right + wrong * (mistake - right))

    # What hypotheses say ----------------------------------------------------------------------------------------------

    def predictive(self, rows: Any = None, *, predictions: Any = None) -> Real:
        """Returns P(label | row) (rows × labels), averaged over the posterior of the hypotheses.

        >>> three = Hypotheses(["h1", "h2", "h3"], prior=[0.4, 0.3, 0.3], labels=["+", "-"])
        >>> three.predictive(predictions=["+", "-", "-"]).round(2).tolist()
        [[0.4, 0.6]]
        """
        predicts_labels = self.likelihood != "gaussian"
        requirement = "a space with labels here; bayes_optimal has the mean number"
        errors.require(predicts_labels, "likelihood", "gaussian", requirement)
        hypotheses, weights = self._heard()
        n_labels = len(self.labels)

        def shares_of(block: Array) -> Real:
            if self.likelihood == "bernoulli":
                second = np.clip(block @ weights, 0.0, 1.0)
                return np.stack([1.0 - second, second], axis=1)
            shares = np.zeros((len(block), n_labels))
            for start in range(0, len(weights), COLUMNS):  # a few hypotheses at a time stay in the processor's reach
                part = slice(start, start + COLUMNS)
                for label in range(n_labels):
                    shares[:, label] += (block[:, part] == label) @ weights[part]
            return shares

        shares = self._answers(rows, predictions, hypotheses, shares_of)
        return (1.0 - self.noise) * shares + self.noise / (n_labels - 1) * (1.0 - shares) if self.noise else shares

    def bayes_optimal(self, rows: Any = None, *, predictions: Any = None) -> Array:
        """Returns the most probable label of each row, averaged over all hypotheses; for numbers, the mean. No other
        answer makes fewer mistakes on average.

        >>> three = Hypotheses(["h1", "h2", "h3"], prior=[0.4, 0.3, 0.3], labels=["+", "-"])
        >>> three.map, three.bayes_optimal(predictions=["+", "-", "-"]).tolist()
        ('h1', ['-'])
        """
        if self.likelihood != "gaussian":
            shares = self.predictive(rows, predictions=predictions)
            return self._words((shares >= shares.max(axis=1, keepdims=True) - ALIKE).argmax(axis=1))
        heard, weights = self._heard()
        return self._answers(rows, predictions, heard, lambda block: block @ weights)

    def gibbs(self, rows: Any = None, *, predictions: Any = None, seed: int = 0) -> Array:
        """Returns the predictions of one hypothesis that is drawn from the posterior with ``seed``.

        Averaged over targets drawn from the prior, it makes at most twice as many mistakes as ``bayes_optimal``.

        >>> three = Hypotheses(["h1", "h2", "h3"], prior=[0.4, 0.3, 0.3], labels=["+", "-"])
        >>> "".join(three.gibbs(predictions=["+", "-", "-"], seed=seed).item() for seed in range(10))
        '--++----+-'
        """
        errors.check_whole("seed", seed, 0)
        drawn = np.random.default_rng(seed).choice(len(self), 1, p=self.posterior)
        answers = self._answers(rows, predictions, drawn, lambda block: block[:, 0])
        if self.likelihood == "gaussian":
            return answers
        return self._words(((answers > 0.5) if self.likelihood == "bernoulli" else answers).astype(np.int64))

    def _answers(self, rows: Any, predictions: Any, chosen: Chosen, answer: Callable[[Array], Array]) -> Array:
        """What is made of the predictions of some hypotheses, block by block."""
        predicted = self._predictions(rows, predictions)
        blocks = list(_blocks(predicted.n_rows, len(self), predicted.at_once)) or [slice(0, 0)]
        return np.concatenate([answer(self._check(predicted, part, chosen)) for part in blocks])

    def _heard(self) -> tuple[Chosen, Real]:
        heard = np.flatnonzero(self.posterior)
        return (None, self.posterior) if len(heard) == len(self) else (heard, self.posterior[heard])

    def _words(self, numbers: Array) -> Array:
        return vector(self.labels)[numbers]

    def _predictions(self, rows: Any, predictions: Any) -> Predictions:
        errors.require((rows is None) != (predictions is None), "rows", rows, "given, or replaced by predictions=")
        if predictions is not None:
            array = self._matrix(predictions, "predictions")
            return Predictions(len(array), lambda part, chosen: array[part] if chosen is None else array[part, chosen])
        if self._asked is None:
            raise errors.BadSetting(
                "these hypotheses are only names, so they cannot predict rows. Pass predictions= (rows × "
                "hypotheses), or create the space from functions of a row."
            )
        return self._asked.on(rows if isinstance(rows, Examples) else Examples(rows))

    def _matrix(self, values: Any, what: str) -> Array:
        """Rows × hypotheses; a single row may come as it is."""
        array = matrix(values)
        if array.ndim == 1 and len(array) in (0, len(self)):
            array = array.reshape(-1, len(self))
        if array.ndim != 2 or array.shape[1] != len(self):
            raise unlike_hypotheses(what, array.shape, len(self))
        return array

    def _check(self, predicted: Predictions, part: slice, chosen: Chosen) -> Array:
        """Predictions as the likelihood takes them: numbers, probabilities, or the numbers of labels."""
        block = predicted.of(part, chosen)
        if predicted.mistakes is not None:
            return block
        if self.likelihood in ("gaussian", "bernoulli"):
            values = floats(block)
            share = self.likelihood == "bernoulli"
            wrong = ~((values >= 0) & (values <= 1)) if share else ~np.isfinite(values)
            needed = "a probability from 0 to 1" if share else "a finite number"
            self._refuse(wrong, block, part, chosen, "prediction", needed)
            return values
        numbers = codes(block, self.labels)
        if numbers.min(initial=0) < 0:
            r, h = np.argwhere(numbers < 0)[0].tolist()
            value = plain(block[r, h])
            name = self._name(h, chosen)
            row = part.start + r
            raise errors.UnknownLabel(
                f"hypothesis {name!r} predicts {value!r} for row {row:,}, which is not one of the labels.\n  Labels: "
                f"{errors.listed(map(repr, self.labels))}. Name all labels with labels=[...].",
                value=value,
                hypothesis=name,
                row=row,
            )
        return numbers

    def _refuse(self, wrong: Array, block: Array, part: slice, chosen: Chosen, what: str, needed: str) -> None:
        if wrong.any():
            r, h = np.argwhere(wrong)[0].tolist()
            raise bad_number(what, plain(block[r, h]), self._name(h, chosen), needed, part.start + r)

    def _name(self, h: int, chosen: Chosen) -> Any:
        return self.names[h if chosen is None else int(chosen[h])]


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The posteriors before any row and after each row.

    ``posteriors`` are those of ``names`` (steps × hypotheses), ``n_possible`` is the number of hypotheses that are
    possible at each step, and ``first`` and ``last`` are the spaces at both ends.

    >>> seen = Hypotheses(["a", "b", "c"]).trace(predictions=[[1, 1, 0], [0, 1, 0]], target=[True, False])
    >>> seen.n_possible.tolist(), seen.last.map
    ([3, 2, 1], 'a')
    """

    names: list[Any]
    posteriors: Real
    n_possible: NDArray[np.int64]
    first: Hypotheses
    last: Hypotheses

    @property
    def others(self) -> Real:
        """The posterior of all other hypotheses together, at each step."""
        return np.asarray(np.clip(1.0 - self.posteriors.sum(axis=1), 0.0, 1.0))

    def __str__(self) -> str:
        return f"Trace of {_rows(len(self.posteriors) - 1)}\nfrom {self.first}\nto {self.last}"

    __repr__ = __str__


@dataclass(frozen=True)
class _Likelihoods:
    """Rows, and the log-likelihood of some of them under each hypothesis."""

    n_rows: int
    of: Callable[[slice, Chosen], Real]
    at_once: int = 8  # rows


def _first_best(scores: Real) -> int:
    """The first of those that are highest, but for rounding."""
    top = float(scores.max())
    return int((scores >= top - ALIKE * max(1.0, abs(top))).argmax()) if isfinite(top) else 0


def _blocks(n_rows: int, width: int, at_once: int) -> Iterator[slice]:
    """As many rows at a time as fit, by so many."""
    height = max(CELLS // width // at_once, 1) * at_once
    for start in range(0, n_rows, height):
        yield slice(start, min(start + height, n_rows))


def _rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"


# What it is made from ------------------------------------------------------------------------------------------------


def name_hypotheses(hypotheses: Any) -> tuple[Sequence[Any], Askable | None]:
    """Returns the names of the hypotheses and, if they can make predictions, the object that does."""
    if isinstance(hypotheses, Askable) and isinstance(hypotheses, Sequence):  # as a generator makes them
        return hypotheses, hypotheses
    if isinstance(hypotheses, (int, np.integer)) and not isinstance(hypotheses, bool):
        errors.require(1 <= hypotheses <= MOST, "hypotheses", hypotheses, f"a number from 1 to {MOST:,}")
        return range(int(hypotheses)), None
    if isinstance(hypotheses, (str, bytes)) or not isinstance(hypotheses, Iterable):
        raise errors.bad_setting("hypotheses", hypotheses, "a list of functions or of names, or how many there are")
    by_name = isinstance(hypotheses, Mapping)
    members = list(hypotheses.values()) if isinstance(hypotheses, Mapping) else [plain(member) for member in hypotheses]
    errors.require(members, "hypotheses", {} if by_name else [], "one at least")
    callables = sum(map(callable, members))
    if callables != len(members) and (callables or by_name):
        odd = next(member for member in members if not callable(member))
        raise errors.bad_setting("hypotheses", odd, "all functions of a row, or all names")
    names = list(hypotheses) if by_name else members
    if callables and not by_name:  # their own names if these tell them apart, else h1, h2, …
        names = [getattr(function, "__name__", "") for function in members]
        if len(set(names)) < len(names) or {"", "<lambda>"} & set(names):
            names = [f"h{i}" for i in range(1, len(names) + 1)]
    seen = set()
    for name in names:
        errors.require(is_hashable(name), "hypotheses", name, "functions of a row, or names such as texts and numbers")
        errors.require(name not in seen, "hypotheses", name, "different from each other, but this name occurs twice")
        seen.add(name)
    return names, Functions(members) if callables else None


def log_prior(names: Sequence[Any], prior: Any, lengths: Any) -> Real:
    """Returns the normalised log P(h)."""
    by_length = isinstance(prior, str) and prior == "description_length"
    errors.require(
        by_length == (lengths is not None),
        "lengths",
        lengths,
        "the bits of each hypothesis, used together with prior='description_length'",
    )
    if by_length:
        bits = _of_each("length", lengths, names)
        shares = -(bits - bits.min()) * log(2)
        return np.asarray(shares - np.log(np.exp(shares).sum()))
    if isinstance(prior, str):
        if prior != "uniform":
            raise errors.unknown_choice("prior", prior, ("uniform", "description_length"))
        return np.full(len(names), -log(len(names)))
    shares = _of_each("prior", prior, names)
    total = float(shares.sum())
    if abs(total - 1.0) > ROUNDING:
        advice = "Divide them by their sum, or pass prior='uniform'."
        raise errors.BadPrior(f"the prior probabilities sum to {total:.12g}, but must sum to 1. {advice}", total=total)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares / total))


def _of_each(what: str, numbers: Any, names: Sequence[Any]) -> Real:
    array = matrix(by_name(f"the {what}", numbers, names))
    errors.require(array.ndim, f"the {what}", numbers, "a number for each hypothesis")
    if array.shape != (len(names),):
        raise unlike_hypotheses(f"the {what}", array.shape, len(names))
    values = floats(array)
    for h in np.flatnonzero(~(np.isfinite(values) & (values >= 0))).tolist():
        raise bad_number(what, plain(array[h]), names[h], "a finite number of at least 0")
    return values


def by_name(what: str, numbers: Any, names: Sequence[Any]) -> Any:
    """Returns numbers given by name in the order of the hypotheses, and others unchanged."""
    if not isinstance(numbers, Mapping):
        return numbers
    known_names = set(names)
    for name in (name for name in numbers if name not in known_names):
        raise errors.UnknownHypothesis(
            f"{what} names {name!r}, which is not a hypothesis.{errors.did_you_mean(name, names)}\n  Hypotheses: "
            f"{errors.listed(names)}",
            name=name,
        )
    if lacking := [name for name in names if name not in numbers]:
        raise errors.UnknownHypothesis(
            f"{what} has no number for {errors.listed(map(repr, lacking))}. Every hypothesis needs one.",
            name=lacking[0],
        )
    return [numbers[name] for name in names]


def check_noise(likelihood: Any, noise: Any) -> float:
    if not isinstance(likelihood, str) or likelihood not in LIKELIHOODS:
        raise errors.unknown_choice("likelihood", likelihood, LIKELIHOODS)
    if likelihood in ("noise_free", "bernoulli"):
        errors.require(noise is None, "noise", noise, f"omitted when likelihood={likelihood!r}")
        return 0.0
    number = isinstance(noise, (int, float, np.integer, np.floating)) and not isinstance(noise, bool)
    if likelihood == "label_noise":
        share = number and 0 <= noise < 1
        errors.require(share, "noise", noise, "the probability of a wrong label: at least 0 and below 1")
    else:
        positive = number and isfinite(noise) and noise > 0
        errors.require(positive, "noise", noise, "the standard deviation of the numbers, above 0")
    return float(noise)


def check_labels(labels: Any, likelihood: str) -> tuple[Any, ...]:
    values = tuple(vector(labels, "labels").tolist())
    usable = all(is_hashable(label) and not is_missing(label) for label in values) and len(set(values)) == len(values)
    yes_or_no = likelihood == "bernoulli"
    errors.require(
        usable and (len(values) == 2 if yes_or_no else len(values) > 1),
        "labels",
        list(values),
        f"texts, numbers or booleans, {'two' if yes_or_no else 'at least two'} and different",
    )
    return values


def unlike_hypotheses(what: str, shape: tuple[int, ...], n_hypotheses: int) -> errors.LengthMismatch:
    turned = " Transpose it: it is hypotheses × rows." if len(shape) == 2 and shape[0] == n_hypotheses else ""
    text = f"{what} has the shape {shape}, but there are {n_hypotheses:,} hypotheses. Pass one per hypothesis."
    return errors.LengthMismatch(text + turned, shape=shape)


def bad_number(what: str, value: Any, hypothesis: Any, needed: str, row: int | None = None) -> errors.BadValue:
    """Raised for an invalid prior, length, likelihood or prediction."""
    place = "" if row is None else f" for row {row:,}"
    return errors.BadValue(
        f"the {what} of hypothesis {hypothesis!r}{place} is {value!r}, but must be {needed}. Fix it, or remove the "
        "hypothesis.",
        value=value,
        hypothesis=hypothesis,
        row=row,
    )
