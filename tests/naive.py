"""The toolkit again, slow and obvious: loops, dicts and exact fractions. The fast one must give the same answers.

A table is a list of rows, a row a dict from column to value; None and NaN are missing. Where bins begin and how wide they
are is read off the schema, like the settings of families; everything else is worked out here, from the rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import by_shape
import naive_blocks
import naive_column_trees
import naive_matrix
import naive_text
import naive_trees

Row = Mapping[str, Any]
ZERO = Fraction(0)
PART = Fraction(1, 10**18)


def missing(value: Any) -> bool:
    return value is None or value != value


# Counting ------------------------------------------------------------------------------------------------------------


def in_parts(weight: float) -> Fraction:
    """A weight as it is counted: the decimal that fifteen digits write, or else the nearest multiple of 10**-18."""
    written = Fraction(f"{weight:.15g}")
    return written if float(written) == weight and written % PART == 0 else round(Fraction(weight) / PART) * PART


def on_grid(x: Any, origin: float, unit: float) -> Fraction:
    """A number as it is counted: so many steps of 2**-57 units from the origin. The distance is a double."""
    z = (float(x) - origin) / unit
    z = z if math.isfinite(z) else float(x) / unit - origin / unit
    return Fraction(origin) + round(Fraction(z) * 2**57) * Fraction(unit) / 2**57


@dataclass
class Tally:
    rows: dict[Any, Fraction] = field(default_factory=dict)  # class → weight
    keys: dict[str, dict[tuple[Any, Any], Fraction]] = field(default_factory=dict)  # feature → (key, class) → weight
    sums: dict[str, dict[Any, tuple[Fraction, ...]]] = field(default_factory=dict)  # feature → class → n, Σx, Σx²
    words: dict[str, dict[tuple[str, Any], tuple[Fraction, Fraction]]] = field(default_factory=dict)
    # feature → (word, class) → occurrences, documents
    texts: dict[str, dict[Any, Fraction]] = field(default_factory=dict)  # feature → class → texts

    def classes(self) -> list[Any]:
        return sorted(self.rows)

    def values(self, feature: Any) -> list[Any]:
        """The values declared, else those seen in any class."""
        seen = {key for key, _ in self.keys[feature.name]} | set(feature.family.permanent_keys() or ())
        if feature.family.name == "column_tree":
            return naive_column_trees.in_order(seen)
        return sorted(seen - {None}) + [None] * (None in seen)


def count(schema: Any, rows: Sequence[Row], target: str, weights: Iterable[float] | None = None) -> Tally:
    tally = Tally({}, *({f.name: {} for f in schema.features} for _ in range(4)))
    for row, weight in zip(rows, weights or [1] * len(rows), strict=True):
        label, w = row[target], in_parts(float(weight))
        if missing(label) or w == 0:
            continue
        tally.rows[label] = tally.rows.get(label, ZERO) + w
        for feature in schema.features:
            _count_value(tally, feature, value_of(feature, row), label, w)
    return tally


def value_of(feature: Any, row: Row) -> Any:
    """What a row has in a feature's column; of a block in each of its columns."""
    return [row[name] for name in feature.columns] if feature.columns else row[feature.name]


def _count_value(tally: Tally, feature: Any, value: Any, label: Any, w: Fraction) -> None:
    if missing(value) and getattr(feature.family, "missing", "skip") != "category":
        return
    if by_shape.shape(feature.family) == "products":
        naive_blocks.add_products(tally.sums[feature.name], feature, value, label, w)
    elif feature.family.name == "column_tree":
        for key in naive_column_trees.keys_of(feature, value):
            tally.keys[feature.name][key, label] = tally.keys[feature.name].get((key, label), ZERO) + w
    elif feature.columns and by_shape.shape(feature.family) in ("keys", "bins"):
        if (key := naive_blocks.key_of(feature, value)) is not None:
            tally.keys[feature.name][key, label] = tally.keys[feature.name].get((key, label), ZERO) + w
    elif by_shape.shape(feature.family) == "moments":
        n, first, second = tally.sums[feature.name].get(label, (ZERO, ZERO, ZERO))
        x = on_grid(value, feature.origin, feature.unit)
        tally.sums[feature.name][label] = n + w, first + w * x, second + w * x * x
    elif by_shape.shape(feature.family) == "log moments":
        n, first, logs, squares = tally.sums[feature.name].get(label, (ZERO, ZERO, ZERO, ZERO))
        x, log_x = on_grid(value, feature.origin, feature.unit), on_grid(logarithm(value), 0.0, 1.0)
        tally.sums[feature.name][label] = n + w, first + w * x, logs + w * log_x, squares + w * log_x * log_x
    elif by_shape.shape(feature.family) == "words":
        texts, words = tally.texts[feature.name], tally.words[feature.name]
        texts[label] = texts.get(label, ZERO) + w
        amounts = occurrences if feature.family.name == "occurrences" else weighed
        for word, x in amounts(feature.family, value).items():
            n, documents = words.get((word, label), (ZERO, ZERO))
            words[word, label] = n + w * in_parts(x), documents + w
    else:
        cells, cell = tally.keys[feature.name], (key_of(feature, value), label)
        cells[cell] = cells.get(cell, ZERO) + w


def key_of(feature: Any, value: Any) -> Any:
    """What a value is counted as: itself, yes or no, the number of its bin, or None where missing is a category."""
    family = feature.family
    if missing(value):
        return None
    if family.name == "quantile_tree":
        return naive_trees.key_of(value, feature.unit)
    if by_shape.shape(family) == "bins":
        return math.floor((Fraction(value) - Fraction(feature.origin)) / Fraction(feature.unit))
    if family.name == "bernoulli":
        if family.yes is not None:
            return value == family.yes
        return bool(value) if family.threshold is None else value > family.threshold
    return value


def forget(schema: Any, rows: Sequence[Row], gone: Iterable[int], target: str, weights: Any = None) -> Tally:
    """Forgetting is counting again without the rows."""
    kept = [i for i in range(len(rows)) if i not in set(gone)]
    return count(schema, [rows[i] for i in kept], target, None if weights is None else [weights[i] for i in kept])


# Estimating and scoring ----------------------------------------------------------------------------------------------


def log(x: Any) -> float:
    """The logarithm of a number or an exact fraction of any size; of 0, minus infinity."""
    if x == 0:
        return -math.inf
    return math.log(x.numerator) - math.log(x.denominator) if isinstance(x, Fraction) else math.log(x)


def log_prior(tally: Tally, class_prior: Any = None) -> dict[Any, float]:
    classes, n = tally.classes(), sum(tally.rows.values())
    if class_prior == "uniform":
        return {c: -math.log(len(classes)) for c in classes}
    if isinstance(class_prior, Mapping):
        return {c: log(class_prior[c]) for c in classes}
    alpha = Fraction(class_prior or 0)
    return {c: log((tally.rows[c] + alpha) / (n + alpha * len(classes))) for c in classes}


def likelihoods(tally: Tally, feature: Any, value: Any, how: str, alpha: float) -> dict[Any, float]:
    """log P(value | class) for every class; a missing value says nothing."""
    if missing(value) and getattr(feature.family, "missing", "skip") != "category":
        return dict.fromkeys(tally.classes(), 0.0)
    if feature.columns and feature.family.name != "column_tree" and by_shape.shape(feature.family) != "words":
        return {c: naive_blocks.score(tally, feature, value, c, how, alpha) for c in tally.classes()}
    score = {
        "bernoulli": _keyed,
        "categorical": _keyed,
        "gaussian": _gaussian,
        "poisson": _poisson,
        "exponential": _exponential,
        "gamma": _gamma,
        "log_normal": _log_normal,
        "histogram": _histogram,
        "kernel_density": _kernel_density,
        "quantile_tree": _quantile_tree,
        "text": _text,
        "occurrences": _occurrences,
        "column_tree": naive_column_trees.score,
    }[feature.family.name]
    return {c: score(tally, feature, value, c, how, alpha) for c in tally.classes()}


def log_joint(
    tally: Tally, schema: Any, row: Row, how: str = "mean", alpha: float = 1.0, class_prior: Any = None
) -> dict[Any, float]:
    joint = log_prior(tally, class_prior)
    for feature in schema.features:
        each = likelihoods(tally, feature, value_of(feature, row), how, alpha)
        joint = {c: joint[c] + each[c] for c in joint}
    return joint


def posterior(joint: Mapping[Any, float], prior: Mapping[Any, float]) -> dict[Any, float]:
    """P(class | row); where every class is impossible, the class prior."""
    best = max(joint.values())
    if best == -math.inf:
        return {c: math.exp(p) for c, p in prior.items()}
    total = sum(math.exp(value - best) for value in joint.values())
    return {c: math.exp(value - best) / total for c, value in joint.items()}


def evidence(tally: Tally, schema: Any, row: Row, winner: Any, other: Any, how: str, alpha: float) -> dict[str, float]:
    """Decibans of every feature for one class against another."""
    found = {}
    for feature in schema.features:
        each = likelihoods(tally, feature, value_of(feature, row), how, alpha)
        found[feature.name] = 0.0 if each[winner] == each[other] else 10 / math.log(10) * (each[winner] - each[other])
    return found


# Bernoulli and categorical


def pseudo_counts(family: Any, values: Sequence[Any], alpha: float) -> dict[Any, Fraction]:
    if family.name == "bernoulli":
        if family.m is not None:
            p = Fraction(1, 2) if family.p is None else Fraction(family.p)
            return {False: Fraction(family.m) * (1 - p), True: Fraction(family.m) * p}
        yes = Fraction(alpha if family.alpha is None else family.alpha)
        return {False: yes if family.beta is None else Fraction(family.beta), True: yes}
    if family.m is not None:
        return {v: Fraction(family.m) * Fraction(family.p[v] if family.p else Fraction(1, len(values))) for v in values}
    own = alpha if family.alpha is None else family.alpha
    return {v: Fraction(own[v] if isinstance(own, Mapping) else own) for v in values}


def weight(n: Fraction, alpha: Fraction, how: str) -> Fraction:
    """What a key with ``n`` rows and the prior ``alpha`` weighs; its share is that over the sum of all keys."""
    if how == "mle":
        return n
    if how == "map":  # five times 0.1 is a little more than 0.5, but not as a double
        return n + alpha - 1 if n + alpha - 1 > n * Fraction(1e-15) else ZERO
    return n + max(alpha, Fraction(1e-10))


def share(own: Fraction, total: Fraction, n_keys: int) -> Fraction:
    """Equal shares where nothing is left to divide."""
    return own / total if total else Fraction(1, n_keys)


def _keyed(tally: Tally, feature: Any, value: Any, label: Any, how: str, alpha: float) -> float:
    values = tally.values(feature)
    prior = pseudo_counts(feature.family, values, alpha)
    counts = {key: w for (key, c), w in tally.keys[feature.name].items() if c == label}
    key = key_of(feature, value)
    if key in prior:
        weights = {k: weight(counts.get(k, ZERO), alpha, how) for k, alpha in prior.items()}
        return log(share(weights[key], sum(weights.values()), len(weights)))
    if not values or how == "mle":
        return 0.0  # no evidence
    strength = sum(prior.values()) / len(values)
    strength = max(strength - 1, ZERO) if how == "map" else max(strength, Fraction(1e-10))
    return log(strength / (sum(counts.values()) + strength * len(values))) if strength else 0.0


# Gaussian and Poisson


def moments(sums: tuple[Fraction, ...]) -> tuple[Fraction, Fraction, Fraction]:
    """n, the mean and Σ(x − mean)²."""
    n, first, second = sums
    return n, first / n, second - first * first / n


def pooled(tally: Tally, feature: Any) -> tuple[Fraction, Fraction]:
    """Mean and variance over all classes; where there is none, the schema's origin and unit stand in."""
    every = tally.sums[feature.name].values()
    if not every:
        return Fraction(feature.origin), Fraction(feature.unit) ** 2
    n, mean, spread = moments(tuple(sum(s[i] for s in every) for i in range(3)))
    return mean, spread / n if spread else Fraction(feature.unit) ** 2


def _gaussian(tally: Tally, feature: Any, value: Any, label: Any, how: str, alpha: float) -> float:
    family, sums = feature.family, tally.sums[feature.name]
    centre, variance = pooled(tally, feature)
    every = {c: moments(s) for c, s in sums.items()}
    n, mean, spread = every.get(label, (ZERO, centre, ZERO))
    rows, spreads = sum((m[0] for m in every.values()), ZERO), sum((m[2] for m in every.values()), ZERO)
    shared = family.variance == "shared"
    if how == "mle" or (family.prior is None and how in ("map", "mean")):
        own = (spreads / rows if rows else ZERO) if shared else spread / n if n else variance
        return _normal(value, mean, max(own, variance * Fraction(1e-9)))
    prior = family.prior
    kappa, nu = (Fraction(1e-3), Fraction(1)) if prior is None else (Fraction(prior.kappa), Fraction(prior.nu))
    if prior is not None and prior.mean is not None:
        centre = Fraction(prior.mean)
    if prior is not None and prior.variance is not None:
        variance = Fraction(prior.variance)
    extra = {c: s + kappa * k / (kappa + k) * (m - centre) ** 2 for c, (k, m, s) in every.items()}
    scale = nu * variance + (sum(extra.values()) if shared else extra.get(label, ZERO))
    freedom = nu + (rows if shared else n)
    mean, strength = (kappa * centre + n * mean) / (kappa + n), kappa + n
    if how == "predictive":
        return _log_student(value, mean, scale / freedom * (strength + 1) / strength, freedom)
    expected, n_means = how == "mean" and freedom > 2, len(every) if shared else 1
    return _normal(value, mean, scale / (freedom - 2 if expected else freedom + 2 + n_means))


def _normal(value: Any, mean: Fraction, variance: Fraction) -> float:
    return -0.5 * (math.log(2 * math.pi) + log(variance)) - float((Fraction(value) - mean) ** 2 / (2 * variance))


def _log_student(value: Any, mean: Fraction, variance: Fraction, freedom: Fraction) -> float:
    nu, u = float(freedom), float((Fraction(value) - mean) ** 2 / (variance * freedom))
    scale = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * (math.log(nu * math.pi) + log(variance))
    return scale - (nu + 1) / 2 * math.log1p(u)


def _poisson(tally: Tally, feature: Any, value: Any, label: Any, how: str, alpha: float) -> float:
    family, sums = feature.family, tally.sums[feature.name]
    every = [sum((s[i] for s in sums.values()), ZERO) for i in range(2)]
    mean = every[1] / every[0] if every[0] else ZERO
    rows = Fraction(1 if family.prior_rows is None else family.prior_rows)
    events = rows * max(mean, Fraction(1e-9)) if family.prior_count is None else Fraction(family.prior_count)
    n, first, _ = sums.get(label, (ZERO, ZERO, ZERO))
    if how == "predictive":
        shape, rate = float(events + first), float(rows + n)
        choose = math.lgamma(value + shape) - math.lgamma(shape) - math.lgamma(value + 1)
        return choose - shape * math.log1p(1 / rate) - value * math.log1p(rate)
    if how == "mle":
        rate = first / n if n else mean if every[0] else Fraction(1)
    else:
        rate = max(events + first - (how == "map"), ZERO) / (rows + n)
    return (value * log(rate) if value else 0.0) - float(rate) - math.lgamma(value + 1)


def _exponential(tally: Tally, feature: Any, value: Any, label: Any, how: str, alpha: float) -> float:
    family, sums, unit = feature.family, tally.sums[feature.name], Fraction(feature.unit)
    every = [sum((s[i] for s in sums.values()), ZERO) for i in range(2)]
    mean = max(every[1] / every[0] if every[0] else ZERO, Fraction(2) ** -200 * unit)
    rows = Fraction(1 if family.prior_rows is None else family.prior_rows)
    more = rows * mean if family.prior_total is None else Fraction(family.prior_total)
    n, total, _ = sums.get(label, (ZERO, ZERO, ZERO))
    shape, scale = n + rows, total + more
    value = min(Fraction(value), Fraction(2) ** 400 * unit)
    if how == "predictive":
        return log(shape / scale) - float(shape + 1) * math.log1p(float(Fraction(value) / scale))
    if how == "mle":
        rate = 1 / max(total / n if n else mean, Fraction(2) ** -200 * unit)
    else:
        rate = max(shape - 1, rows / 2**30) / scale if how == "map" else shape / scale
    return log(rate) - float(rate * Fraction(value))


def logarithm(x: float) -> float:
    """As it is counted: by arithmetic that is the same on all machines."""
    m, k = math.frexp(x)
    if m < 0.7071067811865476:
        m, k = 2 * m, k - 1
    s, series = (m - 1) / (m + 1), 0.0
    for power in range(23, 0, -2):
        series = series * (s * s) + 1 / power
    return k * 0.6931471805599453 + 2 * s * series


def _gamma(tally: Tally, feature: Any, value: Any, label: Any, how: str, alpha: float) -> float:
    sums, unit = tally.sums[feature.name], Decimal(feature.unit)
    every = [sum((s[i] for s in sums.values()), ZERO) for i in range(3)]
    mean, log_mean = (decimal(part / every[0]) for part in every[1:]) if every[0] else (unit, unit.ln())
    m = Decimal(1 if feature.family.prior_rows is None else feature.family.prior_rows)
    n, total, logs = (decimal(part) for part in sums.get(label, (ZERO, ZERO, ZERO))[:3])
    if how != "mle" or not n:
        m = m if how != "mle" else Decimal(1)
        n, total, logs = n + m, total + m * mean, logs + m * log_mean
    k, x = _shape((total / n).ln() - logs / n), min(Decimal(value), unit * Decimal(2) ** 400)
    if how == "predictive":
        a = k * n + 1
        return float((k - 1) * x.ln() + a * total.ln() - (a + k) * (total + x).ln()
                     + log_gamma(a + k) - log_gamma(a) - log_gamma(k))  # fmt: skip
    rate = (k * n + 1) / total if how == "mean" else k * n / total
    return float(k * rate.ln() + (k - 1) * x.ln() - rate * x - log_gamma(k))


def _log_normal(tally: Tally, feature: Any, value: Any, label: Any, how: str, alpha: float) -> float:
    """The normal distribution of logarithms; log x is steep where x is small."""
    family = SimpleNamespace(prior=feature.family.prior, variance="per class")
    of_logarithms = SimpleNamespace(name=feature.name, origin=0.0, unit=1.0, family=family)
    sums = {c: (n, logs, squares) for c, (n, _, logs, squares) in tally.sums[feature.name].items()}
    logs: Any = SimpleNamespace(sums={feature.name: sums})
    return _gaussian(logs, of_logarithms, math.log(value), label, how, alpha) - math.log(value)


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _shape(s: Decimal) -> Decimal:
    """The k with log k − ψ(k) = s, halving an interval again and again."""
    low, high = Decimal("1e-3"), Decimal("1e8")
    s = min(max(s, Decimal("5e-9")), Decimal(1000))
    for _ in range(120):
        middle = (low * high).sqrt()
        low, high = (middle, high) if middle.ln() - digamma(middle) > s else (low, middle)
    return low


def log_gamma(x: Decimal) -> Decimal:
    """Stirling's series, which is exact from 60 on; below by Γ(x + 1) = x Γ(x)."""
    below = Decimal(0)
    while x < 60:
        below, x = below + x.ln(), x + 1
    series = sum(
        (Decimal(b) / (Decimal(2 * i * (2 * i - 1) * d) * x ** (2 * i - 1)) for i, (b, d) in enumerate(BERNOULLI, 1))
    )
    return (x - Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2 + series - below


def digamma(x: Decimal) -> Decimal:
    below = Decimal(0)
    while x < 60:
        below, x = below + 1 / x, x + 1
    series = sum((Decimal(b) / (Decimal(2 * i * d) * x ** (2 * i)) for i, (b, d) in enumerate(BERNOULLI, 1)))
    return x.ln() - 1 / (2 * x) - series - below


PI = Decimal("3.14159265358979323846264338327950288")
BERNOULLI = ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6))  # B₂, B₄ and so on


# Histogram and kernel density


def bins(tally: Tally, feature: Any) -> dict[int, Fraction]:
    """The rows of each occupied bin, all classes together, from the lowest bin to the highest."""
    together: dict[int, Fraction] = {}
    for (key, _), w in sorted(tally.keys[feature.name].items(), key=lambda item: item[0][0]):
        together[key] = together.get(key, ZERO) + w
    return together


def rounding(rows: Mapping[int, Fraction]) -> int:
    """The least distance, in bins, between two values; but for the rarest, which a twentieth of the rows may have."""
    ordered, below = sorted(rows.values()), ZERO
    for rare in ordered:
        below += rare
        if 20 * below > sum(ordered):
            break
    codes = sorted(code for code, w in rows.items() if w and w >= rare * (1 - Fraction(1e-12)))
    return min((b - a for a, b in pairwise(codes)), default=1)


def doublings(family: Any, together: Mapping[int, Fraction], n_columns: int = 1) -> int:
    """How often bins are joined in pairs: to about 2 · IQR / n^(1 / (2 + columns)), unless width or most bins are given."""
    if not together:
        return 0
    codes, times = list(together), 0
    if family.bins == "auto" and family.width is None:
        n, below, quartiles = sum(together.values()), ZERO, []
        for code in codes:
            below += together[code]
            quartiles += [code] * sum(below >= q * n for q in (Fraction(1, 4), Fraction(3, 4))[len(quartiles) :])
        spread = quartiles[1] - quartiles[0] or (codes[-1] - codes[0]) / 4
        times = round(math.log2(max(1.0, 2 * spread / float(n) ** (1 / (2 + n_columns)))))
    if family.bins != "mdl" and family.width is None:
        times = max(times, math.floor(math.log2(rounding(together))))
    most = 4096 if family.bins in ("auto", "mdl") else max(family.bins, 2)
    while codes[-1] // 2**times - codes[0] // 2**times + 1 > most:
        times += 1
    return times


def entropy(rows: Mapping[Any, Any]) -> float:
    """Of the classes of some rows, in bits."""
    n = float(sum(rows.values()))
    return -sum(float(w) / n * math.log2(float(w) / n) for w in rows.values() if w)


def fayyad_irani(rows: Sequence[tuple[Any, Mapping[Any, Any]]]) -> list[tuple[Any, Any]]:
    """The neighbours that are cut apart, of values in order and the rows of each per class (Fayyad and Irani, 1993)."""
    whole = _together(rows)
    n = float(sum(whole.values()))
    best = None
    for i in range(1, len(rows)):
        left, right = _together(rows[:i]), _together(rows[i:])
        n_left, n_right = float(sum(left.values())), float(sum(right.values()))
        left_in = (n_left * entropy(left) + n_right * entropy(right)) / n
        if best is None or left_in < best[0] - 1e-12:
            best = left_in, i, left, right
    if best is None:
        return []
    left_in, i, left, right = best
    delta = math.log2(3 ** len(whole) - 2) - sum(
        sign * len(part) * entropy(part) for sign, part in ((1, whole), (-1, left), (-1, right))
    )
    if len(whole) < 2 or entropy(whole) - left_in <= (math.log2(max(n - 1, 1)) + delta) / n:
        return []
    return [*fayyad_irani(rows[:i]), (rows[i - 1][0], rows[i][0]), *fayyad_irani(rows[i:])]


def _together(rows: Sequence[tuple[Any, Mapping[Any, Any]]]) -> dict[Any, Any]:
    """Rows per class, of the classes that have any."""
    together: dict[Any, Any] = {}
    for _, each in rows:
        for label, w in each.items():
            together[label] = together.get(label, 0) + w
    return {label: w for label, w in together.items() if w}


def _mdl_histogram(tally: Tally, feature: Any, value: Any, label: Any, how: str, alpha: float) -> float:
    """The bins from minus to plus infinity; of an outer one, beyond the step past the farthest row, the density halves."""
    size = 2 ** doublings(feature.family, bins(tally, feature))
    steps: dict[int, dict[Any, Fraction]] = {}
    for (key, c), w in sorted(tally.keys[feature.name].items(), key=lambda item: item[0][0]):
        each = steps.setdefault(key // size, {})
        each[c] = each.get(c, ZERO) + w
    codes = list(steps) or [0]
    ends = [codes[0] - 1, *((a + b + 1) // 2 for a, b in fayyad_irani(list(steps.items()))), codes[-1] + 2]
    pairs = list(pairwise(ends))
    prior = Fraction(alpha if feature.family.alpha is None else feature.family.alpha)
    counts = [sum(each.get(label, ZERO) for step, each in steps.items() if a <= step < b) for a, b in pairs]
    total = sum(weight(n, prior, how) for n in counts)
    at = key_of(feature, value) // size
    inside = min(max(at, ends[0]), ends[-1] - 1)
    i = next(i for i, (a, b) in enumerate(pairs) if a <= inside < b)
    reach = pairs[i][1] - pairs[i][0] + (i == 0) + (i == len(pairs) - 1)
    own = share(weight(counts[i], prior, how), total, len(pairs)) / reach
    return log(own) - min(abs(at - inside), 2**20) * math.log(2) - log(Fraction(feature.unit) * size)


def _histogram(tally: Tally, feature: Any, value: Any, label: Any, how: str, alpha: float) -> float:
    if feature.family.bins == "mdl":
        return _mdl_histogram(tally, feature, value, label, how, alpha)
    together = bins(tally, feature)
    size = 2 ** doublings(feature.family, together)
    codes = [code // size for code in together] or [0]
    low, high = codes[0] - 1, codes[-1] + 1
    counts: dict[int, Fraction] = {}
    for (key, c), w in tally.keys[feature.name].items():
        if c == label:
            counts[key // size] = counts.get(key // size, ZERO) + w
    prior = Fraction(alpha if feature.family.alpha is None else feature.family.alpha)
    n_bins = high - low + 1
    total = sum(weight(n, prior, how) for n in counts.values()) + (n_bins - len(counts)) * weight(ZERO, prior, how)
    at = key_of(feature, value) // size
    inside = min(max(at, low), high)
    halvings = min(abs(at - inside), 2**20) + (inside in (low, high))
    own = share(weight(counts.get(inside, ZERO), prior, how), total, n_bins)
    return log(own) - halvings * math.log(2) - log(Fraction(feature.unit) * size)


def _quantile_tree(tally: Tally, feature: Any, value: Any, label: Any, how: str, alpha: float) -> float:
    def cuts(cells: naive_trees.Cells) -> list[int]:
        return [after for _, after in fayyad_irani(list(enumerate(cells)))]

    keys = tally.keys[feature.name]
    return naive_trees.density(keys, tally.classes(), feature, float(value), label, how, cuts)


DEVIATIONS = {
    "normal": 1.0,
    "box": math.sqrt(1 / 12),
    "triangle": math.sqrt(1 / 6),
    "epanechnikov": math.sqrt(1 / 5),
    "biweight": math.sqrt(1 / 7),
    "triweight": math.sqrt(1 / 9),
    "cosine": math.sqrt(1 - 8 / math.pi**2),
}


def kernel(name: str, u: float) -> float:
    if name == "normal":
        return math.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)
    if name == "box":
        return float(-0.5 <= u < 0.5)
    if abs(u) > 1:
        return 0.0
    return {
        "triangle": 1 - abs(u),
        "epanechnikov": 3 / 4 * (1 - u * u),
        "biweight": 15 / 16 * (1 - u * u) ** 2,
        "triweight": 35 / 32 * (1 - u * u) ** 3,
        "cosine": math.pi / 4 * math.cos(math.pi / 2 * u),
    }[name]


def deviation(rows: Mapping[int, Fraction]) -> tuple[float, float]:
    """Mean and deviation of bin numbers: n − 1 as SciPy has it, and half of n for weights below 2, where n − 1 vanishes."""
    n = sum(rows.values())
    mean = sum(b * w for b, w in rows.items()) / n
    return float(mean), math.sqrt(sum(w * (b - mean) ** 2 for b, w in rows.items()) / max(n - 1, n / 2))


def bandwidth(family: Any, unit: float, rows: Mapping[int, Fraction]) -> float:
    """In bins; never less than one."""
    if not isinstance(family.bandwidth, str):
        return max(family.bandwidth / unit, 1.0)
    n = float(sum(rows.values()))
    rule = deviation(rows)[1] / DEVIATIONS[family.kernel]
    rule *= (n * 3 / 4 if family.bandwidth == "silverman" else n) ** -0.2
    if family.bandwidth != "leave-one-out" or len(rows) < 2:
        return max(rule, 1.0)
    least = max(0.5 * rounding(rows) / DEVIATIONS[family.kernel], 1.0)
    tried = [max(rule * 2 ** (k / 2), least) for k in range(-12, 7)]
    for finer in (4, 8, 16):
        best = max(tried, key=lambda h: left_out(family.kernel, rows, h))
        tried += [max(best / 2 ** (1 / finer), least), best * 2 ** (1 / finer)]
    return max(tried, key=lambda h: left_out(family.kernel, rows, h))


def left_out(name: str, rows: Mapping[int, Fraction], h: float) -> float:
    """The log-likelihood of the rows, each under the kernels of the others; bins are joined while h is 64 of them or more."""
    if h >= 64:
        joined: dict[int, Fraction] = {}
        for b, w in rows.items():
            joined[b // 2] = joined.get(b // 2, ZERO) + w
        return left_out(name, joined, h / 2) - float(sum(rows.values())) * math.log(2)
    score, n = 0.0, float(sum(rows.values()))
    for b, w in rows.items():
        others = sum(float(v) * kernel(name, (b - other) / h) for other, v in rows.items() if other != b)
        own = min(float(w), 1.0)
        density = max(others + (float(w) - own) * kernel(name, 0.0), 2.2250738585072014e-308)
        without = n - own if n - own > 1e-12 * n else 1.0
        score += float(w) * (math.log(density) - math.log(without) - math.log(h))
    return score


def _kernel_density(tally: Tally, feature: Any, value: Any, label: Any, how: str, alpha: float) -> float:
    family, together = feature.family, bins(tally, feature)
    rows = {key: w for (key, c), w in tally.keys[feature.name].items() if c == label} or together
    if not rows:
        return 0.0
    h, n = bandwidth(family, feature.unit, rows), float(sum(rows.values()))
    z = float((Fraction(value) - Fraction(feature.origin)) / Fraction(feature.unit)) - 0.5
    if family.kernel == "normal":
        logs = [log(w) - 0.5 * ((z - b) / h) ** 2 for b, w in rows.items()]
        density = max(logs) + math.log(sum(math.exp(each - max(logs)) for each in logs)) - math.log(2 * math.pi) / 2
        return density - math.log(n) - math.log(h) - log(Fraction(feature.unit))
    near = sum(float(w) * kernel(family.kernel, (z - b) / h) for b, w in rows.items()) / (n * h)
    mean, spread = deviation(together)
    spread = max(spread, 1.0)
    far = math.log(1e-6) - 0.5 * ((z - mean) / spread) ** 2 - math.log(spread) - math.log(2 * math.pi) / 2
    both = [far] if near == 0 else [far, math.log((1 - 1e-6) * near)]
    return max(both) + math.log(sum(math.exp(each - max(both)) for each in both)) - log(Fraction(feature.unit))


# Text


def tokens(family: Any, text: str) -> list[str]:
    """The words of a text without the stop words, then all runs of two, of three and so on; or runs of characters."""
    given: Any = text
    if family.tokens not in naive_text.PATTERNS:
        given = [word for word in re.findall(family.tokens, text.lower() if family.lowercase else text) if word]
    settings = family.tokens, family.lowercase, family.unit == "characters", *family.ngrams, family.stop_words or ()
    return naive_text.tokens(given, *settings, family.only or ())


def weighed(family: Any, text: str) -> dict[str, float]:
    """How much each of a text's words counts: how often it occurs, damped, over the length of all."""
    times: dict[str, float] = {}
    for word in tokens(family, text):
        times[word] = times.get(word, 0) + 1
    if family.damping == "log":
        times = {word: math.log1p(n) for word, n in times.items()}
    length = math.sqrt(sum(sorted(x * x for x in times.values()))) if family.length else 1
    return {word: x / length if family.length else x for word, x in times.items()}


def vocabulary(tally: Tally, feature: Any) -> list[str]:
    """The words that an estimate uses, by name."""
    family, cells = feature.family, tally.words[feature.name]
    words = sorted({word.lower() if family.lowercase else word for word in family.vocabulary or ()})
    words = words if family.vocabulary else sorted({word for word, _ in cells})
    # As doubles: words are not told apart by what is beyond them.
    occurrences = {word: float(sum(n for (w, _), (n, _) in cells.items() if w == word)) for word in words}
    documents = {word: float(sum(d for (w, _), (_, d) in cells.items() if w == word)) for word in words}
    n_texts = sum(tally.texts[feature.name].values())
    common = sorted(words, key=lambda word: -occurrences[word])[: family.drop_most_frequent]
    low, high = family.min_share * float(n_texts), family.max_share * float(n_texts)
    words = [
        word
        for word in words
        if word not in common and occurrences[word] >= family.min_count and low <= documents[word] <= high
    ]
    if family.max_words is None:
        return words
    if family.choose_by == "mutual_information":
        best = sorted(words, key=lambda word: -information(tally, feature, word))
    else:
        best = sorted(words, key=lambda word: -occurrences[word])
    return sorted(best[: family.max_words])


def information(tally: Tally, feature: Any, word: str) -> float:
    """Mutual information of a word's presence in a text and the text's class, in nats."""
    cells, texts = tally.words[feature.name], tally.texts[feature.name]
    joint = {}
    for c, n in texts.items():
        d = cells.get((word, c), (ZERO, ZERO))[1]
        joint[True, c], joint[False, c] = d / sum(texts.values()), (n - d) / sum(texts.values())
    total = 0.0
    for (present, c), p in joint.items():
        apart = sum(q for (other, _), q in joint.items() if other == present) * (joint[True, c] + joint[False, c])
        total += float(p) * (log(p) - log(apart)) if p else 0.0
    return total


def _text(tally: Tally, feature: Any, value: str, label: Any, how: str, alpha: float) -> float:
    family, words, cells = feature.family, vocabulary(tally, feature), tally.words[feature.name]
    prior = Fraction(alpha if family.alpha is None else family.alpha)
    texts, x = tally.texts[feature.name], weighed(family, value)
    if family.model == "bernoulli":
        total = 0.0
        for word in words:
            d, n = cells.get((word, label), (ZERO, ZERO))[1], texts.get(label, ZERO)
            yes, no = weight(d, prior, how), weight(n - d, prior, how)
            total += log(share(yes if word in x else no, yes + no, 2))
        return total
    which = 1 if family.model == "presence" else 0
    x = dict.fromkeys(x, 1) if family.model == "presence" else x
    scale = {word: _idf(tally, feature, word) if family.idf else 1.0 for word in words}
    counts = {
        (word, c): cells[word, c][which] * Fraction(scale[word]) if (word, c) in cells else ZERO
        for word in words
        for c in tally.rows
    }
    if family.model == "complement":
        own = _complement(words, counts, label, how, prior, family.norm)
    elif family.model == "log_odds":
        own = _log_odds(words, counts, label, how, prior, sum(n > 0 for n in texts.values()))
    else:
        weights = {word: counts[word, label] + _at_least(how, prior) for word in words}
        total = sum(weights.values())
        own = {word: log(share(weights[word], total, len(words))) for word in words}
        if how == "predictive" and not family.idf and (which or not (family.damping or family.length)):
            return _urn([word for word in tokens(family, value) if word in own], weights, bool(which))
    return sum(n * scale[word] * own[word] for word, n in x.items() if scale.get(word, 0.0) > 0)


def _idf(tally: Tally, feature: Any, word: str) -> float:
    documents = sum(d for (w, _), (_, d) in tally.words[feature.name].items() if w == word)
    return log(sum(tally.texts[feature.name].values()) / documents) if documents else 0.0


def _at_least(how: str, prior: Fraction) -> Fraction:
    least = Fraction(1e-10)
    return {"mle": least, "map": max(prior - 1, least)}.get(how, max(prior, least))


def _log_odds(words: Any, counts: Any, label: Any, how: str, prior: Fraction, n_classes: int) -> dict[str, float]:
    a, rest = _at_least(how, prior), _complement(words, counts, label, how, prior, False)
    here = {word: counts[word, label] + a for word in words}
    total = sum(here.values())
    return {word: (log(n / total) + rest[word]) * (n_classes - 1) / max(n_classes, 1) for word, n in here.items()}


def _complement(words: Any, counts: Any, label: Any, how: str, prior: Fraction, norm: bool) -> dict[str, float]:
    a = _at_least(how, prior)
    elsewhere = {word: sum(n for (w, c), n in counts.items() if w == word and c != label) + a for word in words}
    total = sum(elsewhere.values())
    own = {word: -log(n / total) for word, n in elsewhere.items()}
    size = sum(abs(weight) for weight in own.values()) if norm else 1.0
    return {word: weight / size if size else 0.0 for word, weight in own.items()}


def _urn(found: Sequence[str], weights: Mapping[str, Fraction], once: bool) -> float:
    """Token by token: each makes its word likelier from then on."""
    drawn, total = dict(weights), 0.0
    for word in dict.fromkeys(found) if once else found:
        total += log(drawn[word] / sum(drawn.values()))
        drawn[word] += 1
    return total


# Occurrences


def occurrences(family: Any, values: Sequence[Any]) -> dict[str, float]:
    """How often each column occurs; those that do not are left out."""
    found = [0.0 if missing(x) else naive_matrix.counts(x, family.threshold, True) for x in values]
    return {f"#{j}": x for j, x in enumerate(found) if x != 0}


def _occurrences(tally: Tally, feature: Any, value: Sequence[Any], label: Any, how: str, alpha: float) -> float:
    family, cells = feature.family, tally.words[feature.name]
    words, x = [f"#{j}" for j in range(len(feature.columns))], occurrences(feature.family, value)
    prior = Fraction(alpha if family.alpha is None else family.alpha)
    counts = {(word, c): cells.get((word, c), (ZERO, ZERO))[0] for word in words for c in tally.rows}
    if family.model == "bernoulli":
        n, total = tally.texts[feature.name].get(label, ZERO), 0.0
        for word in words:
            yes, no = weight(counts[word, label], prior, how), weight(n - counts[word, label], prior, how)
            total += log(share(yes if word in x else no, yes + no, 2))
        return total
    if family.model == "complement":
        own = _complement(words, counts, label, how, prior, family.norm)
    else:
        weights = {word: counts[word, label] + _at_least(how, prior) for word in words}
        own = {word: log(share(weights[word], sum(weights.values()), len(words))) for word in words}
    return sum(n * own[word] for word, n in x.items())


# Wrong labels --------------------------------------------------------------------------------------------------------


@dataclass
class Suspicion:
    own: dict[int, float]  # row → P(its label), by what all other rows say
    other: dict[int, float]  # row → P(the most probable other label)


def suspicious(schema: Any, rows: Sequence[Row], target: str, alpha: float) -> Suspicion:
    """Every row scored by a recount of the others; calibrated by one rising staircase for each class."""
    classes = sorted({row[target] for row in rows})
    scores: dict[int, dict[Any, float]] = {}
    for i, row in enumerate(rows):
        tally = count(schema, [other for j, other in enumerate(rows) if j != i], target)
        joint = log_joint(tally, schema, row, alpha=alpha)
        if row[target] in joint:  # it was not the last of its class
            top = max(joint.values())
            scores[i] = {c: round(joint[c] - top, 8) if c in joint else -math.inf for c in classes}
    fitted = classes[1:] if len(classes) == 2 else classes
    shares: dict[Any, dict[int, float]] = {}
    for c in fitted:
        odds = {i: score[c] - _log_sum([score[d] for d in classes if d != c]) for i, score in scores.items()}
        shares[c] = staircase(odds, {i: rows[i][target] == c for i in scores})
    posteriors: dict[int, dict[Any, float]] = {}
    for i in scores:
        if len(classes) == 2:
            posteriors[i] = {classes[0]: 1.0 - shares[classes[1]][i], classes[1]: shares[classes[1]][i]}
        else:
            total = sum(shares[c][i] for c in classes)
            posteriors[i] = {c: shares[c][i] / total if total else 1.0 / len(classes) for c in classes}
    found = Suspicion({}, {})
    for i, shares_of in posteriors.items():
        label = rows[i][target]
        found.own[i], found.other[i] = shares_of[label], max(p for c, p in shares_of.items() if c != label)
    return found


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(x - top) for x in values))


def staircase(odds: Mapping[int, float], positive: Mapping[int, bool]) -> dict[int, float]:
    """The rising staircase nearest to what happened: neighbours that fall are joined until none does. Equal odds are one step."""
    steps: list[list[int]] = []
    for i in sorted(odds, key=lambda i: odds[i]):
        if steps and odds[i] == odds[steps[-1][-1]]:
            steps[-1].append(i)
        else:
            steps.append([i])

    def height(step: Sequence[int]) -> Fraction:
        return Fraction(sum(positive[i] for i in step), len(step))

    k = 1
    while k < len(steps):
        if height(steps[k - 1]) >= height(steps[k]):
            steps[k - 1 : k + 1] = [steps[k - 1] + steps[k]]
            k = max(k - 1, 1)
        else:
            k += 1
    return {i: float(height(step)) for step in steps for i in step}


# The next labels -----------------------------------------------------------------------------------------------------


def stands_for_others(alike: Sequence[Sequence[float]], covered: Sequence[float], n: int) -> list[int]:
    """Places that together are most like all others, each the one that adds most, the first of equals."""
    chosen: list[int] = []
    for _ in range(n):
        near = [max([covered[j], *(alike[k][j] for k in chosen)]) for j in range(len(alike))]
        gains = {k: sum(max(alike[k][j] - near[j], 0.0) for j in range(len(alike))) for k in range(len(alike))}
        chosen.append(max((k for k in gains if k not in chosen), key=lambda k: (round(gains[k], 9), -k)))
    return chosen
