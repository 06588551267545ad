"""The core again, slow and obvious: plain loops, dictionaries and fractions."""

import math
from fractions import Fraction

import numpy as np

LOWEST = -(2**63)
DIGITS = 18  # weights are whole numbers of 10**-18
GRID = 57  # z is a whole number of 2**-57


def one_less(x, classes, n_classes, weights):
    """What leaving out each row changes in the log density of its values in its own class, by learning anew."""
    n, k = x.shape
    weights = np.ones(n) if weights is None else weights

    def log_density(row, kept):
        total = 0.0
        for f in range(k):
            there = kept & ~np.isnan(x[:, f])
            if np.isnan(x[row, f]):
                continue
            mean = np.average(x[there, f], weights=weights[there])
            variance = np.average((x[there, f] - mean) ** 2, weights=weights[there])
            total -= 0.5 * np.log(2 * np.pi * variance) + (x[row, f] - mean) ** 2 / (2 * variance)
        return total

    found = np.empty(n)
    for row in range(n):
        mine = classes == classes[row]
        found[row] = log_density(row, mine & (np.arange(n) != row)) - log_density(row, mine)
    return found


def split(columns):
    """The features of a list of 1-D and 2-D arrays, as lists of Python numbers."""
    features = []
    for array in columns:
        features += [array.tolist()] if array.ndim == 1 else array.T.tolist()
    return features


def limbs(numbers):
    """The one form of exact numbers: as few limbs of 64 bits as hold each and its sign, and as few digits as make all whole."""
    digits = next(d for d in range(0, 999, DIGITS) if all((x * 10**d).denominator == 1 for x in numbers))
    whole = [int(x * 10**digits) for x in numbers]
    size = max([(x if x >= 0 else ~x).bit_length() // 64 + 1 for x in whole], default=1)
    signed = [[(x >> 64 * k) & (2**64 - 1) for k in range(size)] for x in whole]
    return [[limb - 2**64 if limb >= 2**63 else limb for limb in row] for row in signed], digits


def parts(weight):
    """A weight as an exact number of parts of a row: the decimal that fifteen digits write, or else the nearest part.

    Whole numbers are themselves.
    """
    if weight == int(weight):
        return Fraction(weight)
    written = Fraction(f"{weight:.15g}")
    if float(written) == weight and (written * 10**DIGITS).denominator == 1:
        return written
    return Fraction(math.floor(Fraction(weight) * 10**DIGITS + Fraction(1, 2)), 10**DIGITS)


def on_grid(x, origin, unit):
    """z = (x - origin) / unit as a double, and that to a whole number of 2**-57, ties to even."""
    x, origin, unit = float(x), float(origin), float(unit)
    z = (x - origin) / unit
    return round(Fraction(z if math.isfinite(z) else x / unit - origin / unit) * 2**GRID)


def encode(values):
    """Codes by first occurrence, first rows, counts; None gets -1."""
    seen, codes, first, counts = {}, [], [], []
    for row, value in enumerate(values):
        if value is None:
            codes.append(-1)
            continue
        if value not in seen:
            seen[value] = len(seen)
            first.append(row)
            counts.append(0)
        codes.append(seen[value])
        counts[seen[value]] += 1
    return codes, first, counts


def encode_records(records):
    return encode([bytes(row) for row in records])


def encode_strings(offsets, data, valid, valid_offset, strip):
    values = []
    for i in range(len(offsets) - 1):
        bit = valid_offset + i
        if valid is not None and not valid[bit // 8] >> (bit % 8) & 1:
            values.append(None)
            continue
        value = bytes(data[offsets[i] : offsets[i + 1]])
        values.append(value.strip() if strip else value)
    return encode(values)


def parse_fields(data, delimiter, kinds, missing, known):
    """Of lines that are plain."""
    rows = [line.split(delimiter) for line in data.replace(b"\r\n", b"\n").split(b"\n") if line]
    columns = []
    for kind, fields, held in zip(kinds, zip(*rows, strict=True), known, strict=True):
        if kind == "s":
            first = [*missing, *held.split(b"\n")[:-1]]
            words = [field.strip() for field in fields]
            codes, new = encode([*first, *words])[0][len(first) :], dict.fromkeys(words).keys() - {*first}
            columns.append((codes, sorted(new, key=words.index)))
        elif kind == "i":
            columns.append([int(field) for field in fields])
        else:
            columns.append([math.nan if field.strip() in missing else float(field) for field in fields])
    return columns


def encode_objects(values):
    if not all(isinstance(v, str) or v is None or (isinstance(v, float) and math.isnan(v)) for v in values):
        return None
    return encode([v if isinstance(v, str) else None for v in values])


def exact_weights(weights, n):
    """What each row weighs: one, whole numbers, or doubles in parts of a row."""
    if weights is None:
        return [Fraction(1)] * n
    return [Fraction(w) if isinstance(w, int) else parts(w) for w in weights.tolist()]


def zeros(*shape):
    return np.full(shape, Fraction(0), dtype=object)


def count(keys, classes, n_keys, n_classes, weights):
    """Rows per (key, class), where keys gives the keys of each row."""
    rows, weight = zeros(n_keys, n_classes), exact_weights(weights, len(classes))
    for i, c in enumerate(classes):
        if c >= 0:
            for key in keys[i]:
                rows[key, c] += weight[i]
    return rows


def count_classes(classes, n_classes, weights):
    return count([[0]] * len(classes), classes, 1, n_classes, weights)[0]


def count_moments(columns, origin, unit, classes, n_classes, weights):
    """Rows (F, C), and sums of z and z squared (F, C, 2), in units of the grid and of its square."""
    features, weight = split(columns), exact_weights(weights, len(classes))
    n, sums = zeros(len(features), n_classes), zeros(len(features), n_classes, 2)
    for f, values in enumerate(features):
        for i, x in enumerate(values):
            if classes[i] >= 0 and not math.isnan(x):
                z = on_grid(x, origin[f], unit[f])
                n[f, classes[i]] += weight[i]
                sums[f, classes[i], 0] += weight[i] * z
                sums[f, classes[i], 1] += weight[i] * z * z
    return n, sums


def count_products(columns, origin, unit, classes, n_classes, weights):
    """Rows (C,), and sums of z and of products of pairs of them, of rows that have all columns."""
    features, weight = split(columns), exact_weights(weights, len(classes))
    pairs = [(i, j) for i in range(len(features)) for j in range(i + 1)]
    n, sums = zeros(n_classes), zeros(n_classes, len(features) + len(pairs))
    for i, c in enumerate(classes):
        row = [values[i] for values in features]
        if c < 0 or any(math.isnan(x) for x in row):
            continue
        z = [on_grid(x, origin[f], unit[f]) for f, x in enumerate(row)]
        n[c] += weight[i]
        for k, amount in enumerate([*z, *(z[a] * z[b] for a, b in pairs)]):
            sums[c, k] += weight[i] * amount
    return n, sums


def count_codes(columns, low, size, classes, n_classes, weights):
    features = split(columns)
    starts = np.concatenate([[0], np.cumsum(size)]).astype(int).tolist()
    keys = [[] for _ in classes]
    for f, values in enumerate(features):
        for i, x in enumerate(values):
            if 0 <= x - int(low[f]) < size[f]:
                keys[i].append(starts[f] + x - int(low[f]))
    return count(keys, classes, starts[-1], n_classes, weights)


def count_flags(columns, threshold, classes, n_classes, weights):
    """Rows (F, 2, C), no then yes."""
    features = split(columns)
    keys = [[] for _ in classes]
    for f, values in enumerate(features):
        for i, x in enumerate(values):
            if not math.isnan(x):
                t = 0.0 if math.isnan(threshold[f]) else threshold[f]
                keys[i].append(2 * f + (x > t))
    return count(keys, classes, 2 * len(features), n_classes, weights).reshape(len(features), 2, n_classes)


def bins(column, start, width):
    return [LOWEST if math.isnan(x) else math.floor((float(x) - start) / width) for x in column.ravel().tolist()]


def span(columns):
    low, high = [], []
    for values in split(columns):
        values = [x for x in values if x != LOWEST]
        low.append(min(values, default=0))
        high.append(max(values, default=-1))
    return low, high


def log_normal(z, mean, deviation):
    u = (z - mean) / deviation
    return -u * u / 2 - math.log(deviation) - math.log(math.sqrt(2 * math.pi))


KERNELS = {
    "box": lambda u: float(-0.5 <= u < 0.5),
    "triangle": lambda u: max(0.0, 1 - abs(u)),
    "epanechnikov": lambda u: 0.75 * (1 - u * u) if abs(u) <= 1 else 0.0,
    "biweight": lambda u: 15 / 16 * (1 - u * u) ** 2 if abs(u) <= 1 else 0.0,
    "triweight": lambda u: 35 / 32 * (1 - u * u) ** 3 if abs(u) <= 1 else 0.0,
    "cosine": lambda u: math.pi / 4 * math.cos(math.pi / 2 * u) if abs(u) <= 1 else 0.0,
}


def clip(z):
    return min(max(z, -(2.0**400)), 2.0**400)


def log_likelihood(part, f, x, c):
    """The log-likelihood of the value x of a part's feature f in class c."""
    name, _, *rest = part
    if math.isnan(x):
        return 0.0
    if name in ("normal", "student"):
        origin, unit, mean, precision, constant, *power = rest
        away = precision[f, c] * (clip((x - origin[f]) / unit[f]) - mean[f, c]) ** 2
        return constant[f, c] - (power[0][f, c] * math.log1p(away) if power else away)
    if name == "table":
        low, lookups, outside, table = rest
        k = x - int(low[f])
        row = int(lookups[f][k]) if 0 <= k < len(lookups[f]) else int(outside[f])
        return 0.0 if row < 0 else table[row, c]
    if name == "flags":
        threshold, no, yes = rest
        return (yes if x > (0.0 if math.isnan(threshold[f]) else threshold[f]) else no)[f, c]
    if name == "histogram":
        start, width, first, table = rest
        k = math.floor((x - start) / width) - first
        inside = min(max(k, 0), len(table) - 1)
        return table[inside, c] - abs(k - inside) * math.log(2)
    origin, unit, kernel, centres, weights, bandwidth, constant, floor = rest
    if not weights[:, c].any():
        return 0.0
    z, h = clip((x - origin) / unit), bandwidth[c]
    occupied = [(b, w) for b, w in zip(centres.tolist(), weights[:, c].tolist(), strict=True) if w > 0]
    if kernel == "normal":
        logs = [math.log(w) + log_normal(z, b, h) for b, w in occupied]
        most = max(logs)
        return constant[c] + most + math.log(sum(math.exp(log - most) for log in logs))
    density = sum(w * KERNELS[kernel]((z - b) / h) for b, w in occupied) / h
    log_floor = math.log(1e-6) + log_normal(z, floor[0], floor[1])
    if density == 0 or log_floor < -700:
        return constant[c] + (log_floor if density == 0 else math.log(density * (1 - 1e-6)))
    return constant[c] + math.log((1 - 1e-6) * density + math.exp(log_floor))


def score(n_rows, log_prior, parts, want):
    """An array and the number of rows that no class explains."""
    n_classes = len(log_prior)
    likelihoods = []
    for part in parts:
        columns = part[1] if isinstance(part[1], list) else [part[1]]
        for f, values in enumerate(split(columns)):
            likelihoods.append([[log_likelihood(part, f, x, c) for c in range(n_classes)] for x in values])
    each = np.array(likelihoods).reshape(len(likelihoods), n_rows, n_classes).transpose(1, 0, 2)
    return finish(each, log_prior, want)


def finish(each, log_prior, want):
    """The same of each feature's log-likelihoods, (n, F, C)."""
    joint = log_prior + each.sum(axis=1)
    lost = np.isneginf(joint).all(axis=1)
    if want == "parts":
        return each, lost.sum()
    if want == "log_joint":
        return joint, lost.sum()
    joint[lost] = log_prior
    if want == "class":
        return joint.argmax(axis=1), lost.sum()
    shifted = joint - joint.max(axis=1, keepdims=True, initial=-math.inf)
    log_posterior = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return (np.exp(log_posterior) if want == "posterior" else log_posterior), lost.sum()
