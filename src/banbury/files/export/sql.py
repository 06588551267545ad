"""SQL: the evidence table as tables of a database, and views that add it up for the rows of another table.

Every column of a row is joined to the entry that its value or number has, every pair of columns to its cells, and every word to
the lexicon; the nats of each class are added. Missing is an entry of its own; what matches none is a value that no row had.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury.model.evidence_table import EvidenceTable

MOST_JOINS = 40  # tables of one query: SQLite takes 64
MOST_REASONS = 3
MOST_CLASSES = 900  # a table has a column for each: a row of PostgreSQL takes 8 kB
CHUNK = 500  # rows of one INSERT
FARTHEST = 2.0**400
DEEPEST = 700.0  # the exponential of more is no double, and PostgreSQL says so
SPACES = "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
SURROGATES = re.compile("[\ud800-\udfff]")
PATTERNS = {"word": "W{2,}", "word1": "W+", "mail": "W+(?:[-.@'+&]W+)*"}


@dataclass(frozen=True)
class Dialect:
    """How a database says what others say otherwise."""

    real: str = "DOUBLE"
    text: str = "VARCHAR"
    infinity: str = "CAST('Infinity' AS DOUBLE)"
    number: str = "NULLIF(CAST({x} AS DOUBLE), CAST('NaN' AS DOUBLE))"
    zero: str | None = "chr(0)"  # the character; None: texts cannot hold it
    extremes: tuple[str, str] = ("LEAST", "GREATEST")
    pick: str = "(ARRAY[{items}])[{at} + 1]"
    materialized: str = ""
    by_index: bool = False  # whether a stretch of numbers is found as the last that begins below
    escape: str = "'"  # before a quote in a string
    mark: str = '"'  # around a name
    word: str | None = r"[\p{L}\p{N}_]"  # a character of words; None: there are no regular expressions
    blanks: str = "regexp_replace({x}, {spaces}, ' ', 'g')"
    tokens: str = ""  # the words of a text with their places


DIALECTS = {
    "duckdb": Dialect(
        pick="([{items}])[{at} + 1]",
        tokens="SELECT row_id, unnest(l) AS word, generate_subscripts(l, 1) AS place "
        "FROM (SELECT row_id, regexp_extract_all({text}, {pattern}) AS l FROM input) AS t",
    ),
    "postgres": Dialect(
        real="double precision",
        text="text",
        infinity="CAST('Infinity' AS double precision)",
        number="NULLIF(CAST(REPLACE(REPLACE(CAST({x} AS text), 'true', '1'), 'false', '0') AS double precision), 'NaN')",
        zero=None,
        materialized="MATERIALIZED ",
        by_index=True,
        word="[[:alnum:]_]",
        tokens="SELECT row_id, t.m[1] AS word, t.place AS place "
        "FROM input, regexp_matches({text}, {pattern}, 'g') WITH ORDINALITY AS t(m, place)",
    ),
    "sqlite": Dialect(
        real="REAL",
        text="TEXT",
        infinity="9e999",
        number="CAST({x} AS REAL)",
        zero="char(0)",
        extremes=("MIN", "MAX"),
        pick="CASE {at} {cases} END",
        materialized="MATERIALIZED ",
        by_index=True,
        word=None,
    ),
    "spark": Dialect(
        text="STRING",
        zero="char(0)",
        pick="array({items})[{at}]",
        escape="\\",
        mark="`",
        blanks="regexp_replace({x}, {spaces}, ' ')",
        tokens="SELECT row_id, word, place FROM (SELECT row_id, {text} AS t FROM input) "
        "LATERAL VIEW posexplode(regexp_extract_all(t, {pattern}, 0)) w AS place, word",
    ),
}


class EvidenceTerm(NamedTuple):
    """A part of the evidence: what is joined to a row, its cell and its nats in each class; and how it is shown."""

    join: str
    nats: list[str]
    name: str
    value: str
    cell: str | None = None


def check_tokens(column: dict[str, Any]) -> None:
    """Raises where words are found by a regular expression of the user's."""
    if column["kind"] == "text" and column["unit"] == "words" and column["tokens"] not in PATTERNS:
        expected = f"one of {', '.join(PATTERNS)}: a regular expression of Python may mean something else elsewhere"
        raise errors.bad_setting("tokens", column["tokens"], expected)


def write(
    model: Any,
    min_rows: int,
    *,
    dialect: str | None = None,
    table: str = "rows",
    key: str | None = None,
    name: str = "banbury",
    reasons: bool = False,
) -> bytes:
    """A script that makes the tables and the views."""
    if dialect not in DIALECTS:
        raise errors.unknown_choice("dialect", dialect, DIALECTS)
    if dialect == "spark" and key is None:
        raise errors.bad_setting("key", key, "the column that identifies the rows, because Spark rows have no order")
    for setting, value in (("table", table), ("key", key or "row"), ("name", name)):
        fits = isinstance(value, str) and value and "\0" not in value
        errors.require(fits, setting, value, "the name of a table or a column")
    script = _Script(model.evidence_table(min_rows=min_rows), dialect, table, key, name)
    text = ";\n\n".join([*script.make_tables(), *script.make_views(reasons)])
    head = f"-- A model of banbury, for {dialect}: evidence in nats, and views of the answers to the rows of"
    return f'{head} "{" ".join(table.split())}".\n{text};\n'.encode()


class _Script:
    """The statements of a script."""

    def __init__(self, tables: EvidenceTable, dialect: str, table: str, key: str | None, name: str) -> None:
        self.tables = tables
        self.sql = DIALECTS[dialect]
        self.table = table
        self.key = key
        self.name = name
        self.k = tables.prior.num_rows
        expected = f"at most {MOST_CLASSES:,} classes, because each one is a column of a table"
        errors.require(self.k <= MOST_CLASSES, "the model", f"{self.k:,} classes", expected)
        self.columns = tables.columns.to_pylist()
        self.curves = tables.curves.to_pylist()
        self.words = {c["column"]: tables.words_of(c["column"]) for c in self.columns if c["count"]}
        self.unseen: dict[int, tuple[int | None, list[float]]] = {}  # cell and nats of a value that no row had
        for column in self.columns:
            if column["kind"] == "text" and self.sql.word is None:
                text = f"column {column['name']!r} holds texts, but {dialect} has no regular expressions to split them."
                raise errors.BadSetting(f"{text} Use another dialect, or export a page or ONNX.", column=column["name"])
            check_tokens(column)

    # How things are written

    def quote(self, name: str) -> str:
        mark = self.sql.mark
        return mark + name.replace(mark, mark * 2) + mark

    def own(self, name: str) -> str:
        """The name of a table or view of the model."""
        return self.quote(f"{self.name}_{name}")

    def literal(self, value: Any) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, float):
            if math.isinf(value):
                return self.sql.infinity if value > 0 else f"-{self.sql.infinity}"
            return repr(value) if "e" in repr(value) else f"{value!r}e0"
        if isinstance(value, str):
            escaped = value.replace("\\", "\\\\") if self.sql.escape == "\\" else value
            quoted = [f"'{part.replace(chr(39), self.sql.escape + chr(39))}'" for part in escaped.split("\0")]
            return f" || {self.sql.zero} || ".join(quoted)
        return str(value)

    def can_hold(self, text: str) -> bool:
        """Whether a text of the database can be this one."""
        return not SURROGATES.search(text) and (self.sql.zero is not None or "\0" not in text)

    def pick(self, expressions: Sequence[str]) -> str:
        """The expression of a class."""
        cases = " ".join(f"WHEN {c} THEN {expression}" for c, expression in enumerate(expressions))
        return self.sql.pick.format(items=", ".join(expressions), at="p.class", cases=cases)

    def between(self, low: float, x: str, high: float) -> str:
        least, greatest = self.sql.extremes
        return f"{least}({greatest}({x}, {self.literal(low)}), {self.literal(high)})"

    def by_class(self, text: str) -> str:
        """A list of an expression for every class, whose number stands for {c}."""
        return ", ".join(text.replace("{c}", str(c)) for c in range(self.k))

    # Tables

    def make_tables(self) -> Iterator[str]:
        rules = dict.fromkeys(("nats", "slope", "shift", "threshold"), self.sql.real)
        yield from self.create_table("prior", {"class": "INTEGER", "name": self.sql.text, **rules}, self.prior())
        keyed = {
            "col": "INTEGER",
            "item": self.sql.text,
            "low": self.sql.real,
            "last": self.sql.real,
            "cell": "INTEGER",
        }
        nats = {f"n{c}": self.sql.real for c in range(self.k)}
        yield from self.create_table("entries", keyed | nats, self.entries())
        cells = dict.fromkeys(("first", "first_cell", "second", "second_cell"), "INTEGER")
        pairs = ((*list(row.values())[:4], *says) for row, says in self.tables.entries_of("pairs"))
        yield from self.create_table("pairs", cells | nats, pairs)
        if self.sql.by_index:
            yield f"CREATE INDEX {self.own('by_low')} ON {self.own('entries')} (col, low)"
        keyed = {"col": "INTEGER", "word": self.sql.text, "scale": self.sql.real}
        words = (
            (j, word, scale, *says)
            for j, (words, nats_of_words, scales, _) in self.words.items()
            for word, scale, says in zip(words, scales.tolist(), nats_of_words.tolist(), strict=True)
            if self.can_hold(word)
        )
        yield from self.create_table("words", keyed | nats, words)
        steps = {"class": "INTEGER", **dict.fromkeys(("low", "high", "share"), self.sql.real)}
        yield from self.create_table(
            "stairs", steps, ((int(c), *step) for c, *step in self.tables.rules("step").tolist())
        )

    def create_table(self, name: str, columns: dict[str, str], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
        fields = ", ".join(f"{self.quote(column)} {kind}" for column, kind in columns.items())
        yield f"CREATE TABLE {self.own(name)} ({fields})"
        written = [f"({', '.join(map(self.literal, row))})" for row in rows]
        for start in range(0, len(written), CHUNK):
            yield f"INSERT INTO {self.own(name)} VALUES\n" + ",\n".join(written[start : start + CHUNK])

    def prior(self) -> Iterator[tuple[Any, ...]]:
        lines = {int(c): (slope, shift) for c, slope, shift, _ in self.tables.rules("line").tolist()}
        thresholds = {int(c): x for c, x, *_ in self.tables.rules("threshold").tolist()}
        for row in self.tables.prior.to_pylist():
            c = row["class"]
            yield c, row["name"], row["nats"], *lines.get(c, (None, None)), thresholds.get(c)

    def entries(self) -> Iterator[tuple[Any, ...]]:
        """What values and numbers say: texts by ``item``, numbers from ``low`` to ``last``; infinity stands for a missing one."""
        for row, nats in self.tables.entries_of("values"):
            if row["unseen"]:
                self.unseen[row["column"]] = row["cell"], nats
            elif row["value"] is None or self.can_hold(row["value"]):
                item = "-" if row["value"] is None else f"={row['value']}"
                yield row["column"], item, None, None, row["cell"], *nats
        for row, nats in self.tables.entries_of("steps"):
            low = math.inf if row["from"] is None else row["from"]
            last = math.inf if row["to"] is None else float(np.nextafter(row["to"], -np.inf))
            yield row["column"], None, low, last, row["cell"], *nats

    # The evidence of a row

    def inputs(self) -> str:
        """The rows with what is looked up: x0, x1, … of the columns."""
        chosen = [f"{'ROW_NUMBER() OVER ()' if self.key is None else self.quote(self.key)} AS row_id"]
        curved = {curve["column"] for curve in self.curves}
        for column in self.columns:
            j = column["column"]
            text = f"CAST({self.quote(column['name'])} AS {self.sql.text})"
            number = self.sql.number.format(x=self.quote(column["name"]))
            if column["kind"] == "counts":
                numbers = [self.sql.number.format(x=self.quote(word)) for word in self.words[j][0]]
                chosen += [f"{x} AS x{j}_{k}" for k, x in enumerate(numbers)]
                text = "1"
            elif column["kind"] == "number":
                text = number if j in curved else f"COALESCE({number}, {self.sql.infinity})"
            elif column["kind"] == "string":
                text = f"COALESCE('=' || {text}, '-')"
            chosen.append(f"{text} AS x{j}")
        return f"SELECT {', '.join(chosen)} FROM {self.quote(self.table)}"

    def column_term(self, column: dict[str, Any]) -> EvidenceTerm:
        j = column["column"]
        e = f"e{j}"
        name = column["name"]
        if j in self.words:
            common = self.words[j][3].tolist()
            there = f"CASE WHEN f.x{j} IS NULL THEN 0e0 ELSE"
            nats = [f"COALESCE({e}.n{c}, 0e0) + {there} {self.literal(x)} END" for c, x in enumerate(common)]
            return EvidenceTerm(f"LEFT JOIN t{j}_sum AS {e} ON {e}.row_id = f.row_id", nats, name, "")
        curves = [curve for curve in self.curves if curve["column"] == j]
        if curves:
            return EvidenceTerm("", self.curve(curves), name, f"CAST(f.x{j} AS {self.sql.text})")
        entries = self.own("entries")
        if column["kind"] == "string":
            join = f"{entries} AS {e} ON {e}.col = {j} AND {e}.item = f.x{j}"
        elif self.sql.by_index:
            below = f"SELECT MAX(low) FROM {entries} AS b WHERE b.col = {j} AND b.low <= f.x{j}"
            join = f"{entries} AS {e} ON {e}.col = {j} AND {e}.low = ({below}) AND f.x{j} <= {e}.last"
        else:  # each number that there is is looked up once
            numbers = f"(SELECT DISTINCT x{j} AS x FROM input) AS d"
            on = f"b.col = {j} AND b.low <= d.x AND d.x <= b.last"
            join = f"(SELECT d.x, b.* FROM {numbers} JOIN {entries} AS b ON {on}) AS {e} ON {e}.x = f.x{j}"
        cell, nats_unseen = self.unseen.get(j, (None, [0.0] * self.k))
        nats = [f"COALESCE({e}.n{c}, {self.literal(x)})" for c, x in enumerate(nats_unseen)]
        shown = f"SUBSTR(f.x{j}, 2)" if column["kind"] == "string" else f"CAST(f.x{j} AS {self.sql.text})"
        return EvidenceTerm(f"LEFT JOIN {join}", nats, name, shown, f"COALESCE({e}.cell, {self.literal(cell)}) AS c{j}")

    def curve(self, curves: Sequence[dict[str, Any]]) -> list[str]:
        """What a number says of each class."""
        terms = [["0e0"] for _ in range(self.k)]
        for curve in curves:
            lit = {name: self.literal(value) for name, value in curve.items()}
            x = self.between(-FARTHEST, f"(f.x{lit['column']} - ({lit['origin']})) / {lit['unit']}", FARTHEST)
            x = f"(({x} - ({lit['centre']})) / {lit['width']})"
            powers = {"one": "1e0", "x": x, "x2": f"{x} * {x}", "log_x": f"LN({x})"}
            terms[curve["class"]] += [f"({lit[name]}) * {power}" for name, power in powers.items() if curve[name]]
        there = f"CASE WHEN f.x{curves[0]['column']} IS NULL THEN 0e0 ELSE"
        return [f"{there} {' + '.join(sums)} END" for sums in terms]

    def pair_terms(self) -> Iterator[EvidenceTerm]:
        names = {column["column"]: column["name"] for column in self.columns}
        columns = (self.tables.pairs[name].to_pylist() for name in ("first", "second"))
        for a, b in dict.fromkeys(zip(*columns, strict=True)):
            e = f"p{a}_{b}"
            where = f"{e}.first = {a} AND {e}.second = {b} AND {e}.first_cell = f.c{a} AND {e}.second_cell = f.c{b}"
            nats = [f"COALESCE({e}.n{c}, 0e0)" for c in range(self.k)]
            join = f"LEFT JOIN {self.own('pairs')} AS {e} ON {where}"
            yield EvidenceTerm(join, nats, f"{names[a]} with {names[b]}", "NULL")

    def bag(self, column: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Named queries of a column's words: ``said`` has what each word of a row says, and ``sum`` all of them."""
        j = column["column"]
        t = f"t{j}"
        if column["kind"] == "text":
            yield from self.grams(column)
        else:
            limit = column["threshold"]
            n, some = ("x", "x <> 0") if limit is None else ("1", f"x > {self.literal(limit)}")
            selects = [
                f"SELECT row_id, {self.literal(word)} AS word, x{j}_{k} AS x FROM input"
                for k, word in enumerate(self.words[j][0])
            ]
            yield f"{t}_bag", f"SELECT row_id, word, {n} AS n FROM ({' UNION ALL '.join(selects)}) AS t WHERE {some}"
        count = {"count": "b.n", "log": "LN(1e0 + b.n)", "root": "SQRT(b.n)", "presence": "1e0"}[column["count"]]
        join = f"JOIN {self.own('words')} AS l ON l.col = {j} AND l.word = b.word"
        known = f"SELECT b.row_id, l.*, {count} * l.scale AS a FROM {t}_bag AS b {join} WHERE l.scale > 0"
        yield f"{t}_known", known
        sizes = {
            "none": f"SELECT DISTINCT row_id, 1e0 AS size FROM {t}_known",
            "all": f"SELECT b.row_id, SQRT(SUM({count} * {count})) AS size FROM {t}_bag AS b GROUP BY b.row_id",
            "known": f"SELECT row_id, SQRT(SUM(a * a)) AS size FROM {t}_known GROUP BY row_id",
        }
        yield f"{t}_size", sizes[column["length"]]
        says = self.by_class("k.a / z.size * k.n{c} AS n{c}")
        yield (
            f"{t}_said",
            f"SELECT k.row_id, k.word, {says} FROM {t}_known AS k JOIN {t}_size AS z ON z.row_id = k.row_id",
        )
        yield f"{t}_sum", f"SELECT row_id, {self.by_class('SUM(n{c}) AS n{c}')} FROM {t}_said GROUP BY row_id"

    def grams(self, column: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """The n-grams of a text's words, or of its characters, and how often it has each."""
        j = column["column"]
        characters = column["unit"] == "characters"
        t = f"t{j}"
        text = f"LOWER(x{j})" if column["lowercase"] else f"x{j}"
        if characters:
            text = self.sql.blanks.format(x=text, spaces=self.literal(SPACES + "{2,}"))
        pattern = "(?s)." if characters else PATTERNS[column["tokens"]].replace("W", self.sql.word or "")
        yield f"{t}_tokens", self.sql.tokens.format(text=text, pattern=self.literal(pattern))
        kept = ["LENGTH(word) > 1"] if column["tokens"] == "mail" and not characters else ["1 = 1"]
        if column["stop_words"]:
            kept.append(f"word NOT IN ({', '.join(map(self.literal, column['stop_words']))})")
        window = "OVER (PARTITION BY row_id ORDER BY place)"
        leads = "".join(f", LEAD(word, {n}) {window} AS w{n}" for n in range(1, column["longest"]))
        yield f"{t}_words", f"SELECT row_id, word AS w0{leads} FROM {t}_tokens WHERE {' AND '.join(kept)}"
        space = " || " if characters else " || ' ' || "
        selects = [
            f"SELECT row_id, {space.join(f'w{i}' for i in range(n))} AS word FROM {t}_words WHERE w{n - 1} IS NOT NULL"
            for n in range(column["shortest"], column["longest"] + 1)
        ]
        only = f" WHERE word IN ({', '.join(map(self.literal, column['only']))})" if column["only"] else ""
        grams = f"({' UNION ALL '.join(selects)}) AS g{only}"
        yield f"{t}_bag", f"SELECT row_id, word, COUNT(*) AS n FROM {grams} GROUP BY row_id, word"

    def scoring(self) -> Iterator[tuple[str, str]]:
        """Named queries, up to the scores of rows and classes."""
        yield "input", self.inputs()
        for column in self.columns:
            if column["column"] in self.words:
                yield from self.bag(column)
        terms = [*map(self.column_term, self.columns)]
        self.chunks = [
            some[start : start + MOST_JOINS]
            for some in (terms, [*self.pair_terms()])
            for start in range(0, len(some), MOST_JOINS)
        ]
        sums = ["p.nats"] * self.k
        last = "input"
        for m, terms in enumerate(self.chunks):
            fields = ["f.*", *(term.cell for term in terms if term.cell is not None)]
            fields += [f"{' + '.join(term.nats[c] for term in terms)} AS s{m}_{c}" for c in range(self.k)]
            joins = "\n".join(term.join for term in terms)
            yield f"f{m}", f"SELECT {', '.join(fields)}\nFROM {last} AS f\n{joins}"
            sums = [f"{total} + f.s{m}_{c}" for c, total in enumerate(sums)]
            last = f"f{m}"
        prior = f"CROSS JOIN {self.own('prior')} AS p"
        yield "scores", f"SELECT f.row_id, p.class, {self.pick(sums)} AS score FROM {last} AS f {prior}"

    # Posteriors

    def answering(self) -> Iterator[tuple[str, str]]:
        """Named queries from scores to posteriors, with the rank of each class."""
        by_row = "OVER (PARTITION BY row_id)"
        infinity = self.sql.infinity
        least, greatest = self.sql.extremes
        join = f"JOIN {self.own('prior')} AS p ON p.class = s.class"
        steps, lines = (len(self.tables.rules(method)) for method in ("step", "line"))
        order = "posterior"
        if self.tables.answers == "labels":
            line = self.between(-DEEPEST, "p.slope * s.score + p.shift", DEEPEST)
            share = f"1e0 / (1e0 + EXP(-{line}))"
            yield "posteriors", f"SELECT s.row_id, s.class, s.score, {share} AS posterior FROM scores AS s {join}"
        else:
            yield "tops", f"SELECT row_id, class, score, MAX(score) {by_row} AS top FROM scores"
            score = f"CASE WHEN s.top = -{infinity} THEN p.nats ELSE s.score - s.top END"
            yield "centred", f"SELECT s.row_id, s.class, {score} AS score FROM tops AS s {join}"
            if steps or lines:
                yield from self.odds()
            if steps:
                rise = f"SUM(p.share * {self.between(0.0, '(s.score - p.low) / (p.high - p.low)', 1.0)})"
                stairs = f"{self.own('stairs')} AS p ON p.class = s.class GROUP BY s.row_id, s.class, s.score"
                share = f"ROUND(1e12 * {rise}) / 1e12"
                yield "shares", f"SELECT s.row_id, s.class, s.score, {share} AS share FROM odds AS s JOIN {stairs}"
            else:
                _, heat, floor, _ = (self.tables.rules("temperature").tolist() or [[0, 1.0, -math.inf, 0]])[0]
                log = f"{greatest}(s.score, {self.literal(floor)}) / {self.literal(heat)}"
                log = f"CASE WHEN s.score = -{infinity} THEN s.score ELSE {log} END"
                order = "score"
                if lines:
                    line = "CASE WHEN ABS(s.score) < 1e300 THEN p.slope * s.score + p.shift ELSE s.score END"
                    log = f"{least}(0e0, {line}) - LN(1e0 + EXP(-{least}(ABS({line}), {DEEPEST})))"
                    order = "posterior"
                source = "odds" if lines else "centred"
                yield "logs", f"SELECT s.row_id, s.class, s.score, {log} AS log FROM {source} AS s {join}"
                share = f"EXP({greatest}(log - MAX(log) {by_row}, -{DEEPEST}))"
                yield "shares", f"SELECT row_id, class, score, {share} AS share FROM logs"
            posterior = (
                f"CASE WHEN SUM(share) {by_row} > 0 THEN share / SUM(share) {by_row} ELSE {1.0 / self.k!r}e0 END"
            )
            yield "posteriors", f"SELECT row_id, class, score, {posterior} AS posterior FROM shares"
        rank = f"ROW_NUMBER() OVER (PARTITION BY row_id ORDER BY {order} DESC, class) AS place"
        yield "placed", f"SELECT row_id, class, posterior, {rank} FROM posteriors"
        given = "s.posterior >= p.threshold" if self.tables.answers == "labels" else "s.place = 1"
        yield "ranked", f"SELECT s.*, p.name, CASE WHEN {given} THEN 1 ELSE 0 END AS is_answer FROM placed AS s {join}"

    def odds(self) -> Iterator[tuple[str, str]]:
        """Log-odds of each class against all others."""
        rivals = "JOIN centred AS o ON o.row_id = s.row_id AND o.class <> s.class GROUP BY s.row_id, s.class, s.score"
        yield "seconds", f"SELECT s.row_id, s.class, s.score, MAX(o.score) AS top FROM centred AS s {rivals}"
        rest = f"LN(SUM(EXP({self.sql.extremes[1]}(o.score - s.top, -{DEEPEST}))))"
        odds = self.between(-1e300, f"s.score - s.top - {rest}", 1e300)
        certain = f"CASE WHEN s.top = -{self.sql.infinity} THEN 1e300 ELSE {odds} END"
        yield "odds", f"SELECT s.row_id, s.class, {certain} AS score FROM seconds AS s {rivals}, s.top"

    # Reasons

    def reasons(self) -> Iterator[tuple[str, str]]:
        """Named queries of what each column, pair and word says for an answer: against the next class, or of a label at all."""
        prior = f"CROSS JOIN {self.own('prior')} AS p"
        parts = list[tuple[str, str, str, str]]()
        for m, terms in enumerate(self.chunks):
            source = f"f{m - 1}" if m else "input"
            for term in terms:
                rows = f"{source} AS f {term.join} {prior}"
                if term.value:
                    parts.append((term.name, term.value, self.pick(term.nats), rows))
        for column in self.columns:
            j = column["column"]
            if j in self.words:
                nats = self.pick([f"f.n{c}" for c in range(self.k)])
                parts.append((column["name"], "f.word", nats, f"t{j}_said AS f {prior}"))
        pieces = [
            f"SELECT f.row_id, p.class, {self.literal(name)} AS evidence, CAST({value} AS {self.sql.text}) AS item, "
            f"{nats} AS nats\nFROM {rows}"
            for name, value, nats, rows in parts
        ]
        none = "SELECT row_id, class, NULL AS evidence, NULL AS item, score AS nats FROM scores WHERE 1 = 0"
        yield "pieces", "\nUNION ALL\n".join(pieces) or none
        if self.tables.answers == "labels":
            sides = "SELECT row_id, class, name, 1e0 AS side FROM ranked WHERE is_answer = 1"
        else:
            sides = "SELECT r.row_id, r.class, b.name, CASE WHEN r.place = 1 THEN 1e0 ELSE -1e0 END AS side FROM ranked AS r "
            sides += "JOIN ranked AS b ON b.row_id = r.row_id AND b.place = 1 WHERE r.place <= 2"
        yield "sides", sides
        nats = f"SUM(s.side * q.nats) * {self.literal(10.0 / math.log(10.0))} AS decibans"
        join = "JOIN sides AS s ON s.row_id = q.row_id AND s.class = q.class"
        answers = "q.row_id, s.name, q.evidence, q.item"
        yield "weights", f"SELECT {answers}, {nats} FROM pieces AS q {join} GROUP BY {answers}"
        rank = "ROW_NUMBER() OVER (PARTITION BY row_id, name ORDER BY ABS(decibans) DESC, evidence, item) AS place"
        yield "chosen", f"SELECT row_id, name, evidence, item, decibans, {rank} FROM weights"

    # Views

    def make_views(self, reasons: bool) -> Iterator[str]:
        queries = [*self.scoring(), *self.answering()]
        key = self.quote(self.key or "row")
        shown = f"row_id AS {key}, name AS class, posterior, place, is_answer FROM ranked"
        yield self.view("posterior", shown, queries)
        answers = f"{key}, class, posterior FROM {self.own('posterior')} WHERE is_answer = 1"
        yield self.view("answer", answers, [])
        if reasons:
            shown = f"row_id AS {key}, name AS class, place, evidence, item AS value, decibans FROM chosen"
            yield self.view("reasons", f"{shown} WHERE place <= {MOST_REASONS}", [*queries, *self.reasons()])

    def view(self, name: str, shown: str, queries: Sequence[tuple[str, str]]) -> str:
        named = ",\n".join(f"{query_name} AS {self.sql.materialized}({query})" for query_name, query in queries)
        return f"CREATE VIEW {self.own(name)} AS\n{'WITH ' if queries else ''}{named}\nSELECT {shown}"
