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
TABLES = {
    "prior": "class INTEGER, name {text}, nats {real}, temperature {real}, floor {real}, slope {real}, shift {real}, "
    "threshold {real}",
    "entries": "col INTEGER, item {text}, low {real}, last {real}, cell INTEGER, {nats}",
    "pairs": "first INTEGER, first_cell INTEGER, second INTEGER, second_cell INTEGER, {nats}",
    "words": "col INTEGER, word {text}, scale {real}, {nats}",
    "stairs": "class INTEGER, low {real}, high {real}, share {real}, slope {real}",
}
# Named queries from scores to posteriors and places: of labels, of classes, and of classes whose log-odds are calibrated.
LABELS = """posteriors AS {m}(SELECT s.row_id, s.class,
  1e0 / (1e0 + EXP(-{least}({greatest}(p.slope * s.score + p.shift, -{deepest}), {deepest}))) AS posterior
  FROM scores AS s {join})"""
CENTRED = """tops AS {m}(SELECT row_id, class, score, MAX(score) {by_row} AS top FROM scores),
centred AS {m}(SELECT s.row_id, s.class, CASE WHEN s.top = -{inf} THEN p.nats ELSE s.score - s.top END AS score
  FROM tops AS s {join}),
heated AS {m}(SELECT s.row_id, s.class, CASE WHEN s.score = -{inf} THEN s.score
  ELSE {greatest}(s.score, p.floor) / p.temperature END AS score FROM centred AS s {join})"""
STRAIGHT = "shares AS {m}(SELECT row_id, class, score, EXP({greatest}(score, -{deepest})) AS share FROM heated)"
BENT = """seconds AS {m}(SELECT s.row_id, s.class, s.score, MAX(o.score) AS top FROM heated AS s {rivals}),
odds AS {m}(SELECT s.row_id, s.class, CASE WHEN s.top = -{inf} THEN 1e300 ELSE {least}({greatest}(s.score - s.top -
  LN(SUM(EXP({greatest}(o.score - s.top, -{deepest})))), -1e300), 1e300) END AS odds FROM seconds AS s {rivals}, s.top),
lines AS {m}(SELECT s.row_id, s.class, s.odds, CASE WHEN ABS(s.odds) < 1e300 THEN p.slope * s.odds + p.shift ELSE s.odds END AS y
  FROM odds AS s {join}),
logs AS {m}(SELECT row_id, class, odds, {least}(0e0, y) - LN(1e0 + EXP(-{least}(ABS(y), {deepest}))) AS log FROM lines),
shares AS {m}(SELECT s.row_id, s.class, 0e0 AS score, CASE WHEN t.class IS NULL
  THEN EXP({greatest}(s.log - MAX(s.log) OVER (PARTITION BY s.row_id), -{deepest}))
  ELSE t.share + t.slope * (s.odds - t.low) END AS share
  FROM logs AS s LEFT JOIN {stairs} AS t ON t.class = s.class AND t.low <= s.odds AND s.odds < t.high)"""
SHARED = """posteriors AS {m}(SELECT row_id, class, score, CASE WHEN SUM(share) {by_row} > 0 THEN share / SUM(share) {by_row}
  ELSE {equal} END AS posterior FROM shares)"""
RANKED = """placed AS {m}(SELECT row_id, class, posterior,
  ROW_NUMBER() OVER (PARTITION BY row_id ORDER BY {order} DESC, class) AS place
  FROM posteriors),
ranked AS {m}(SELECT s.*, p.name, CASE WHEN {answer} THEN 1 ELSE 0 END AS is_answer FROM placed AS s {join})"""
# What each column, pair and word says for an answer: against the next class, or of a label at all.
LABEL_SIDES = "SELECT row_id, class, name, 1e0 AS side FROM ranked WHERE is_answer = 1"
CLASS_SIDES = """SELECT r.row_id, r.class, b.name, CASE WHEN r.place = 1 THEN 1e0 ELSE -1e0 END AS side
  FROM ranked AS r JOIN ranked AS b ON b.row_id = r.row_id AND b.place = 1 WHERE r.place <= 2"""
REASONS = """pieces AS {m}({pieces}),
sides AS {m}({sides}),
weights AS {m}(SELECT q.row_id, s.name, q.evidence, q.item, SUM(s.side * q.nats) * {decibans} AS decibans FROM pieces AS q
  JOIN sides AS s ON s.row_id = q.row_id AND s.class = q.class GROUP BY q.row_id, s.name, q.evidence, q.item),
chosen AS {m}(SELECT row_id, name, evidence, item, decibans,
  ROW_NUMBER() OVER (PARTITION BY row_id, name ORDER BY ABS(decibans) DESC, evidence, item) AS place FROM weights)"""
# The words of a column in the rows, from its bag: what each says, and all of them.
WORDS = """t{j}_known AS {m}(SELECT b.row_id, l.*, {count} * l.scale AS a FROM t{j}_bag AS b
  JOIN {words} AS l ON l.col = {j} AND l.word = b.word WHERE l.scale > 0),
t{j}_size AS {m}({size}),
t{j}_said AS {m}(SELECT k.row_id, k.word, {says} FROM t{j}_known AS k JOIN t{j}_size AS z ON z.row_id = k.row_id),
t{j}_sum AS {m}(SELECT row_id, {sums} FROM t{j}_said GROUP BY row_id)"""
SIZES = {
    "none": "SELECT DISTINCT row_id, 1e0 AS size FROM t{j}_known",
    "all": "SELECT b.row_id, SQRT(SUM({count} * {count})) AS size FROM t{j}_bag AS b GROUP BY b.row_id",
    "known": "SELECT row_id, SQRT(SUM(a * a)) AS size FROM t{j}_known GROUP BY row_id",
}
COUNTS = {"count": "b.n", "log": "LN(1e0 + b.n)", "root": "SQRT(b.n)", "presence": "1e0"}
PATTERNS = {"word": "W{2,}", "word1": "W+", "mail": "W+(?:[-.@'+&]W+)+|W{2,}"}


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
    """Returns a script that creates the tables and the views."""
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
        self.columns = tables.by_column()
        for column in self.columns:
            if column["kind"] == "text" and self.sql.word is None:
                text = f"column {column['name']!r} holds texts, but {dialect} has no regular expressions to split them."
                raise errors.BadSetting(f"{text} Use another dialect, or export a page or ONNX.", column=column["name"])
            check_tokens(column)
        terms = [*map(self.column_term, self.columns)]
        self.chunks = [
            some[start : start + MOST_JOINS]
            for some in (terms, [*self.pair_terms()])
            for start in range(0, len(some), MOST_JOINS)
        ]
        self.labels = tables.answers == "labels"
        least, greatest = self.sql.extremes
        others = "JOIN heated AS o ON o.row_id = s.row_id AND o.class <> s.class GROUP BY s.row_id, s.class, s.score"
        self.phrases = {  # of the named queries
            **{name: self.model_table(name) for name in TABLES},
            "m": self.sql.materialized,
            "inf": self.sql.infinity,
            "least": least,
            "greatest": greatest,
            "deepest": DEEPEST,
            "by_row": "OVER (PARTITION BY row_id)",
            "join": f"JOIN {self.model_table('prior')} AS p ON p.class = s.class",
            "rivals": others,
            "equal": self.literal(1.0 / self.k),
            "order": "posterior" if self.labels or tables.bends else "score",
            "answer": "s.posterior >= p.threshold" if self.labels else "s.place = 1",
            "decibans": self.literal(10.0 / math.log(10.0)),
            "sides": LABEL_SIDES if self.labels else CLASS_SIDES,
        }

    # How things are written

    def quote(self, name: str) -> str:
        mark = self.sql.mark
        return mark + name.replace(mark, mark * 2) + mark

    def model_table(self, name: str) -> str:
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

    def by_class(self, text: str) -> str:
        """A list of an expression for every class, whose number stands for {c}."""
        return ", ".join(text.replace("{c}", str(c)) for c in range(self.k))

    # Tables

    def make_tables(self) -> Iterator[str]:
        types = {"text": self.sql.text, "real": self.sql.real, "nats": self.by_class(f"n{{c}} {self.sql.real}")}
        classes = zip(self.tables.prior.to_pylist(), self.tables.calibration.to_pylist(), strict=True)
        rows: dict[str, Iterable[Iterable[Any]]] = {
            "prior": ({**prior, **calibration}.values() for prior, calibration in classes),
            "entries": self.entries(),
            "pairs": ([*pair.values()][:4] + pair["nats"] for pair in self.tables.entries("pairs")),
            "words": (
                (word["column"], word["word"], word["scale"], *word["nats"])
                for column in self.columns
                for word in column["words"][1:]
                if self.can_hold(word["word"])
            ),
            "stairs": (step.values() for step in self.tables.stairs.to_pylist()),
        }
        for name, fields in TABLES.items():
            table = self.model_table(name)
            yield f"CREATE TABLE {table} ({fields.format(**types)})"
            written = [f"({', '.join(map(self.literal, row))})" for row in rows[name]]
            for start in range(0, len(written), CHUNK):
                yield f"INSERT INTO {table} VALUES\n" + ",\n".join(written[start : start + CHUNK])

    def entries(self) -> Iterator[Iterable[Any]]:
        """What values and numbers say: texts by ``item``, numbers from ``low`` to ``last``; infinity stands for a missing one."""
        for column in self.columns:
            for entry in column["values"]:
                if not entry["unseen"] and self.can_hold(entry["value"] or ""):
                    item = "-" if entry["value"] is None else f"={entry['value']}"
                    yield entry["column"], item, None, None, entry["cell"], *entry["nats"]
            for entry in column["steps"]:
                low = math.inf if entry["from"] is None else entry["from"]
                last = math.inf if entry["to"] is None else float(np.nextafter(entry["to"], -np.inf))
                yield entry["column"], None, low, last, entry["cell"], *entry["nats"]

    # The evidence of a row

    def inputs(self) -> str:
        """The rows with what is looked up: x0, x1, … of the columns."""
        chosen = [f"{'ROW_NUMBER() OVER ()' if self.key is None else self.quote(self.key)} AS row_id"]
        for column in self.columns:
            j = column["column"]
            text = f"CAST({self.quote(column['name'])} AS {self.sql.text})"
            number = self.sql.number.format(x=self.quote(column["name"]))
            if column["kind"] == "counts":
                numbers = [self.sql.number.format(x=self.quote(word["word"])) for word in column["words"][1:]]
                chosen += [f"{x} AS x{j}_{k}" for k, x in enumerate(numbers)]
                text = "1"
            elif column["kind"] == "number":
                text = number if column["curves"] else f"COALESCE({number}, {self.sql.infinity})"
            elif column["kind"] == "string":
                text = f"COALESCE('=' || {text}, '-')"
            chosen.append(f"{text} AS x{j}")
        return f"SELECT {', '.join(chosen)} FROM {self.quote(self.table)}"

    def column_term(self, column: dict[str, Any]) -> EvidenceTerm:
        j = column["column"]
        e = f"e{j}"
        name = column["name"]
        there = f"CASE WHEN f.x{j} IS NULL THEN 0e0 ELSE"
        if column["words"]:
            common = column["words"][0]["nats"]
            nats = [f"COALESCE({e}.n{c}, 0e0) + {there} {self.literal(x)} END" for c, x in enumerate(common)]
            return EvidenceTerm(f"LEFT JOIN t{j}_sum AS {e} ON {e}.row_id = f.row_id", nats, name, "")
        if column["curves"]:
            sums = ["0e0"] * self.k
            for curve in column["curves"]:
                sums[curve["class"]] += f" + {self.curve(curve)}"
            return EvidenceTerm("", [f"{there} {x} END" for x in sums], name, f"CAST(f.x{j} AS {self.sql.text})")
        entries = self.model_table("entries")
        if column["kind"] == "string":
            join = f"{entries} AS {e} ON {e}.col = {j} AND {e}.item = f.x{j}"
            shown = f"SUBSTR(f.x{j}, 2)"
        else:  # each number that there is is looked up once
            numbers = f"(SELECT DISTINCT x{j} AS x FROM input) AS d"
            on = f"b.col = {j} AND b.low <= d.x AND d.x <= b.last"
            join = f"(SELECT d.x, b.* FROM {numbers} JOIN {entries} AS b ON {on}) AS {e} ON {e}.x = f.x{j}"
            shown = f"CAST(f.x{j} AS {self.sql.text})"
        nothing: dict[str, Any] = {"cell": None, "nats": [0.0] * self.k}
        unseen = next((entry for entry in column["values"] if entry["unseen"]), nothing)
        nats = [f"COALESCE({e}.n{c}, {self.literal(x)})" for c, x in enumerate(unseen["nats"])]
        cell = f"COALESCE({e}.cell, {self.literal(unseen['cell'])}) AS c{j}"
        return EvidenceTerm(f"LEFT JOIN {join}", nats, name, shown, cell)

    def curve(self, curve: dict[str, Any]) -> str:
        """What a number says of a class."""
        lit = {name: self.literal(value) for name, value in curve.items()}
        least, greatest = self.sql.extremes
        x = f"(f.x{lit['column']} - ({lit['origin']})) / {lit['unit']}"
        x = f"({least}({greatest}({x}, {self.literal(-FARTHEST)}), {self.literal(FARTHEST)}) - ({lit['centre']}))"
        powers = {"one": "1e0", "x": x, "x2": f"{x} * {x}", "log_x": f"LN({x})"}
        return " + ".join(f"({lit[name]}) * {power}" for name, power in powers.items() if curve[name]) or "0e0"

    def pair_terms(self) -> Iterator[EvidenceTerm]:
        names = [column["name"] for column in self.columns]
        for a, b in dict.fromkeys((pair["first"], pair["second"]) for pair in self.tables.entries("pairs")):
            e = f"p{a}_{b}"
            where = f"{e}.first = {a} AND {e}.second = {b} AND {e}.first_cell = f.c{a} AND {e}.second_cell = f.c{b}"
            nats = [f"COALESCE({e}.n{c}, 0e0)" for c in range(self.k)]
            join = f"LEFT JOIN {self.model_table('pairs')} AS {e} ON {where}"
            yield EvidenceTerm(join, nats, f"{names[a]} with {names[b]}", "NULL")

    def bag(self, column: dict[str, Any]) -> Iterator[str]:
        """Named queries of a column's words in the rows."""
        phrases = {**self.phrases, "j": column["column"], "count": COUNTS[column["count"]]}
        if column["kind"] == "text":
            yield from self.grams(column)
        else:
            limit = column["threshold"]
            n, some = ("x", "x <> 0") if limit is None else ("1", f"x > {self.literal(limit)}")
            numbers = " UNION ALL ".join(
                f"SELECT row_id, {self.literal(word['word'])} AS word, x{column['column']}_{k} AS x FROM input"
                for k, word in enumerate(column["words"][1:])
            )
            bag = f"SELECT row_id, word, {n} AS n FROM ({numbers}) AS t WHERE {some}"
            yield f"t{column['column']}_bag AS {self.sql.materialized}({bag})"
        size = SIZES[column["length"]].format(**phrases)
        says = self.by_class("k.a / z.size * k.n{c} AS n{c}")
        yield WORDS.format(**phrases, size=size, says=says, sums=self.by_class("SUM(n{c}) AS n{c}"))

    def grams(self, column: dict[str, Any]) -> Iterator[str]:
        """The n-grams of a text's words, or of its characters, and how often it has each."""
        j = column["column"]
        m = self.sql.materialized
        characters = column["unit"] == "characters"
        text = f"LOWER(x{j})" if column["lowercase"] else f"x{j}"
        if characters:
            text = self.sql.blanks.format(x=text, spaces=self.literal(SPACES + "{2,}"))
        pattern = "(?s)." if characters else PATTERNS[column["tokens"]].replace("W", self.sql.word or "")
        yield f"t{j}_tokens AS {m}({self.sql.tokens.format(text=text, pattern=self.literal(pattern))})"
        stopped = f"WHERE word NOT IN ({', '.join(map(self.literal, column['stop_words'] or ['']))})"
        window = "OVER (PARTITION BY row_id ORDER BY place)"
        leads = "".join(f", LEAD(word, {n}) {window} AS w{n}" for n in range(1, column["longest"]))
        yield f"t{j}_words AS {m}(SELECT row_id, word AS w0{leads} FROM t{j}_tokens {stopped})"
        space = " || " if characters else " || ' ' || "
        grams = " UNION ALL ".join(
            f"SELECT row_id, {space.join(f'w{i}' for i in range(n))} AS word FROM t{j}_words WHERE w{n - 1} IS NOT NULL"
            for n in range(column["shortest"], column["longest"] + 1)
        )
        only = f"WHERE word IN ({', '.join(map(self.literal, column['only']))})" if column["only"] else ""
        yield f"t{j}_bag AS {m}(SELECT row_id, word, COUNT(*) AS n FROM ({grams}) AS g {only} GROUP BY row_id, word)"

    def scoring(self) -> Iterator[str]:
        """Named queries, up to the scores of rows and classes."""
        m = self.sql.materialized
        yield f"input AS {m}({self.inputs()})"
        for column in self.columns:
            if column["words"]:
                yield from self.bag(column)
        sums = ["p.nats"] * self.k
        last = "input"
        for n, terms in enumerate(self.chunks):
            fields = ["f.*", *(term.cell for term in terms if term.cell is not None)]
            fields += [f"{' + '.join(term.nats[c] for term in terms)} AS s{n}_{c}" for c in range(self.k)]
            joins = "\n".join(term.join for term in terms)
            yield f"f{n} AS {m}(SELECT {', '.join(fields)}\nFROM {last} AS f\n{joins})"
            sums = [f"{total} + f.s{n}_{c}" for c, total in enumerate(sums)]
            last = f"f{n}"
        prior = f"CROSS JOIN {self.model_table('prior')} AS p"
        yield f"scores AS {m}(SELECT f.row_id, p.class, {self.pick(sums)} AS score FROM {last} AS f {prior})"

    def pieces(self) -> Iterator[str]:
        """What each column, pair and word of a row says of each class."""
        terms = [
            (term.name, term.value, term.nats, f"{f'f{n - 1}' if n else 'input'} AS f {term.join}")
            for n, terms in enumerate(self.chunks)
            for term in terms
            if term.value
        ]
        words = [f"f.n{c}" for c in range(self.k)]
        terms += [(c["name"], "f.word", words, f"t{c['column']}_said AS f") for c in self.columns if c["words"]]
        for name, value, nats, rows in terms:
            item = f"{self.literal(name)} AS evidence, CAST({value} AS {self.sql.text}) AS item"
            prior = f"CROSS JOIN {self.model_table('prior')} AS p"
            yield f"SELECT f.row_id, p.class, {item}, {self.pick(nats)} AS nats\nFROM {rows} {prior}"
        yield "SELECT row_id, class, NULL AS evidence, NULL AS item, score AS nats FROM scores WHERE 1 = 0"

    # Views

    def make_views(self, reasons: bool) -> Iterator[str]:
        key = self.quote(self.key or "row")
        classes = [CENTRED, BENT if self.tables.bends else STRAIGHT, SHARED]
        answering = [text.format(**self.phrases) for text in ([LABELS] if self.labels else classes) + [RANKED]]
        queries = ",\n".join([*self.scoring(), *answering])
        shown = f"SELECT row_id AS {key}, name AS class"
        yield f"{self.view('posterior')} WITH {queries}\n{shown}, posterior, place, is_answer FROM ranked"
        yield f"{self.view('answer')} SELECT {key}, class, posterior FROM {self.model_table('posterior')} WHERE is_answer = 1"
        if reasons:
            because = REASONS.format(**self.phrases, pieces="\nUNION ALL\n".join(self.pieces()))
            what = f"{shown}, place, evidence, item AS value, decibans FROM chosen WHERE place <= {MOST_REASONS}"
            yield f"{self.view('reasons')} WITH {queries},\n{because}\n{what}"

    def view(self, name: str) -> str:
        return f"CREATE VIEW {self.model_table(name)} AS"
