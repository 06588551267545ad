"""SQL: the evidence table as tables of a database, and views that add it up for the rows of another table.

Every column of a row is joined to the entry that its value or number has, every pair of columns to its cells, and every word to
the lexicon; the nats of each class are added. Missing is an entry of its own; what matches none is a value that no row had.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury.model.evidence_table import EvidenceTable

MOST_JOINS = 40  # tables of one query: SQLite takes 64
MOST_REASONS = 3
MOST_CLASSES = 1_000  # a table has a column for each: PostgreSQL takes 1,600
CHUNK = 500  # rows of one INSERT
FARTHEST = 2.0**400
DEEPEST = 700.0  # the exponential of more is no double, and PostgreSQL says so
SPACES = "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
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
        self.dialect = dialect
        self.sql = DIALECTS[dialect]
        self.table = table
        self.key = key
        self.name = name
        self.k = tables.prior.num_rows
        expected = f"at most {MOST_CLASSES:,} classes, because each one is a column of a table"
        errors.require(self.k <= MOST_CLASSES, "the model", f"{self.k:,} classes", expected)
        self.columns = tables.columns.to_pylist()
        self.calibration = tables.calibration.to_pylist()
        self.method = self.calibration[0]["method"] if self.calibration else None
        self.curves = tables.curves.to_pylist()
        self.unseen: dict[int, tuple[int | None, list[float]]] = {}  # cell and nats of a value that no row had
        for column in self.columns:
            self.check_text(column)

    def check_text(self, column: dict[str, Any]) -> None:
        if column["kind"] != "text":
            return
        if self.sql.word is None:
            text = (
                f"column {column['name']!r} holds texts, but {self.dialect} has no regular expressions to split them."
            )
            raise errors.BadSetting(f"{text} Use another dialect, or export a page or ONNX.", column=column["name"])
        if column["unit"] == "words" and column["tokens"] not in PATTERNS:
            expected = f"one of {', '.join(PATTERNS)}: Python regular expressions can mean something else in SQL"
            raise errors.bad_setting("tokens", column["tokens"], expected)

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

    def can_hold(self, text: str | None) -> bool:
        """Whether a text of the database can be this one."""
        try:
            (text or "").encode("utf-8")
        except UnicodeEncodeError:
            return False
        return self.sql.zero is not None or "\0" not in (text or "")

    def pick(self, expressions: Sequence[str], at: str = "p.class") -> str:
        """The item of a class."""
        cases = " ".join(f"WHEN {c} THEN {expression}" for c, expression in enumerate(expressions))
        return self.sql.pick.format(items=", ".join(expressions), at=at, cases=cases)

    def between(self, low: float, x: str, high: float) -> str:
        least, greatest = self.sql.extremes
        return f"{least}({greatest}({x}, {self.literal(low)}), {self.literal(high)})"

    # Tables

    def make_tables(self) -> Iterator[str]:
        real = self.sql.real
        text = self.sql.text
        nats = {f"n{c}": real for c in range(self.k)}
        rules = {"slope": real, "shift": real, "threshold": real}
        yield from self.create_table("prior", {"class": "INTEGER", "name": text, "nats": real} | rules, self.prior())
        keyed = {"col": "INTEGER", "item": text, "low": real, "last": real, "cell": "INTEGER"}
        yield from self.create_table("entries", keyed | nats, self.entries())
        cells = dict.fromkeys(("first", "first_cell", "second", "second_cell"), "INTEGER")
        yield from self.create_table("pairs", cells | nats, self.pair_rows())
        if self.sql.by_index:
            yield f"CREATE INDEX {self.own('by_low')} ON {self.own('entries')} (col, low)"
        lexicon, words = self.lexicon()
        yield from self.create_table(
            "lexicon", {"id": "INTEGER", "col": "INTEGER", "word": text, "scale": real}, lexicon
        )
        yield from self.create_table("words", {"id": "INTEGER", "class": "INTEGER", "nats": real}, words)
        stairs = {"class": "INTEGER", **dict.fromkeys(("low", "last", "x", "y", "slope"), real)}
        yield from self.create_table("stairs", stairs, self.stairs() if self.method == "isotonic" else ())

    def create_table(self, name: str, columns: dict[str, str], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
        made = ", ".join(f"{self.quote(column)} {kind}" for column, kind in columns.items())
        yield f"CREATE TABLE {self.own(name)} ({made})"
        written = [f"({', '.join(map(self.literal, row))})" for row in rows]
        for start in range(0, len(written), CHUNK):
            yield f"INSERT INTO {self.own(name)} VALUES\n" + ",\n".join(written[start : start + CHUNK])

    def prior(self) -> Iterator[tuple[Any, ...]]:
        lines = {row["class"]: (row["x"], row["y"]) for row in self.calibration if row["method"] in ("line", "platt")}
        thresholds = {row["class"]: row["x"] for row in self.calibration if row["method"] == "threshold"}
        for row in self.tables.prior.to_pylist():
            c = row["class"]
            yield c, row["name"], row["nats"], *lines.get(c, (None, None)), thresholds.get(c)

    def entries(self) -> Iterator[tuple[Any, ...]]:
        """What values and numbers say: texts by ``item``, numbers from ``low`` to ``last``; infinity stands for a missing one."""
        strings = {column["column"] for column in self.columns if column["kind"] == "string"}
        for row, nats in self.tables.entries_of("values"):
            column = row["column"]
            missing = row["value"] is None
            if row["unseen"]:
                self.unseen[column] = row["cell"], nats
            elif column not in strings:
                number = math.inf if missing else row["number"]
                yield column, None, number, number, row["cell"], *nats
            elif self.can_hold(row["value"]):
                yield column, "-" if missing else f"={row['value']}", None, None, row["cell"], *nats
        for row, nats in self.tables.entries_of("steps"):
            low = math.inf if row["from"] is None else row["from"]
            last = math.inf if row["to"] is None else float(np.nextafter(row["to"], -np.inf))
            yield row["column"], None, low, last, row["cell"], *nats

    def pair_rows(self) -> Iterator[tuple[Any, ...]]:
        for row, nats in self.tables.entries_of("pairs"):
            yield row["first"], row["first_cell"], row["second"], row["second_cell"], *nats

    def lexicon(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """The words with their numbers; and what they say."""
        ids: dict[tuple[int, str | None], int] = {}
        lexicon = list[tuple[Any, ...]]()
        words = list[tuple[Any, ...]]()
        for column, word, scale, c, nats in zip(*(part.to_pylist() for part in self.tables.words), strict=True):
            if not self.can_hold(word):
                continue
            if (column, word) not in ids:
                ids[column, word] = len(ids)
                lexicon.append((ids[column, word], column, word, scale))
            words.append((ids[column, word], c, nats))
        return lexicon, words

    def stairs(self) -> Iterator[tuple[Any, ...]]:
        """Stretches of log-odds, with the line in each."""
        for c in sorted({row["class"] for row in self.calibration}):
            x, y = np.array([(row["x"], row["y"]) for row in self.calibration if row["class"] == c]).T
            low = np.append(-np.inf, x)
            height = np.append(y[0], y)
            slope = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]])
            last = np.append(np.nextafter(x, -np.inf), np.inf)
            starts = np.append(x[0], x)
            yield from (
                (c, *row) for row in zip(*(a.tolist() for a in (low, last, starts, height, slope)), strict=True)
            )

    # The evidence of a row

    def inputs(self) -> str:
        """The rows with what is looked up: x0, x1, … of the columns."""
        key = "ROW_NUMBER() OVER ()" if self.key is None else self.quote(self.key)
        chosen = [f"{key} AS row_id"]
        curved = {curve["column"] for curve in self.curves}
        for column in self.columns:
            number = column["column"]
            name = self.quote(column["name"])
            as_number = self.sql.number.format(x=name)
            if column["kind"] == "string":
                chosen.append(f"COALESCE('=' || CAST({name} AS {self.sql.text}), '-') AS x{number}")
            elif column["kind"] == "number":
                missing = as_number if number in curved else f"COALESCE({as_number}, {self.sql.infinity})"
                chosen.append(f"{missing} AS x{number}")
            elif column["kind"] == "text":
                chosen.append(f"CAST({name} AS {self.sql.text}) AS x{number}")
            else:
                numbers = [self.sql.number.format(x=self.quote(word)) for word in self.tables.words_of(number)[0]]
                chosen += [f"{x} AS x{number}_{k}" for k, x in enumerate(numbers)]
        return f"SELECT {', '.join(chosen)} FROM {self.quote(self.table)}"

    def column_terms(self) -> Iterator[EvidenceTerm]:
        curved = {curve["column"] for curve in self.curves}
        for column in self.columns:
            j = column["column"]
            e = f"e{column['column']}"
            if column["kind"] not in ("string", "number"):
                continue
            if j in curved:
                yield EvidenceTerm("", self.curve(j), column["name"], f"CAST(f.x{j} AS {self.sql.text})")
                continue
            cell, nats = self.unseen.get(j, (None, [0.0] * self.k))
            entries = self.own("entries")
            if column["kind"] == "string":
                join = f"LEFT JOIN {entries} AS {e} ON {e}.col = {j} AND {e}.item = f.x{j}"
            elif self.sql.by_index:
                below = f"SELECT MAX(low) FROM {entries} AS b WHERE b.col = {j} AND b.low <= f.x{j}"
                join = f"LEFT JOIN {entries} AS {e} ON {e}.col = {j} AND {e}.low = ({below}) AND f.x{j} <= {e}.last"
            else:  # each number that there is is looked up once
                numbers = f"(SELECT DISTINCT x{j} AS x FROM input) AS d"
                lookup = f"SELECT d.x, b.* FROM {numbers} JOIN {entries} AS b ON b.col = {j} AND b.low <= d.x AND d.x <= b.last"
                join = f"LEFT JOIN ({lookup}) AS {e} ON {e}.x = f.x{j}"
            class_nats = [f"COALESCE({e}.n{c}, {self.literal(x)})" for c, x in enumerate(nats)]
            shown = f"SUBSTR(f.x{j}, 2)" if column["kind"] == "string" else f"CAST(f.x{j} AS {self.sql.text})"
            yield EvidenceTerm(
                join, class_nats, column["name"], shown, f"COALESCE({e}.cell, {self.literal(cell)}) AS c{j}"
            )

    def curve(self, number: int) -> list[str]:
        """What a number says of each class."""
        class_terms = [list[str]() for _ in range(self.k)]
        for curve in self.curves:
            if curve["column"] == number:
                lit = {name: self.literal(value) for name, value in curve.items()}
                x = self.between(-FARTHEST, f"(f.x{number} - ({lit['origin']})) / {lit['unit']}", FARTHEST)
                x = f"(({x} - ({lit['centre']})) / {lit['width']})"
                powers = {"one": "1e0", "x": x, "x2": f"{x} * {x}", "log_x": f"LN({x})"}
                class_terms[curve["class"]] += [
                    f"({lit[name]}) * {power}" for name, power in powers.items() if curve[name]
                ]
        return [
            f"CASE WHEN f.x{number} IS NULL THEN 0e0 ELSE {' + '.join(terms) or '0e0'} END" for terms in class_terms
        ]

    def pair_terms(self) -> Iterator[EvidenceTerm]:
        names = {column["column"]: column["name"] for column in self.columns}
        pairs = dict.fromkeys(
            zip(self.tables.pairs["first"].to_pylist(), self.tables.pairs["second"].to_pylist(), strict=True)
        )
        for a, b in pairs:
            e = f"p{a}_{b}"
            where = f"{e}.first = {a} AND {e}.second = {b} AND {e}.first_cell = f.c{a} AND {e}.second_cell = f.c{b}"
            join = f"LEFT JOIN {self.own('pairs')} AS {e} ON {where}"
            nats = [f"COALESCE({e}.n{c}, 0e0)" for c in range(self.k)]
            yield EvidenceTerm(join, nats, f"{names[a]} with {names[b]}", "NULL")

    def bag(self, column: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Named queries of a column's words: ``bag`` has the words of each row, ``said`` what they add."""
        j = column["column"]
        t = f"t{j}"
        there = f"x{j} IS NOT NULL"
        if column["kind"] == "text":
            yield from self.grams(column)
        else:
            limit = column["threshold"]
            there = "row_id IS NOT NULL"
            n = "x" if limit is None else "1"
            some = "x <> 0" if limit is None else f"x > {self.literal(limit)}"
            selects = [
                f"SELECT row_id, {self.literal(word)} AS word, x{j}_{k} AS x FROM input"
                for k, word in enumerate(self.tables.words_of(j)[0])
            ]
            yield f"{t}_bag", f"SELECT row_id, word, {n} AS n FROM ({' UNION ALL '.join(selects)}) AS t WHERE {some}"
        counted = {"count": "b.n", "log": "LN(1e0 + b.n)", "root": "SQRT(b.n)", "presence": "1e0"}[column["count"]]
        join = f"JOIN {self.own('lexicon')} AS l ON l.col = {j} AND l.word = b.word"
        yield (
            f"{t}_known",
            f"SELECT b.row_id, l.id, b.word, {counted} * l.scale AS a FROM {t}_bag AS b {join} WHERE l.scale > 0",
        )
        squares = {
            "none": "SELECT DISTINCT row_id, 1e0 AS size FROM {t}_known",
            "all": "SELECT b.row_id, SQRT(SUM({a} * {a})) AS size FROM {t}_bag AS b GROUP BY b.row_id",
            "known": "SELECT row_id, SQRT(SUM(a * a)) AS size FROM {t}_known GROUP BY row_id",
        }
        yield f"{t}_size", squares[column["length"]].format(t=t, a=counted)
        every = f"SELECT i.row_id, NULL AS word, l.id, 1e0 AS a FROM input AS i JOIN {self.own('lexicon')} AS l "
        every += f"ON l.col = {j} AND l.word IS NULL WHERE i.{there}"
        shares = f"SELECT k.row_id, k.word, k.id, k.a / z.size AS a FROM {t}_known AS k JOIN {t}_size AS z ON z.row_id = k.row_id"
        yield f"{t}_all", f"{shares} UNION ALL {every}"

    def grams(self, column: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """The n-grams of a text's words, or of its characters, and how often it has each."""
        j = column["column"]
        characters = column["unit"] == "characters"
        t = f"t{j}"
        space = "''" if characters else "' '"
        text = f"LOWER(x{j})" if column["lowercase"] else f"x{j}"
        if characters:
            text = self.sql.blanks.format(x=text, spaces=self.literal(SPACES + "{2,}"))
        pattern = "(?s)." if characters else PATTERNS[column["tokens"]].replace("W", self.sql.word or "")
        yield f"{t}_tokens", self.sql.tokens.format(text=text, pattern=self.literal(pattern))
        kept = ["LENGTH(word) > 1"] * (column["tokens"] == "mail" and not characters)
        kept += [f"word NOT IN ({', '.join(map(self.literal, column['stop_words'] or ()))})"] * bool(
            column["stop_words"]
        )
        window = "OVER (PARTITION BY row_id ORDER BY place)"
        leads = "".join(f", LEAD(word, {n}) {window} AS w{n}" for n in range(1, column["longest"]))
        where = f" WHERE {' AND '.join(kept)}" if kept else ""
        yield f"{t}_words", f"SELECT row_id, word AS w0{leads} FROM {t}_tokens{where}"
        joined = f" || {space} || "
        selects = [
            f"SELECT row_id, {joined.join(f'w{i}' for i in range(n))} AS word FROM {t}_words WHERE w{n - 1} IS NOT NULL"
            for n in range(column["shortest"], column["longest"] + 1)
        ]
        only = ", ".join(map(self.literal, column["only"] or ()))
        where = f" WHERE word IN ({only})" if only else ""
        every = " UNION ALL ".join(selects)
        yield f"{t}_bag", f"SELECT row_id, word, COUNT(*) AS n FROM ({every}) AS g{where} GROUP BY row_id, word"

    def scoring(self) -> Iterator[tuple[str, str]]:
        """Named queries, up to the scores of rows and classes."""
        yield "input", self.inputs()
        self.chunks = [*_chunks(self.column_terms()), *_chunks(self.pair_terms())]
        sums = [list[str]() for _ in range(self.k)]
        self.last = "input"
        for m, terms in enumerate(self.chunks):
            made = ["f.*", *(term.cell for term in terms if term.cell is not None)]
            for c in range(self.k):
                made.append(f"{' + '.join(term.nats[c] for term in terms)} AS s{m}_{c}")
                sums[c].append(f"f.s{m}_{c}")
            joins = "\n".join(term.join for term in terms)
            yield f"f{m}", f"SELECT {', '.join(made)}\nFROM {self.last} AS f\n{joins}"
            self.last = f"f{m}"
        total = f" + {self.pick([' + '.join(class_sums) for class_sums in sums])}" if self.chunks else ""
        parts = [
            f"SELECT f.row_id, p.class, p.nats{total} AS nats FROM {self.last} AS f CROSS JOIN {self.own('prior')} AS p"
        ]
        self.bags = [column["column"] for column in self.columns if column["kind"] in ("text", "counts")]
        for column in self.columns:
            if column["column"] in self.bags:
                yield from self.bag(column)
        for j in self.bags:
            words = f"t{j}_all AS a JOIN {self.own('words')} AS w ON w.id = a.id"
            parts.append(f"SELECT a.row_id, w.class, SUM(a.a * w.nats) AS nats FROM {words} GROUP BY a.row_id, w.class")
        union = "\nUNION ALL\n".join(parts)
        grouped = f"SELECT row_id, class, SUM(nats) AS score FROM (\n{union}\n) AS t GROUP BY row_id, class"
        yield "scores", grouped if self.bags else parts[0].replace(" AS nats FROM", " AS score FROM")

    # Posteriors

    def answering(self) -> Iterator[tuple[str, str]]:
        """Named queries from scores to posteriors, with the rank of each class."""
        by_row = "OVER (PARTITION BY row_id)"
        greatest = self.sql.extremes[1]
        infinity = self.sql.infinity
        join = f"JOIN {self.own('prior')} AS p ON p.class = s.class"
        if self.tables.answers == "labels":
            line = self.between(-DEEPEST, "p.slope * s.score + p.shift", DEEPEST)
            yield (
                "shares",
                f"SELECT s.row_id, s.class, s.score, 1e0 / (1e0 + EXP(-{line})) AS posterior FROM scores AS s {join}",
            )
            rank = "ROW_NUMBER() OVER (PARTITION BY s.row_id ORDER BY s.posterior DESC, s.class) AS place"
            answer = "CASE WHEN s.posterior >= p.threshold THEN 1 ELSE 0 END AS is_answer"
            yield "ranked", f"SELECT s.row_id, s.class, s.posterior, {rank}, {answer} FROM shares AS s {join}"
            return
        yield "tops", f"SELECT row_id, class, score, MAX(score) {by_row} AS top FROM scores"
        score = f"CASE WHEN s.top = -{infinity} THEN p.nats ELSE s.score - s.top END"
        yield "centred", f"SELECT s.row_id, s.class, {score} AS score FROM tops AS s {join}"
        logs = "score"
        source = "centred"
        if self.method == "temperature":
            (rule,) = self.calibration
            floor = f"{greatest}(score, {self.literal(rule['y'])}) / {self.literal(rule['x'])}"
            logs = f"CASE WHEN score = -{infinity} THEN score ELSE {floor} END"
        if self.method in ("platt", "isotonic"):
            yield from self.odds(join)
            source = "honest"
        if self.method == "platt":
            yield "highest", f"SELECT row_id, class, score, MAX(score) {by_row} AS top FROM {source}"
            source = "highest"
            logs = "score - top"
        e = "share" if self.method == "isotonic" else f"EXP({greatest}({logs}, -{DEEPEST}))"
        yield "logs", f"SELECT row_id, class, score, {e} AS e FROM {source}"
        yield "totals", f"SELECT row_id, class, score, e, SUM(e) {by_row} AS total FROM logs"
        share = f"CASE WHEN total > 0 THEN e / total ELSE {1.0 / self.k!r}e0 END"
        yield "shares", f"SELECT row_id, class, score, {share} AS posterior FROM totals"
        order = "score" if self.method == "temperature" else "posterior"
        rank = f"ROW_NUMBER() OVER (PARTITION BY row_id ORDER BY {order} DESC, class) AS place"
        yield "placed", f"SELECT row_id, class, posterior, {rank} FROM shares"
        yield (
            "ranked",
            "SELECT row_id, class, posterior, place, CASE WHEN place = 1 THEN 1 ELSE 0 END AS is_answer FROM placed",
        )

    def odds(self, join: str) -> Iterator[tuple[str, str]]:
        """Log-odds of each class against all others, and what a sigmoid or a staircase makes of them."""
        infinity = self.sql.infinity
        greatest = self.sql.extremes[1]
        rivals = "JOIN centred AS o ON o.row_id = s.row_id AND o.class <> s.class"
        group = "GROUP BY s.row_id, s.class, s.score"
        yield "seconds", f"SELECT s.row_id, s.class, s.score, MAX(o.score) AS top FROM centred AS s {rivals} {group}"
        rest = f"LN(SUM(EXP({greatest}(o.score - s.top, -{DEEPEST}))))"
        certain = f"CASE WHEN s.top = -{infinity} THEN {infinity} ELSE s.score - s.top - {rest} END"
        yield (
            "compared",
            f"SELECT s.row_id, s.class, s.score, {certain} AS odds FROM seconds AS s {rivals} {group}, s.top",
        )
        if self.method == "isotonic":
            where = "st.class = s.class AND st.low <= s.odds AND s.odds <= st.last"
            held = f"SELECT class, row_id, score, {self.between(-1e300, 'odds', 1e300)} AS odds FROM compared"
            line = "CASE WHEN st.slope = 0 THEN st.y ELSE st.y + (s.odds - st.x) * st.slope END"
            stairs = f"({held}) AS s JOIN {self.own('stairs')} AS st ON {where}"
            yield "honest", f"SELECT s.row_id, s.class, s.score, {line} AS share FROM {stairs}"
            return
        line = f"CASE WHEN s.odds IN ({infinity}, -{infinity}) THEN s.odds ELSE p.slope * s.odds + p.shift END"
        yield "lines", f"SELECT s.row_id, s.class, {line} AS line FROM compared AS s {join}"
        log = f"-{greatest}(0e0, -line) - LN(1e0 + EXP(-{self.sql.extremes[0]}(ABS(line), {DEEPEST})))"
        yield "honest", f"SELECT row_id, class, {log} AS score FROM lines"

    # Reasons

    def reasons(self) -> Iterator[tuple[str, str]]:
        """Named queries of what each column, pair and word says for an answer: against the next class, or of a label at all."""
        prior = self.own("prior")
        parts = []
        for m, terms in enumerate(self.chunks):
            source = f"f{m - 1}" if m else "input"
            for term in terms:
                shown = f"{self.literal(term.name)} AS evidence, CAST({term.value} AS {self.sql.text}) AS item"
                rows = f"{source} AS f {term.join} CROSS JOIN {prior} AS p"
                parts.append(f"SELECT f.row_id, p.class, {shown}, {self.pick(term.nats)} AS nats\nFROM {rows}")
        names = {column["column"]: column["name"] for column in self.columns}
        for j in self.bags:
            shown = f"{self.literal(names[j])} AS evidence, a.word AS item, a.a * w.nats AS nats"
            words = f"t{j}_all AS a JOIN {self.own('words')} AS w ON w.id = a.id"
            parts.append(f"SELECT a.row_id, w.class, {shown} FROM {words} WHERE a.word IS NOT NULL")
        none = "SELECT row_id, class, NULL AS evidence, NULL AS item, score AS nats FROM scores WHERE 1 = 0"
        yield "pieces", "\nUNION ALL\n".join(parts) or none
        if self.tables.answers == "labels":
            sides = "SELECT row_id, class, class AS answer, 1e0 AS side FROM ranked WHERE is_answer = 1"
        else:
            sides = "SELECT r.row_id, r.class, b.class AS answer, CASE WHEN r.place = 1 THEN 1e0 ELSE -1e0 END AS side "
            sides += "FROM ranked AS r JOIN ranked AS b ON b.row_id = r.row_id AND b.place = 1 WHERE r.place <= 2"
        yield "sides", sides
        nats = f"SUM(s.side * q.nats) * {self.literal(10.0 / math.log(10.0))} AS decibans"
        join = "JOIN sides AS s ON s.row_id = q.row_id AND s.class = q.class"
        answers = "q.row_id, s.answer, q.evidence, q.item"
        yield "weights", f"SELECT {answers}, {nats} FROM pieces AS q {join} GROUP BY {answers}"
        rank = "ROW_NUMBER() OVER (PARTITION BY row_id, answer ORDER BY ABS(decibans) DESC, evidence, item) AS place"
        yield "chosen", f"SELECT row_id, answer, evidence, item, decibans, {rank} FROM weights"

    # Views

    def make_views(self, reasons: bool) -> Iterator[str]:
        queries = [*self.scoring(), *self.answering()]
        key = self.quote(self.key or "row")
        prior = self.own("prior")
        shown = f"SELECT r.row_id AS {key}, p.name AS class, r.posterior, r.place, r.is_answer"
        view = f"CREATE VIEW {self.own('posterior')} AS\n{self.with_queries(queries)}\n"
        yield f"{view}{shown} FROM ranked AS r JOIN {prior} AS p ON p.class = r.class"
        view = f"CREATE VIEW {self.own('answer')} AS\n"
        yield f"{view}SELECT {key}, class, posterior FROM {self.own('posterior')} WHERE is_answer = 1"
        if reasons:
            queries += self.reasons()
            shown = f"SELECT c.row_id AS {key}, p.name AS class, c.place, c.evidence, c.item AS value, c.decibans"
            view = f"CREATE VIEW {self.own('reasons')} AS\n{self.with_queries(queries)}\n"
            yield f"{view}{shown} FROM chosen AS c JOIN {prior} AS p ON p.class = c.answer WHERE c.place <= {MOST_REASONS}"

    def with_queries(self, queries: Sequence[tuple[str, str]]) -> str:
        kept = self.sql.materialized
        return "WITH " + ",\n".join(f"{name} AS {kept}({query})" for name, query in queries)


def _chunks(terms: Iterable[EvidenceTerm]) -> Iterator[list[EvidenceTerm]]:
    every = list(terms)
    for start in range(0, len(every), MOST_JOINS):
        yield every[start : start + MOST_JOINS]
