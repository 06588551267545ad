"""Hypotheses: their probabilities before and after rows, and their joint predictions."""

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
from banbury.hypotheses.examples import ALL, Askable, Examples, Functions, HypothesisNumbers, Predictions
from banbury.hypotheses.values import Array, codes, floats, is_hashable, is_missing, matrix, vector

Likelihood = Literal["noise_free", "label_noise", "gaussian", "bernoulli"]

LIKELIHOODS = get_args(Likelihood)
MOST_HYPOTHESES = 10_000_000  # hypotheses in a space
PRIOR_SUM_TOLERANCE = 1e-6  # the sum of a prior may differ from one by so much, as in single precision
CELLS_PER_BLOCK = 2**23  # of predictions (rows × hypotheses) that are computed together
HYPOTHESES_TOGETHER = 2**11  # hypotheses whose votes are counted together
SCORE_TOLERANCE = 1e-12  # scores with a smaller relative difference are equal
# The highest absolute value of a log-likelihood: the sum of a hundred million of them is still finite.
LARGEST_LOG_LIKELIHOOD = 1e300


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
    log_prior: Real  # normalised, one per hypothesis
    log_likelihood: Real  # of all rows so far, one per hypothesis
    n_rows: int  # so far
    likelihood: Likelihood
    noise: float  # 0 for a likelihood without noise
    labels: tuple[Any, ...]
    _askable: Askable | None  # makes the predictions; None if the hypotheses are only names

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
        """Names the hypotheses and checks all arguments: ``prior``, ``lengths``, ``likelihood``, ``noise`` and
        ``labels`` are those that the class describes.
        """
        names, askable = name_hypotheses(hypotheses)
        self._set(
            names=names,
            log_prior=log_prior(names, prior, lengths),
            log_likelihood=np.zeros(len(names)),
            n_rows=0,
            likelihood=likelihood,
            noise=check_noise(likelihood, noise),
            labels=check_labels(labels, likelihood),
            _askable=askable,
        )

    def _set(self, **values: Any) -> None:
        """Sets fields of the frozen object by name; arrays become read-only."""
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def _after(self, evidence: _Likelihoods, row_slice: slice) -> Self:
        """Returns the space after a slice of the rows in ``evidence``, whose ``of`` returns their log-likelihood under
        each hypothesis. Raises ImpossibleEvidence if no hypothesis remains possible.
        """
        log_likelihood = self.log_likelihood + evidence.of(row_slice, ALL)
        if self._rules_out_all(log_likelihood):
            raise self._impossible(evidence, self.log_likelihood, row_slice)
        space = object.__new__(type(self))
        space._set(**{field.name: getattr(self, field.name) for field in fields(self)})
        space._set(log_likelihood=log_likelihood, n_rows=self.n_rows + row_slice.stop - row_slice.start)
        return space

    def __len__(self) -> int:
        """Returns the number of hypotheses."""
        return len(self.log_prior)

    # What is believed -------------------------------------------------------------------------------------------------

    @property
    def log_joint(self) -> Real:
        """Returns log P(h) P(rows | h) of each hypothesis."""
        return self.log_prior + self.log_likelihood

    @cached_property
    def _scale(self) -> tuple[float, float]:
        """The highest log joint, and the log of the sum of all joints relative to it; their sum is log P(rows). Kept
        apart, since beside −1e20 the second would be lost.
        """
        log_joint = self.log_joint  # one per hypothesis
        highest = float(log_joint.max())
        return highest, float(np.log(np.exp(log_joint - highest).sum()))

    @property
    def log_evidence(self) -> float:
        """Returns log P(rows): the likelihood averaged over the prior."""
        return sum(self._scale)

    @cached_property
    def posterior(self) -> Real:
        """P(h | rows) of each hypothesis.

        >>> far = Hypotheses(3, prior=[0.5, 0.25, 0.25]).update(log_likelihoods=[-1000.0, -1000.0, -2000.0])
        >>> far.posterior.round(3).tolist()
        [0.667, 0.333, 0.0]
        """
        log_joint = self.log_joint
        posterior: Real = np.exp(log_joint - log_joint.max())
        posterior /= posterior.sum()
        posterior.flags.writeable = False
        return posterior

    @property
    def log_posterior(self) -> Real:
        """Returns log P(h | rows), also where the probability underflows; −∞ means impossible."""
        highest, log_sum = self._scale
        return self.log_joint - highest - log_sum

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
        errors.check_whole("n", n, low=0)
        log_joint = self.log_joint  # one per hypothesis
        best = np.argsort(-log_joint, kind="stable")[:n].tolist()  # numbers of hypotheses
        return [(self.names[h], float(self.posterior[h])) for h in best if log_joint[h] > -np.inf]

    def __str__(self) -> str:
        """Returns the number of hypotheses and rows, and the eight most probable hypotheses with their posteriors."""
        n_hypotheses = len(self)
        n_possible = int(self.possible.sum())
        hypotheses = f"{n_hypotheses:,} hypothes{'i' if n_hypotheses == 1 else 'e'}s"
        title = f"{hypotheses} after {_rows_in_words(self.n_rows)}, {n_possible:,} of them possible"
        lines = [
            f"  {posterior:.4f}  {errors.shortened(name, most=100)}" for name, posterior in self.most_probable(n=8)
        ]
        return "\n".join([title, *lines] + [f"  … and {n_possible - 8:,} more"] * (n_possible > 8))

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
        ``likelihoods`` or ``log_likelihoods`` are the probabilities of the evidence under each hypothesis (rows ×
        hypotheses, or one per hypothesis); they need not sum to one. Rows can be added all at once or one by one, in
        any order, with the same result.

        >>> days = {"sky": ["sunny", "rainy"], "play": ["yes", "no"]}
        >>> says = {"if sunny": lambda day: "yes" if day["sky"] == "sunny" else "no", "never": lambda day: "no"}
        >>> Hypotheses(says, labels=["no", "yes"]).update(days, "play").version_space
        ['if sunny']
        """
        evidence = self._evidence(rows, target, predictions, likelihoods, log_likelihoods)
        space = self
        # Blocks of a multiple of ``at_once`` rows, which cost little more than one.
        for row_slice in _blocks(evidence.n_rows, len(self), evidence.at_once):
            space = space._after(evidence, row_slice)
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
        errors.check_whole("n", n, low=1)
        evidence = self._evidence(rows, target, predictions, likelihoods, log_likelihoods)
        last = self  # the space after the rows so far
        highest = self.log_posterior  # the highest one that each hypothesis has reached
        # For each step the highest log joint, the log of the sum of joints relative to it, and how many are possible.
        scales = [(*self._scale, self.possible.sum())]
        for row in range(evidence.n_rows):
            last = last._after(evidence, slice(row, row + 1))
            np.maximum(highest, last.log_posterior, out=highest)
            scales.append((*last._scale, last.possible.sum()))
        # The numbers of the hypotheses to show, and their log-likelihoods: before, and then of each row alone (steps ×
        # hypotheses).
        shown = np.arange(len(self)) if len(self) <= n else np.lexsort((-last.log_joint, -highest))[:n]
        row_evidence = [self.log_likelihood[shown]] + [
            evidence.of(slice(row, row + 1), shown) for row in range(evidence.n_rows)
        ]
        highest_joints, log_sums, n_possible = np.array(scales).T  # one entry for each step
        posteriors = np.exp(
            self.log_prior[shown] + np.cumsum(row_evidence, axis=0) - highest_joints[:, None] - log_sums[:, None]
        )
        return Trace([self.names[h] for h in shown.tolist()], posteriors, n_possible.astype(np.int64), self, last)

    def _rules_out_all(self, log_likelihood: Real) -> bool:
        """Returns whether no hypothesis is possible with these log-likelihoods, one per hypothesis."""
        return bool((self.log_prior + log_likelihood).max() == -np.inf)

    def _impossible(self, evidence: _Likelihoods, log_likelihood: Real, row_slice: slice) -> errors.ImpossibleEvidence:
        """Returns the error that names the row of the slice of the evidence after which no hypothesis is possible,
        found by bisection. ``log_likelihood`` is that of each hypothesis before the slice.
        """
        first = row_slice.start  # the row is between these two
        last = row_slice.stop - 1
        while first < last:
            middle = (first + last) // 2 + 1
            log_likelihood_after = log_likelihood + evidence.of(slice(first, middle), ALL)
            if self._rules_out_all(log_likelihood_after):
                last = middle - 1
            else:
                first = middle
                log_likelihood = log_likelihood_after
        n_possible = int((self.log_prior + log_likelihood > -np.inf).sum())
        advice_on_noise = "Allow for mistakes with likelihood='label_noise', or add hypotheses."
        advice = advice_on_noise if self.likelihood == "noise_free" else "Add hypotheses."
        return errors.ImpossibleEvidence(
            f"row {first:,} has probability zero under every hypothesis that was still possible ({n_possible:,} of "
            f"{len(self):,}), so there is no posterior. The space is as it was before the update. {advice}",
            row=first,
            n_possible=n_possible,
        )

    def _evidence(
        self, rows: Any, target: Any, predictions: Any, likelihoods: Any, log_likelihoods: Any
    ) -> _Likelihoods:
        """Returns the log-likelihoods of the rows, from the one kind of evidence that is given (``rows``,
        ``predictions``, ``likelihoods`` or ``log_likelihoods``); the others are None. They and ``target`` are those of
        ``update``. Raises an error for none or several.
        """
        arguments = {
            "rows": rows,
            "predictions": predictions,
            "likelihoods": likelihoods,
            "log_likelihoods": log_likelihoods,
        }
        evidence = {name: argument for name, argument in arguments.items() if argument is not None}
        errors.require(
            len(evidence) == 1, "the evidence", " and ".join(evidence) or None, f"one of {', '.join(arguments)}"
        )
        [(name, argument)] = evidence.items()  # the one that is given
        if name.endswith("likelihoods"):
            errors.require(target is None, "target", target, f"omitted when {name} are given")
            return self._evidence_of_likelihoods(argument, name)
        errors.require(target is not None, "target", target, "a column's name, or each row's label or number")
        examples = None if rows is None else Examples(rows, target)
        # Its ``mistakes`` is None unless the hypotheses count them.
        predicted = self._predictions(examples, predictions)
        column = vector(target) if examples is None else examples.target(target)  # one target per row
        if len(column) != predicted.n_rows:
            raise errors.length_mismatch("targets", len(column), predicted.n_rows)
        truth = self._truth(column)  # for each row a number, or the number of its label

        def log_likelihood_of(row_slice: slice, hypothesis_numbers: HypothesisNumbers) -> Real:
            """Returns log P(targets of a slice of rows | h) of some hypotheses, or of ALL, from their predictions
            (``predicted``) and the targets (``truth``, one per row).
            """
            if predicted.mistakes is not None:
                mistake_counts = predicted.mistakes(row_slice, truth[row_slice], hypothesis_numbers)
                return self._log_likelihood_of_mistakes(mistake_counts, row_slice.stop - row_slice.start)
            return self._log_likelihood_of(self._check(predicted, row_slice, hypothesis_numbers), truth[row_slice])

        return _Likelihoods(predicted.n_rows, log_likelihood_of, max(predicted.at_once, predicted.counted_at_once))

    def _evidence_of_likelihoods(self, values: Any, what: str) -> _Likelihoods:
        """Returns the evidence of ``values``, which are likelihoods or their logarithms (rows × hypotheses, or for one
        row by the names of the hypotheses). ``what`` is "likelihoods" or "log_likelihoods".
        """
        are_logs = what == "log_likelihoods"
        noun = "log-likelihood" if are_logs else "likelihood"
        requirement = (
            "a number of at most 1e300 in absolute value, or −inf," if are_logs else "a finite number of at least 0"
        )
        cells = self._matrix(order_by_name(what, values, self.names), what)  # rows × hypotheses

        def log_likelihood_of(row_slice: slice, hypothesis_numbers: HypothesisNumbers) -> Real:
            """Returns the log-likelihood of a slice of rows under some hypotheses, or under ALL. ``cells`` has
            log-likelihoods if ``are_logs``, otherwise likelihoods (rows × hypotheses). Raises BadValue for an invalid
            one, whose ``noun`` and ``requirement`` are for the message.
            """
            block = cells[row_slice, hypothesis_numbers]  # rows × hypotheses
            numbers = floats(block)
            is_valid = (
                np.isneginf(numbers) | (np.abs(numbers) <= LARGEST_LOG_LIKELIHOOD)
                if are_logs
                else np.isfinite(numbers) & (numbers >= 0)
            )
            self._refuse_cells(~is_valid, block, row_slice, hypothesis_numbers, noun, requirement)
            with np.errstate(divide="ignore"):
                return np.asarray((numbers if are_logs else np.log(numbers)).sum(axis=0))

        return _Likelihoods(len(cells), log_likelihood_of)

    def _truth(self, column: Array) -> Array:
        """Returns for each row its target if that is a number under a gaussian likelihood, otherwise the number of its
        label. Raises an error for any other value. ``column`` has one target per row.
        """
        is_gaussian = self.likelihood == "gaussian"
        values = floats(column) if is_gaussian else codes(column, self.labels)
        for row in np.flatnonzero(~np.isfinite(values) if is_gaussian else values < 0).tolist():
            value = plain(column[row])
            fact = f"the target of row {row:,} is {value!r},"
            if is_gaussian:
                raise errors.BadValue(
                    f"{fact} but must be a finite number. Remove the row, or choose another likelihood=.",
                    value=value,
                    row=row,
                )
            raise errors.UnknownLabel(
                f"{fact} which is not one of the labels.{errors.did_you_mean(value, self.labels)}\n  Labels: "
                f"{errors.listed(map(repr, self.labels))}. Name all labels with labels=[...], or remove the row.",
                value=value,
                row=row,
            )
        return values

    def _log_likelihood_of(self, predicted: Array, truth: Array) -> Real:
        """Returns log P(targets of some rows | h) of each hypothesis. ``predicted`` has numbers, probabilities of the
        second label or label numbers, depending on the likelihood (rows × hypotheses); ``truth`` has the target of each
        row as a number or label number. ``self.noise`` is the standard deviation of numbers.
        """
        n_rows = len(truth)
        if self.likelihood == "gaussian":
            with np.errstate(over="ignore"):
                distances = predicted - truth[:, None]
                distances /= self.noise
                squares = np.einsum("rh,rh->h", distances, distances)
            return np.asarray(-0.5 * squares - n_rows * (log(self.noise) + 0.5 * log(2 * pi)))
        if self.likelihood == "bernoulli":
            with np.errstate(divide="ignore"):
                log_yes = np.log(predicted[truth == 1]).sum(axis=0)
                log_no = np.log1p(-predicted[truth == 0]).sum(axis=0)
            return np.asarray(log_yes + log_no)
        return self._log_likelihood_of_mistakes(
            (predicted != truth[:, None]).sum(axis=0, dtype=np.uint8 if n_rows < 256 else np.int64), n_rows
        )

    def _log_likelihood_of_mistakes(self, n_mistakes: Array, n_rows: int) -> Real:
        """Returns log P(labels of ``n_rows`` rows | h) of each hypothesis. ``n_mistakes`` has the number of mistakes of
        each, and ``self.noise`` is the probability that a label is observed as another one.
        """
        if self.noise == 0:
            return np.where(n_mistakes > 0, -np.inf, 0.0)
        log_right = log1p(-self.noise)
        log_wrong = log(self.noise / (len(self.labels) - 1))
        return np.asarray(n_rows * log_right + n_mistakes * (log_wrong - log_right))

    # What hypotheses say ----------------------------------------------------------------------------------------------

    def predictive(self, rows: Any = None, *, predictions: Any = None) -> Real:
        """Returns P(label | row) (rows × labels), averaged over the posterior of the hypotheses. Pass either ``rows``,
        for which the hypotheses make predictions, or their ``predictions`` (rows × hypotheses).

        >>> three = Hypotheses(["h1", "h2", "h3"], prior=[0.4, 0.3, 0.3], labels=["+", "-"])
        >>> three.predictive(predictions=["+", "-", "-"]).round(2).tolist()
        [[0.4, 0.6]]
        """
        predicts_labels = self.likelihood != "gaussian"
        requirement = "a space with labels here; bayes_optimal has the mean number"
        errors.require(predicts_labels, "likelihood", "gaussian", requirement)
        hypotheses, weights = self._possible_hypotheses()  # their numbers and their posteriors
        n_labels = len(self.labels)

        def probabilities_of(block: Array) -> Real:
            """Returns P(label) for each row of a block of predictions (rows × labels, from rows × hypotheses): their
            mean under the posteriors of the hypotheses, ``weights``. The block has label numbers; probabilities of the
            second label if the likelihood is "bernoulli".
            """
            if self.likelihood == "bernoulli":
                probability_of_second = np.clip(block @ weights, 0.0, 1.0)
                return np.stack([1.0 - probability_of_second, probability_of_second], axis=1)
            probabilities = np.zeros((len(block), n_labels))
            # A few hypotheses at a time stay in the processor's reach. The block has their label numbers.
            for start in range(0, len(weights), HYPOTHESES_TOGETHER):
                column_slice = slice(start, start + HYPOTHESES_TOGETHER)
                for label in range(n_labels):
                    probabilities[:, label] += (block[:, column_slice] == label) @ weights[column_slice]
            return probabilities

        probabilities = self._answers(rows, predictions, hypotheses, probabilities_of)
        return (
            (1.0 - self.noise) * probabilities + self.noise / (n_labels - 1) * (1.0 - probabilities)
            if self.noise
            else probabilities
        )

    def bayes_optimal(self, rows: Any = None, *, predictions: Any = None) -> Array:
        """Returns the most probable label of each row, averaged over all hypotheses; for numbers, the mean. No other
        answer makes fewer mistakes on average. Pass either ``rows`` or ``predictions``, as for ``predictive``.

        >>> three = Hypotheses(["h1", "h2", "h3"], prior=[0.4, 0.3, 0.3], labels=["+", "-"])
        >>> three.map, three.bayes_optimal(predictions=["+", "-", "-"]).tolist()
        ('h1', ['-'])
        """
        if self.likelihood != "gaussian":
            probabilities = self.predictive(rows, predictions=predictions)
            return self._labels_of(
                (probabilities >= probabilities.max(axis=1, keepdims=True) - SCORE_TOLERANCE).argmax(axis=1)
            )
        hypotheses, weights = self._possible_hypotheses()  # their numbers and their posteriors
        return self._answers(rows, predictions, hypotheses, lambda block: block @ weights)

    def gibbs(self, rows: Any = None, *, predictions: Any = None, seed: int = 0) -> Array:
        """Returns the predictions of one hypothesis that is drawn from the posterior with ``seed``. Pass either
        ``rows`` or ``predictions``, as for ``predictive``.

        Averaged over targets drawn from the prior, it makes at most twice as many mistakes as ``bayes_optimal``.

        >>> three = Hypotheses(["h1", "h2", "h3"], prior=[0.4, 0.3, 0.3], labels=["+", "-"])
        >>> "".join(three.gibbs(predictions=["+", "-", "-"], seed=seed).item() for seed in range(10))
        '--++----+-'
        """
        errors.check_whole("seed", seed, low=0)
        drawn_hypothesis = np.random.default_rng(seed).choice(len(self), size=1, p=self.posterior)  # its number
        answers = self._answers(rows, predictions, drawn_hypothesis, lambda block: block[:, 0])
        if self.likelihood == "gaussian":
            return answers
        return self._labels_of(((answers > 0.5) if self.likelihood == "bernoulli" else answers).astype(np.int64))

    def _answers(
        self, rows: Any, predictions: Any, hypothesis_numbers: HypothesisNumbers, answer: Callable[[Array], Array]
    ) -> Array:
        """Returns what ``answer`` makes of the predictions of these hypotheses (rows × hypotheses): an array with an
        entry or a row for each row, computed block by block. Either ``rows`` or ``predictions`` is given, as for
        ``predictive``; the other is None.
        """
        predicted = self._predictions(rows, predictions)
        blocks = list(_blocks(predicted.n_rows, len(self), predicted.at_once)) or [slice(0, 0)]
        return np.concatenate([answer(self._check(predicted, row_slice, hypothesis_numbers)) for row_slice in blocks])

    def _possible_hypotheses(self) -> tuple[HypothesisNumbers, Real]:
        """Returns the numbers of the hypotheses with a positive posterior (or ALL), and their posteriors."""
        numbers = np.flatnonzero(self.posterior)
        return (ALL, self.posterior) if len(numbers) == len(self) else (numbers, self.posterior[numbers])

    def _labels_of(self, numbers: Array) -> Array:
        """Returns the labels with these numbers, as an array."""
        return vector(self.labels)[numbers]

    def _predictions(self, rows: Any, predictions: Any) -> Predictions:
        """Returns the predictions that ``_askable`` makes for ``rows`` (it is None if hypotheses are only names), or
        the given ``predictions`` (rows × hypotheses). The result returns a block of them for a slice of rows and
        hypothesis numbers. Raises an error unless exactly one of the two is given; the other is None.
        """
        errors.require((rows is None) != (predictions is None), "rows", rows, "given, or replaced by predictions=")
        if predictions is not None:
            array = self._matrix(predictions, "predictions")
            return Predictions(len(array), lambda row_slice, hypothesis_numbers: array[row_slice, hypothesis_numbers])
        if self._askable is None:
            raise errors.BadSetting(
                "these hypotheses are only names, so they cannot predict rows. Pass predictions= (rows × "
                "hypotheses), or create the space from functions of a row."
            )
        return self._askable.on(rows if isinstance(rows, Examples) else Examples(rows))

    def _matrix(self, values: Any, what: str) -> Array:
        """Returns the values as a matrix, rows × hypotheses; a vector is a single row. Raises LengthMismatch for
        another shape. ``what`` says what they are, for the message.
        """
        array = matrix(values)
        if array.ndim == 1 and len(array) in (0, len(self)):
            array = array.reshape(-1, len(self))
        if array.ndim != 2 or array.shape[1] != len(self):
            raise unlike_hypotheses(what, array.shape, len(self))
        return array

    def _check(self, predicted: Predictions, row_slice: slice, hypothesis_numbers: HypothesisNumbers) -> Array:
        """Returns the predictions of some hypotheses for a slice of rows as the likelihood needs them (rows ×
        hypotheses): numbers, probabilities, or label numbers. ``predicted`` makes the predictions. Raises an error for
        others.
        """
        block = predicted.of(row_slice, hypothesis_numbers)  # rows × hypotheses
        if predicted.mistakes is not None:  # then they are label numbers already
            return block
        if self.likelihood in ("gaussian", "bernoulli"):
            values = floats(block)
            is_probability = self.likelihood == "bernoulli"
            is_wrong = ~((values >= 0) & (values <= 1)) if is_probability else ~np.isfinite(values)
            needed = "a probability from 0 to 1" if is_probability else "a finite number"
            self._refuse_cells(is_wrong, block, row_slice, hypothesis_numbers, "prediction", needed)
            return values
        numbers = codes(block, self.labels)  # of labels, −1 for other values
        if numbers.min(initial=0) < 0:
            row_in_block, h = np.argwhere(numbers < 0)[0].tolist()
            value = plain(block[row_in_block, h])
            name = self._name_of(h, hypothesis_numbers)
            row = row_slice.start + row_in_block
            raise errors.UnknownLabel(
                f"hypothesis {name!r} predicts {value!r} for row {row:,}, which is not one of the labels.\n  Labels: "
                f"{errors.listed(map(repr, self.labels))}. Name all labels with labels=[...].",
                value=value,
                hypothesis=name,
                row=row,
            )
        return numbers

    def _refuse_cells(
        self,
        is_wrong: Array,
        block: Array,
        row_slice: slice,
        hypothesis_numbers: HypothesisNumbers,
        what: str,
        needed: str,
    ) -> None:
        """Raises BadValue for the first cell of the block (rows × hypotheses) that is wrong. ``row_slice`` and
        ``hypothesis_numbers`` say where the block is from, ``what`` says what a cell is, such as "likelihood", and
        ``needed`` what it must be.
        """
        if is_wrong.any():
            row_in_block, h = np.argwhere(is_wrong)[0].tolist()
            raise bad_number(
                what,
                plain(block[row_in_block, h]),
                self._name_of(h, hypothesis_numbers),
                needed,
                row_slice.start + row_in_block,
            )

    def _name_of(self, h: int, hypothesis_numbers: HypothesisNumbers) -> Any:
        """Returns the name of the h-th of the hypotheses with these numbers."""
        return self.names[int(np.arange(len(self))[hypothesis_numbers][h])]


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
    def rest(self) -> Real:
        """The posterior of all other hypotheses together, at each step."""
        return np.asarray(np.clip(1.0 - self.posteriors.sum(axis=1), 0.0, 1.0))

    def __str__(self) -> str:
        """Returns the number of rows, and the spaces before and after them, as a text."""
        return f"Trace of {_rows_in_words(len(self.posteriors) - 1)}\nfrom {self.first}\nto {self.last}"

    __repr__ = __str__


@dataclass(frozen=True)
class _Likelihoods:
    """The evidence of ``n_rows`` rows. ``of(rows, hypotheses)`` is the log-likelihood of a slice of rows under each of
    some hypotheses, given by number, or of ALL.
    """

    n_rows: int
    of: Callable[[slice, HypothesisNumbers], Real]  # one number per hypothesis
    at_once: int = 8  # so many rows cost little more than one


def _first_best(scores: Real) -> int:
    """Returns the index of the first of the highest scores, which may differ by rounding; 0 if no score is finite."""
    highest = float(scores.max())
    return int((scores >= highest - SCORE_TOLERANCE * max(1.0, abs(highest))).argmax()) if isfinite(highest) else 0


def _blocks(n_rows: int, width: int, at_once: int) -> Iterator[slice]:
    """Yields slices of ``n_rows`` rows such that a block of ``width`` columns fits in memory; their lengths are
    multiples of ``at_once`` (rows), except the last.
    """
    height = max(CELLS_PER_BLOCK // width // at_once, 1) * at_once
    for start in range(0, n_rows, height):
        yield slice(start, min(start + height, n_rows))


def _rows_in_words(n: int) -> str:
    """Returns a number of rows with its noun, such as "2 rows"."""
    return f"{n:,} row{'' if n == 1 else 's'}"


# What it is made from ------------------------------------------------------------------------------------------------


def name_hypotheses(hypotheses: Any) -> tuple[Sequence[Any], Askable | None]:
    """Returns the names of the hypotheses, and the object that makes their predictions; None if they are only names.
    ``hypotheses`` are those of ``Hypotheses``. Raises an error for invalid ones.
    """
    if isinstance(hypotheses, Askable) and isinstance(hypotheses, Sequence):  # as a generator makes them
        return hypotheses, hypotheses
    if isinstance(hypotheses, (int, np.integer)) and not isinstance(hypotheses, bool):
        errors.require(
            1 <= hypotheses <= MOST_HYPOTHESES, "hypotheses", hypotheses, f"a number from 1 to {MOST_HYPOTHESES:,}"
        )
        return range(int(hypotheses)), None
    if isinstance(hypotheses, (str, bytes)) or not isinstance(hypotheses, Iterable):
        raise errors.bad_setting("hypotheses", hypotheses, "a list of functions or of names, or how many there are")
    is_mapping = isinstance(hypotheses, Mapping)  # from names to functions
    members = list(hypotheses.values()) if isinstance(hypotheses, Mapping) else [plain(member) for member in hypotheses]
    errors.require(members, "hypotheses", {} if is_mapping else [], "one at least")
    n_callables = sum(map(callable, members))
    if n_callables != len(members) and (n_callables or is_mapping):
        not_callable = next(member for member in members if not callable(member))
        raise errors.bad_setting("hypotheses", not_callable, "all functions of a row, or all names")
    names = list(hypotheses) if is_mapping else members
    if n_callables and not is_mapping:  # their own names if these tell them apart, else h1, h2, …
        names = [getattr(function, "__name__", "") for function in members]
        if len(set(names)) < len(names) or {"", "<lambda>"} & set(names):
            names = [f"h{i}" for i in range(1, len(names) + 1)]
    earlier_names = set()
    for name in names:
        errors.require(is_hashable(name), "hypotheses", name, "functions of a row, or names such as texts and numbers")
        errors.require(
            name not in earlier_names, "hypotheses", name, "different from each other, but this name occurs twice"
        )
        earlier_names.add(name)
    return names, Functions(members) if n_callables else None


def log_prior(names: Sequence[Any], prior: Any, lengths: Any) -> Real:
    """Returns the normalised log P(h) of the hypotheses ``names``. ``prior`` and ``lengths`` are those of
    ``Hypotheses``.
    """
    is_by_length = isinstance(prior, str) and prior == "description_length"
    errors.require(
        is_by_length == (lengths is not None),
        "lengths",
        lengths,
        "the bits of each hypothesis, used together with prior='description_length'",
    )
    if is_by_length:
        bits = _one_per_hypothesis("length", lengths, names)
        log_weights = -(bits - bits.min()) * log(2)
        return np.asarray(log_weights - np.log(np.exp(log_weights).sum()))
    if isinstance(prior, str):
        if prior != "uniform":
            raise errors.unknown_choice("prior", prior, ("uniform", "description_length"))
        return np.full(len(names), -log(len(names)))
    probabilities = _one_per_hypothesis("prior", prior, names)
    total = float(probabilities.sum())
    if abs(total - 1.0) > PRIOR_SUM_TOLERANCE:
        advice = "Divide them by their sum, or pass prior='uniform'."
        raise errors.BadPrior(f"the prior probabilities sum to {total:.12g}, but must sum to 1. {advice}", total=total)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities / total))


def _one_per_hypothesis(what: str, numbers: Any, names: Sequence[Any]) -> Real:
    """Returns the numbers, one per hypothesis, in order or by name. Raises an error for invalid ones. ``what`` says
    what they are, and ``names`` are the hypotheses.
    """
    array = matrix(order_by_name(f"the {what}", numbers, names))
    errors.require(array.ndim, f"the {what}", numbers, "a number for each hypothesis")
    if array.shape != (len(names),):
        raise unlike_hypotheses(f"the {what}", array.shape, len(names))
    values = floats(array)
    for h in np.flatnonzero(~(np.isfinite(values) & (values >= 0))).tolist():
        raise bad_number(what, plain(array[h]), names[h], "a finite number of at least 0")
    return values


def order_by_name(what: str, numbers: Any, names: Sequence[Any]) -> Any:
    """Returns numbers that are given by name in the order of ``names``, the hypotheses, and others unchanged. ``what``
    says what they are, for messages.
    """
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
    """Returns the noise as a number, 0 for a likelihood without noise. Raises BadSetting if it does not fit the
    likelihood.
    """
    if not isinstance(likelihood, str) or likelihood not in LIKELIHOODS:
        raise errors.unknown_choice("likelihood", likelihood, LIKELIHOODS)
    if likelihood in ("noise_free", "bernoulli"):
        errors.require(noise is None, "noise", noise, f"omitted when likelihood={likelihood!r}")
        return 0.0
    is_number = isinstance(noise, (int, float, np.integer, np.floating)) and not isinstance(noise, bool)
    if likelihood == "label_noise":
        is_probability = is_number and 0 <= noise < 1
        errors.require(is_probability, "noise", noise, "the probability of a wrong label: at least 0 and below 1")
    else:
        is_positive = is_number and isfinite(noise) and noise > 0
        errors.require(is_positive, "noise", noise, "the standard deviation of the numbers, above 0")
    return float(noise)


def check_labels(labels: Any, likelihood: str) -> tuple[Any, ...]:
    """Returns the labels as a tuple. Raises BadSetting if they are too few for the likelihood, equal or missing."""
    values = tuple(vector(labels, "labels").tolist())
    are_usable = all(is_hashable(label) and not is_missing(label) for label in values) and len(set(values)) == len(
        values
    )
    is_binary = likelihood == "bernoulli"
    errors.require(
        are_usable and (len(values) == 2 if is_binary else len(values) > 1),
        "labels",
        list(values),
        f"texts, numbers or booleans, {'two' if is_binary else 'at least two'} and different",
    )
    return values


def unlike_hypotheses(what: str, shape: tuple[int, ...], n_hypotheses: int) -> errors.LengthMismatch:
    """Returns the error of an array whose shape does not fit the number of hypotheses. ``what`` says what the array
    has.
    """
    hint = " Transpose it: it is hypotheses × rows." if len(shape) == 2 and shape[0] == n_hypotheses else ""
    text = f"{what} has the shape {shape}, but there are {n_hypotheses:,} hypotheses. Pass one per hypothesis."
    return errors.LengthMismatch(text + hint, shape=shape)


def bad_number(what: str, value: Any, hypothesis: Any, needed: str, row: int | None = None) -> errors.BadValue:
    """Returns the error of an invalid number (``value``) of a hypothesis. ``what`` is "prior", "length", "likelihood"
    or "prediction", ``needed`` says what it must be, and ``row`` for which row, if it is about one.
    """
    location = "" if row is None else f" for row {row:,}"
    return errors.BadValue(
        f"the {what} of hypothesis {hypothesis!r}{location} is {value!r}, but must be {needed}. Fix it, or remove the "
        "hypothesis.",
        value=value,
        hypothesis=hypothesis,
        row=row,
    )
