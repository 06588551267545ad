"""Mutual information of features and the class, from a tally alone, in bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.arrays import Real
from banbury.dependence.results import Information
from banbury.distributions import Histogram, Occurrences, Text, histogram_block
from banbury.distributions.covariance import GaussianBlockParameters
from banbury.distributions.family import Choice, Feature
from banbury.distributions.gaussian import GaussianParameters
from banbury.distributions.poisson import PoissonParameters
from banbury.distributions.vocabulary import Vocabulary
from banbury.distributions.vocabulary import mutual_information as of_presence
from banbury.sums import Counts, Keys, Products, Words
from banbury.tally import Tally

BIT = float(np.log(2.0))
NODES = 801  # of a density's grid, from −9 to 9 deviations
MOST_NODES = 1 << 21  # of all densities, times the densities
DRAWS = 1 << 15  # rows drawn of each class's density of a block
MOST_DENSITIES = 1 << 23  # of all rows drawn, times the densities
UNUSED = np.random.default_rng(0)  # the default estimate draws nothing


def mutual_information(tally: Tally, most: int = 10) -> Information:
    """What each feature tells about the class, in bits, from a tally alone: I(feature; class) over the rows that have a value.

    Of flags and categories it is that of the counts, without smoothing; of histograms and kernel densities that of their bins,
    joined as a histogram joins them. Of Gaussian and Poisson features it is the mutual information of the model, of the
    densities that ``bb.estimate`` makes by default, integrated over a grid: what the model can tell, not what the rows hold.
    Of a text it is that of its most telling word's presence, the largest of all words; ``words`` has the ``most`` telling
    ones. So it is of a block of occurrences, whose columns are its words. Of a joint table it is that of the table, as of one
    feature with many values; of a Gaussian block that of the model, as the mean over some 30,000 rows drawn of each class; of a
    block of bins that of the cells of a histogram of it. Figures of counts come out too high by about
    (values − 1)(classes − 1) / (2 · rows · ln 2) even where there is nothing to tell: ``bb.diagnose`` takes that off, and tests
    what is left.

    >>> import banbury as bb
    >>> bb.mutual_information(bb.count(bb.datasets.play_tennis(), target="play"))
    Information about the class, in bits of the 0.940 there are:
      outlook      0.247
      humidity     0.152
      wind         0.048
      temperature  0.029
    """
    check_tally(tally)
    check_most(most)
    found: dict[str, float] = {}
    words: dict[str, Mapping[str, float]] = {}
    for given, features, sums in tally.groups:
        if isinstance(sums, Words):
            best = words_of(features[0], sums, most)
            words[features[0].name] = best
            found[features[0].name] = max(best.values(), default=0.0)
        elif isinstance(sums, Counts):
            for f, feature in enumerate(features):
                found[feature.name] = bits_of(_counted_cells(feature, *sums.feature(f)))
        elif isinstance(sums, Products):
            found[features[0].name] = _of_block(given.estimate(features, sums, Choice(), UNUSED), sums.n.value)
        else:
            parameters = given.estimate(features, sums, Choice(), UNUSED)
            for f, feature in enumerate(features):
                found[feature.name] = _of_model(parameters, f, sums.n.value[f])
    ranked = sorted(tally.schema.features, key=lambda feature: -found[feature.name])
    bits = {feature.name: found[feature.name] for feature in ranked}
    return Information(bits, words, entropy(shares(tally.rows.value)))


def telling_words(tally: Tally, feature: str | None = None, most: int = 20) -> dict[str, float]:
    """The most telling words of a column of text: I(the word is in the text; class) in bits, the most telling first.

    Of a block of occurrences, the most telling columns. ``feature`` may be left out where there is one such feature only.

    >>> import banbury as bb
    >>> from banbury.dependence import telling_words
    >>> tally = bb.count(["cheap pills", "pills at lunch", "lunch at noon", "late lunch"], ["spam", "spam", "ham", "ham"])
    >>> {word: round(bits, 2) for word, bits in telling_words(tally, most=3).items()}
    {'pills': 1.0, 'cheap': 0.31, 'late': 0.31}
    """
    check_tally(tally)
    check_most(most)
    texts = [f.name for f in tally.schema.texts]
    if feature is None and len(texts) == 1:
        feature = texts[0]
    name = None if feature is None else tally.schema[feature].name
    if name not in texts:
        there = errors.listed(texts) or "there is none"
        raise errors.bad_setting("feature", name, f"a column of text, or a block of occurrences ({there})")
    at = texts.index(name)
    return words_of(tally.schema.texts[at], tally.words[at], most)


def check_tally(tally: Any) -> None:
    if not isinstance(tally, Tally):
        raise errors.bad_setting("the tally", type(tally).__name__, "a Tally, as bb.count makes it")
    if not tally.classes:
        raise errors.empty_data(None, "the tally has no class, so there is nothing to tell apart")


def check_most(most: Any) -> None:
    if isinstance(most, bool) or not isinstance(most, (int, np.integer)) or most < 1:
        raise errors.bad_setting("most", most, "a whole number from 1 up")


def shares(cells: Real) -> Real:
    """Of the sum of all; zeros where there is none."""
    whole = float(cells.sum())
    return np.asarray(cells / whole) if whole > 0 else np.zeros_like(cells)


def entropy_terms(share: Real) -> Real:
    """−p log2 p, 0 for 0."""
    some = share > 0
    return np.where(some, -share * np.log2(np.where(some, share, 1.0)), 0.0)


def entropy(share: Real) -> float:
    return float(entropy_terms(share).sum())


def bits_of(cells: Real) -> float:
    """I(row; column) of a table of counts."""
    share = shares(cells)
    return max(entropy(share.sum(axis=0)) + entropy(share.sum(axis=1)) - entropy(share), 0.0)


def _counted_cells(feature: Feature, keys: Keys, rows: Integers) -> Real:
    """Rows per value and class; of bins as a histogram joins them."""
    if feature.family.shape != "bins":
        return rows.value
    family = feature.family if isinstance(feature.family, Histogram) else Histogram()
    if feature.columns:
        return histogram_block.occupied(family, feature, keys, rows.value)[2]
    return family.joined(keys, rows.value).cells


def _of_model(parameters: Any, f: int, rows: Real) -> float:
    """I(feature; class) of the densities of one feature; ``rows`` per class that have a value."""
    seen = rows > 0
    prior = shares(rows[seen])
    if len(prior) < 2:
        return 0.0
    if isinstance(parameters, PoissonParameters):
        grid, widths = _count_grid(parameters.mean[f, seen])
        log_likelihood = parameters.log_probability(f, grid)[:, seen]
    else:
        assert isinstance(parameters, GaussianParameters)
        grid, widths, log_likelihood = _normal_grid(parameters.mean[f, seen], parameters.precision[f, seen], prior)
    joint = log_likelihood + np.log(prior)
    highest = joint.max(axis=1, keepdims=True)
    log_mixture = highest + np.log(np.exp(joint - highest).sum(axis=1, keepdims=True))
    nats = widths @ (np.exp(joint) * (log_likelihood - log_mixture)).sum(axis=1)
    return min(max(float(nats) / BIT, 0.0), entropy(prior))


def _of_block(parameters: Any, rows: Real) -> float:
    """I(block; class) of the densities of a Gaussian block; ``rows`` per class."""
    assert isinstance(parameters, GaussianBlockParameters)
    seen = rows > 0
    return bits_of_normals(shares(rows[seen]), parameters.mean[seen], parameters.covariance[seen])


def bits_of_normals(prior: Real, mean: Real, covariance: Real) -> float:
    """I(block; class) of normal distributions: the mean of log P(row | class) − log P(row) over rows drawn from them."""
    size, d = mean.shape
    if size < 2:
        return 0.0
    roots = np.linalg.cholesky(covariance)
    whiten = np.linalg.solve(roots, np.broadcast_to(np.eye(d), roots.shape))
    constant = -np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    half = int(np.clip(MOST_DENSITIES // (2 * size * size * d), 16, DRAWS // 2))
    drawn = np.random.default_rng(0).standard_normal((half, d))
    noise, nats = np.concatenate([drawn, -drawn]), 0.0
    for c in range(size):
        apart = (mean[c] + noise @ roots[c].T)[:, None] - mean
        densities = constant - 0.5 * np.square(np.einsum("cij,rcj->rci", whiten, apart)).sum(axis=2)
        highest = densities.max(axis=1, keepdims=True)
        mixture = highest[:, 0] + np.log(np.exp(densities - highest) @ prior)
        nats += float(prior[c] * (densities[:, c] - mixture).mean())
    return min(max(nats / BIT, 0.0), entropy(prior))


def _grid(mean: Real, deviation: Real) -> Real:
    """Where densities are looked at: from −9 to 9 deviations of each of them, closely unless they are many.

    The nodes of all together, so that a narrow density among wide ones is seen.
    """
    most = MOST_NODES // len(mean)
    steps = np.linspace(-9.0, 9.0, int(np.clip(most // len(mean), 16, NODES)))
    nodes = np.unique(mean[:, None] + deviation[:, None] * steps)
    return nodes[:: -(-len(nodes) // max(most, 1))]


def _normal_grid(mean: Real, precision: Real, prior: Real) -> tuple[Real, Real, Real]:
    """Nodes, the widths they stand for, and the log densities there, in units of the whole column's deviation."""
    centre = float(prior @ mean)
    variance = 0.5 / precision
    scale = float(np.sqrt(prior @ (variance + (mean - centre) ** 2)))
    place, deviation = (mean - centre) / scale, np.sqrt(variance) / scale
    nodes = _grid(place, deviation)
    gaps = np.diff(nodes)
    widths = np.concatenate([gaps, [0.0]]) / 2.0 + np.concatenate([[0.0], gaps]) / 2.0
    z = (nodes[:, None] - place) / deviation
    return nodes, widths, -0.5 * z * z - np.log(deviation) - 0.5 * np.log(2.0 * np.pi)


def _count_grid(mean: Real) -> tuple[Real, Real]:
    """Whole numbers where any of the classes has some, and how many each of them stands for: one, unless they are many."""
    near = np.rint(_grid(mean, np.sqrt(mean)))
    nodes = np.unique(np.concatenate([np.arange(64.0), near[near >= 0]]))
    gaps = np.diff(nodes, prepend=nodes[0] - 1.0, append=nodes[-1] + 1.0)
    gaps[gaps > 1.0 + 2.0 * float(np.sqrt(mean.max()))] = 1.0  # between the classes there is nothing
    return nodes, (gaps[1:] + gaps[:-1]) / 2.0


class TellingWord(NamedTuple):
    """A word, or a column of a block of occurrences: its id in the table, its name, and what its presence tells."""

    number: int
    name: str
    bits: float


def kept_words(feature: Feature, words: Words) -> Vocabulary:
    """The words that an estimate uses; of a block of occurrences all its columns."""
    family = feature.family
    if isinstance(family, Occurrences):
        return family.words(words, len(feature.inputs))
    assert isinstance(family, Text)
    return family.words(words.table, by_name=True)


def most_telling(feature: Feature, words: Words, most: int) -> list[TellingWord]:
    """The words that tell most; equals by name, columns in their order."""
    vocabulary = kept_words(feature, words)
    each = [of_presence(pairs, vocabulary.texts) / BIT for pairs in vocabulary]
    bits = np.concatenate(each) if each else np.zeros(0)
    best = np.argsort(-bits, kind="stable")[:most]
    ids = vocabulary.ids[best]
    names = [feature.columns[k] for k in best.tolist()] if feature.columns else vocabulary.table.words(ids)
    return [TellingWord(*found) for found in zip(ids.tolist(), names, bits[best].tolist(), strict=True)]


def words_of(feature: Feature, words: Words, most: int) -> dict[str, float]:
    """The words that tell most, with their bits."""
    return {word.name: word.bits for word in most_telling(feature, words, most)}


def expected(freedom: Any, n: Any) -> Any:
    """The bits that chance alone gives, about."""
    return freedom / (2.0 * np.maximum(n, 1e-300) * BIT)


def p_values(bits: Any, freedom: Any, excess: Any, n: Any) -> Real:
    """How often chance alone gives as many bits: the likelihood-ratio test.

    Where cells hold few rows, G = 2 · rows · nats is higher on average than chi-square with its degrees of freedom; ``excess`` is
    by how much, and G is brought down to it.
    """
    from scipy.special import chdtrc  # few need it

    some = np.asarray(freedom) > 0
    freedom = np.where(some, freedom, 1.0)
    g = 2.0 * BIT * np.asarray(n) * bits * freedom / (freedom + excess)
    return np.where(some, chdtrc(freedom, g), 1.0)


def excess(first: Any, second: Any, n: Any) -> Any:
    """Williams' correction (1976), in degrees of freedom, from Σ n / n_i over the rows of a table and over its columns."""
    return (first - 1.0) * (second - 1.0) / (6.0 * n)


def inverse_shares(cells: Real, whole: Any) -> Real:
    """whole / cell, 0 for an empty cell."""
    some = cells > 0
    return np.where(some, whole / np.where(some, cells, 1.0), 0.0)
