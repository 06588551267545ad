"""Mutual information of features and the class, from a tally alone, in bits."""

from __future__ import annotations

from typing import Any

from banbury import errors
from banbury.arrays import Real
from banbury.families.bags.bag_of_words import bag_of_words
from banbury.families.bags.words import most_informative
from banbury.families.family import UNUSED_GENERATOR, Choice, Family, Feature, Features, NumericParameters
from banbury.families.information import bits_of, entropy, shares
from banbury.insight.dependence.densities import bits_of_draws, bits_of_normals, bits_of_numbers
from banbury.insight.dependence.results import Information
from banbury.sums import Products, Words
from banbury.tally.tally import Tally


def mutual_information(tally: Tally, n: int = 10) -> Information:
    """Returns the information of each feature about the class in bits, I(feature; class), over the rows that have a
    value.

    It is computed from a tally alone. For flags and categories it is that of the counts, without smoothing; for
    histograms and kernel densities, that of their bins, merged as a histogram merges them. For other numbers it is that
    of the default model, summed over small cells: what the model can know, not what the rows contain. For a text it is
    that of the presence of its most informative word, and ``words`` has the ``n`` most informative ones; the columns of
    a matrix of occurrences are treated in the same way. For a joint table it is that of one feature with many values;
    for a Gaussian block, that of the model, estimated from about 30,000 rows drawn for each class; for a block of bins,
    that of the cells of its histogram.

    Figures from counts are too high by about (values − 1)(classes − 1) / (2 · rows · ln 2), even if there is no
    information. ``bb.diagnose`` subtracts this and tests the rest.

    >>> import banbury as bb
    >>> bb.mutual_information(bb.count(bb.datasets.play_tennis(), target="play"))
    Information about the class, in bits (the class has 0.940):
      outlook      0.247
      humidity     0.152
      wind         0.048
      temperature  0.029
    """
    check_tally(tally)
    check_n(n)
    class_rows = tally.rows.value
    bits = dict[str, float]()
    words = dict[str, dict[str, float]]()
    for family, features, sums in tally.groups:
        if isinstance(sums, Words):
            (feature,) = features
            words[feature.name] = _most_informative_words(feature, sums, n)
            bits[feature.name] = max(words[feature.name].values(), default=0.0)
        else:
            bits |= zip(features.names, _bits(family, features, sums, class_rows), strict=True)
    sorted_features = sorted(tally.schema.features, key=lambda feature: -bits[feature.name])
    return Information(
        {feature.name: bits[feature.name] for feature in sorted_features}, words, entropy(shares(class_rows))
    )


def informative_words(tally: Tally, feature: str | None = None, n: int = 20) -> dict[str, float]:
    """Returns the most informative words of a text column: I(the word occurs; class) in bits, highest first.

    ``n`` words are returned; for a matrix of occurrences, columns. ``feature`` can be omitted if there is only one.

    >>> import banbury as bb
    >>> from banbury.insight.dependence import informative_words
    >>> tally = bb.count(["cheap pills", "pills at lunch", "lunch at noon", "late lunch"], ["spam", "spam", "ham", "ham"])
    >>> {word: round(bits, 2) for word, bits in informative_words(tally, n=3).items()}
    {'pills': 1.0, 'cheap': 0.31, 'late': 0.31}
    """
    check_tally(tally)
    check_n(n)
    # The feature and the counted words of each text column, by name.
    texts = {features.names[0]: (features[0], sums) for _, features, sums in tally.groups if isinstance(sums, Words)}
    if feature is None and len(texts) == 1:
        (feature,) = texts
    name = None if feature is None else tally.schema[feature].name
    if name not in texts:
        available = errors.listed(texts) or "there is none"
        raise errors.bad_setting("feature", name, f"a column of text, or a block of occurrences ({available})")
    return _most_informative_words(*texts[name], n)


def _most_informative_words(feature: Feature, sums: Words, n: int) -> dict[str, float]:
    """Returns the ``n`` most informative words of the text column ``feature`` with their bits, highest first. ``sums``
    are its counted words.
    """
    words_in_use = bag_of_words(feature).words_in_use(feature, sums)
    return {word.name: word.bits for word in most_informative(feature, words_in_use, n)}


def _bits(family: Family, features: Features, sums: Any, class_rows: Real) -> list[float]:
    """Returns I(feature; class) of each feature in bits: from counts where the family has keys, otherwise from the
    densities that it estimates by default. ``sums`` are what was counted of the features, all of one family without
    words, and ``class_rows`` the rows of each class.
    """
    if family.keyed:
        tables = zip(features, map(sums.feature, range(len(features))), strict=True)
        return [bits_of(family.join_cells(feature, keys, cells.value)) for feature, (keys, cells) in tables]
    parameters: Any = family.estimate(features, sums, Choice(), UNUSED_GENERATOR)
    if isinstance(sums, Products):
        has_rows = sums.n.value > 0
        return [
            bits_of_normals(shares(sums.n.value[has_rows]), parameters.mean[has_rows], parameters.covariance[has_rows])
        ]
    if isinstance(parameters, NumericParameters):
        present = sums.present.value  # the rows that have a value (features × classes)
        return [
            bits_of_numbers(parameters, feature_number, present[feature_number])
            for feature_number in range(len(features))
        ]
    return bits_of_draws(parameters, class_rows).tolist()  # type: ignore[no-any-return]


def check_tally(tally: Any) -> None:
    """Raises an error unless this is a tally with at least one class."""
    errors.require(isinstance(tally, Tally), "the tally", type(tally).__name__, "a Tally, as bb.count makes it")
    if not tally.classes:
        raise errors.empty_data(None, "the tally has no class, so there is nothing to tell apart")


def check_n(n: Any) -> None:
    """Raises an error unless ``n`` is a positive whole number."""
    errors.check_whole("n", n, 1)
