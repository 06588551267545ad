"""SQL: the evidence table as tables of a database, and views that add it up for the rows of another table.

Every column of a row is joined to the entry that its value or number has, every pair of columns to its cells, and every word to
the lexicon; the nats of each class are added. Missing is an entry of its own; what matches none is a value that no row had.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from banbury import errors
from banbury.model.evidence_table import EvidenceTable, Record, Rows

MOST_JOINS = 40  # tables of one query: SQLite takes 64
MOST_CLASSES = 900  # a table has a column for each: a row of PostgreSQL takes 8 kB
ROWS_PER_STATEMENT = 400  # rows of one INSERT, or tables of a UNION, of which SQLite takes 500
MOST_UNITS = 2.0**400  # in a curve's units: numbers farther from a curve's origin are scored as if they were this far
LARGEST_NUMBER = 1.7e308  # near the largest double
FEWEST_UNITS = 1e-300  # for a quotient below this PostgreSQL reports an underflow
SPACES_PATTERN = "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]{2,}"
TABLES = {  # the columns of each table; {nats} stands for a column n0, n1, … for each class
    "prior": "class INTEGER, name {text}, nats {real}, temperature {real}, floor {real}, slope {real}, shift {real}, "
    "threshold {real}",
    "entries": "col INTEGER, item {text}, low {real}, last {real}, cell INTEGER, scale {real}, {nats}",
    "curves": "col INTEGER, class INTEGER, origin {real}, unit {real}, width {real}, centre {real}, c1 {real}, cx {real}, "
    "cx2 {real}, clog {real}, low {real}, high {real}, small {real}",
    "pairs": "first INTEGER, first_cell INTEGER, second INTEGER, second_cell INTEGER, {nats}",
    "stairs": "class INTEGER, low {real}, high {real}, share {real}, slope {real}",
}
VIEWS = ("posterior", "answer", "reasons")
VIEW_COLUMNS = "class posterior place is_answer evidence value decibans".split()  # columns of views, beside the key
# SQL templates. Columns are numbered: x{j} is what column j looks up, e{j} the entries that it is joined to, c{j} its cell in
# pairs, n{c} the nats of class c and s{c} their sum. The keys are kinds of columns: "string" and
# "number" as in ``EvidenceTable``, "curves" for numbers whose classes have curves, "words" for texts and blocks of counts.
LOOKUP_OF_KIND = {
    "string": "COALESCE('=' || CAST({quoted} AS {text}), '-')",
    "number": "COALESCE({as_number}, {inf})",
    "curves": "{as_number}",
    "words": "CAST({quoted} AS {text})",
}
JOIN_OF_KIND = {
    "string": "{entries} AS e{j} ON e{j}.col = {j} AND e{j}.item = f.x{j}",
    "number": """(SELECT d.x, b.* FROM (SELECT DISTINCT x{j} AS x FROM sums_0) AS d
  JOIN {entries} AS b ON b.col = {j} AND b.low <= d.x AND d.x <= b.last) AS e{j} ON e{j}.x = f.x{j}""",
    "curves": """(SELECT x, NULL AS cell, {pivot} FROM (SELECT x, class, n - {top} AS n FROM (SELECT x, class, SUM(c1 + cx * z
    + cx2 * (ABS(z) + 1e-150) * (ABS(z) + 1e-150) + clog * (LN({greatest}(u, 2.2250738585072014e-308)) - z)) AS n
  FROM (SELECT w.*, u - centre AS z
  FROM (SELECT v.*, CASE WHEN ABS(units) < small THEN 0e0 ELSE units / unit / width END AS u
  FROM (SELECT d.x, q.*, {least}({greatest}(d.x, low), high) - origin AS units
  FROM (SELECT DISTINCT x{j} AS x FROM sums_0) AS d JOIN {curves} AS q ON q.col = {j}) AS v) AS w) AS y
  GROUP BY x, class) AS t) AS r GROUP BY x) AS e{j} ON e{j}.x = f.x{j}""",
    "words": "t{j}_sum AS e{j} ON e{j}.row_id = f.row_id",
}
VALUE_TO_SHOW = {  # a row's value, as the view of reasons shows it
    "string": "SUBSTR(f.x{j}, 2)",
    "number": "NULLIF(f.x{j}, {inf})",
    "curves": "f.x{j}",
    "words": "NULLIF(f.word, '')",
}
JOIN_PAIR = """{pairs} AS p{first}_{second} ON p{first}_{second}.first = {first} AND p{first}_{second}.second = {second}
  AND p{first}_{second}.first_cell = f.c{first} AND p{first}_{second}.second_cell = f.c{second}"""

# exp of more than 700 (7e2) exceeds a double, which PostgreSQL reports as an error. One nat is 10 / ln 10 decibans.
# Named queries from scores to posteriors and places: of labels, of classes, and of classes whose log-odds are calibrated.
LABEL_QUERIES = """posteriors AS {m}(SELECT s.row_id, s.class,
  1e0 / (1e0 + EXP(-{least}({greatest}(p.slope * s.score + p.shift, -7e2), 7e2))) AS posterior
  FROM scores AS s {join})"""
CENTRED_QUERIES = """tops AS {m}(SELECT row_id, class, score, MAX(score) OVER (PARTITION BY row_id) AS top FROM scores),
centred AS {m}(SELECT s.row_id, s.class, CASE WHEN s.top = -{inf} THEN p.nats ELSE s.score - s.top END AS score
  FROM tops AS s {join}),
heated AS {m}(SELECT s.row_id, s.class, CASE WHEN s.score = -{inf} THEN s.score
  ELSE {greatest}(s.score, p.floor) / p.temperature END AS score FROM centred AS s {join})"""
SHARE_QUERY = "shares AS {m}(SELECT row_id, class, score, EXP({greatest}(score, -7e2)) AS share FROM heated)"
CALIBRATED_QUERIES = """seconds AS {m}(SELECT s.row_id, s.class, s.score, MAX(o.score) AS top FROM heated AS s {other_classes}),
odds AS {m}(SELECT s.row_id, s.class, CASE WHEN s.top = -{inf} THEN 1e300 ELSE {least}({greatest}(s.score - s.top -
  LN(SUM(EXP({greatest}(o.score - s.top, -7e2)))), -1e300), 1e300) END AS odds FROM seconds AS s {other_classes}, s.top),
lines AS {m}(SELECT s.row_id, s.class, s.odds, CASE WHEN ABS(s.odds) < 1e300 THEN p.slope * s.odds + p.shift ELSE s.odds END AS y
  FROM odds AS s {join}),
logs AS {m}(SELECT row_id, class, odds, {least}(0e0, y) - LN(1e0 + EXP(-{least}(ABS(y), 7e2))) AS log FROM lines),
shares AS {m}(SELECT s.row_id, s.class, 0e0 AS score, CASE WHEN t.class IS NULL
  THEN EXP({greatest}(s.log - MAX(s.log) OVER (PARTITION BY s.row_id), -7e2))
  ELSE t.share + t.slope * (s.odds - t.low) END AS share
  FROM logs AS s LEFT JOIN {stairs} AS t ON t.class = s.class AND t.low <= s.odds AND s.odds < t.high)"""
SUM_QUERY = """posteriors AS {m}(SELECT row_id, class, score, CASE WHEN SUM(share) OVER (PARTITION BY row_id) > 0
  THEN share / SUM(share) OVER (PARTITION BY row_id)
  ELSE {equal} END AS posterior FROM shares)"""
RANK_QUERIES = """placed AS {m}(SELECT row_id, class, posterior,
  ROW_NUMBER() OVER (PARTITION BY row_id ORDER BY {order} DESC, class) AS place
  FROM posteriors),
ranked AS {m}(SELECT s.*, p.name, CASE WHEN {is_answer} THEN 1 ELSE 0 END AS is_answer FROM placed AS s {join})"""
# The evidence of each column, pair and word for an answer: for the best class against the second, or for a label.
LABEL_SIDES = "SELECT row_id, class, name, 1e0 AS side FROM ranked WHERE is_answer = 1"
CLASS_SIDES = """SELECT r.row_id, r.class, b.name, CASE WHEN r.place = 1 THEN 1e0 ELSE -1e0 END AS side
  FROM ranked AS r JOIN ranked AS b ON b.row_id = r.row_id AND b.place = 1 WHERE r.place <= 2"""
POSTERIOR_VIEW = """CREATE VIEW {posterior} AS WITH {queries}
SELECT row_id AS {key}, name AS class, posterior, place, is_answer FROM ranked"""
ANSWER_VIEW = "CREATE VIEW {answer} AS SELECT {key}, class, posterior FROM {posterior} WHERE is_answer = 1"
REASONS_VIEW = """CREATE VIEW {reasons} AS WITH {queries},
pieces AS {m}({pieces}),
sides AS {m}({sides}),
weights AS {m}(SELECT q.row_id, s.name, q.evidence, q.item, SUM(s.side * q.nats) * 4.342944819032518e0 AS decibans
  FROM pieces AS q JOIN sides AS s ON s.row_id = q.row_id AND s.class = q.class GROUP BY q.row_id, s.name, q.evidence, q.item),
chosen AS {m}(SELECT row_id, name, evidence, item, decibans,
  ROW_NUMBER() OVER (PARTITION BY row_id, name ORDER BY ABS(decibans) DESC, evidence, item) AS place FROM weights)
SELECT row_id AS {key}, name AS class, place, evidence, item AS value, decibans FROM chosen WHERE place <= 3"""
# The words of a column in the rows, from its bag: the nats of each word, and their sums. The empty word is in every text.
WORD_QUERIES = """t{j}_entries AS {m}(SELECT b.row_id, l.*, {amount} * COALESCE(l.scale, {unseen}) AS a
  FROM (SELECT row_id, word, n FROM t{j}_bag UNION ALL SELECT row_id, '' AS word, 1 AS n FROM sums_0 WHERE x{j} IS NOT NULL) AS b
  {join_words} {entries} AS l ON l.col = {j} AND l.item = b.word),
t{j}_size AS {m}(SELECT row_id, {size} AS size FROM t{j}_entries WHERE a > 0 GROUP BY row_id),
t{j}_nats AS {m}(SELECT k.row_id, k.item AS word, {nats_of_word} FROM t{j}_entries AS k JOIN t{j}_size AS z
  ON z.row_id = k.row_id WHERE k.item IS NOT NULL),
t{j}_sum AS {m}(SELECT row_id, NULL AS cell, {sums} FROM t{j}_nats GROUP BY row_id)"""
# By how much a word counts that occurs b.n times in a row.
AMOUNT_OF_WORD = {"count": "b.n", "log": "LN(1e0 + b.n)", "root": "SQRT(b.n)", "presence": "1e0"}
# The words of a text; W stands for a character of words.
TOKEN_PATTERNS = {"word": "W{2,}", "word1": "W+", "mail": "W+(?:[-.@'+&]W+)+|W{2,}"}
# How databases differ. What a text or a number is called in ``zero`` is the character NUL; None: texts cannot hold it.
COMMON: dict[str, Any] = {
    "real": "DOUBLE",
    "text": "VARCHAR",
    "inf": "CAST('Infinity' AS DOUBLE)",
    "double": "CAST({x} AS DOUBLE)",
    "zero": "chr(0)",
    "least": "LEAST",
    "greatest": "GREATEST",
    "pick": "([{items}])[p.class + 1]",
    "m": "",  # before a named query that is used several times
    "escapes": str.maketrans({"'": "''"}),  # of characters in a string
    "other_classes": "JOIN heated AS o ON o.row_id = s.row_id AND o.class <> s.class GROUP BY s.row_id, s.class, s.score",
    "mark": '"',  # around a name
    "identity": lambda name: name.encode().lower(),  # names that have the same one are one name
    "word": r"[\p{L}\p{N}_]",  # a character of words; None: there are no regular expressions
    "blanks": "regexp_replace({x}, {spaces}, ' ', 'g')",
    "tokens": "SELECT row_id, unnest(l) AS word, generate_subscripts(l, 1) AS place "
    "FROM (SELECT row_id, regexp_extract_all({x}, {pattern}) AS l FROM sums_0) AS t",  # the words of a text with their places
}
DIALECTS: dict[str, dict[str, Any]] = {
    "duckdb": COMMON,
    "postgres": {
        **COMMON,
        "real": "double precision",
        "text": "text",
        "inf": "CAST('Infinity' AS double precision)",
        "double": "CAST(REPLACE(REPLACE(CAST({x} AS text), 'true', '1'), 'false', '0') AS double precision)",
        "zero": None,
        "pick": "(ARRAY[{items}])[p.class + 1]",
        "m": "MATERIALIZED ",
        "identity": lambda name: name.encode()[:63],
        "word": "[[:alnum:]_]",
        "tokens": "SELECT row_id, t.m[1] AS word, t.place AS place "
        "FROM sums_0, regexp_matches({x}, {pattern}, 'g') WITH ORDINALITY AS t(m, place)",
    },
    "sqlite": {
        **COMMON,
        "real": "REAL",
        "text": "TEXT",
        "inf": "9e999",
        "double": "CAST({x} AS REAL)",
        "zero": "char(0)",
        "least": "MIN",
        "greatest": "MAX",
        "pick": "CASE p.class {cases} END",
        "m": "MATERIALIZED ",
        "word": None,
    },
    "spark": {
        **COMMON,
        "text": "STRING",
        "zero": "char(0)",
        "pick": "array({items})[p.class]",
        "escapes": str.maketrans({"'": "\\'", "\\": "\\\\"}),
        "mark": "`",
        "identity": str.lower,
        "blanks": "regexp_replace({x}, {spaces}, ' ')",
        "tokens": "SELECT row_id, word, place FROM (SELECT row_id, {x} AS t FROM sums_0) "
        "LATERAL VIEW posexplode(regexp_extract_all(t, {pattern}, 0)) w AS place, word",
    },
}


# What fills the templates, for multi-label models and for others.
PHRASES_OF_LABELS = {
    "is_answer": "s.posterior >= p.threshold",
    "order": "posterior",
    "sides": LABEL_SIDES,
    "top": "0e0",
}
PHRASES_OF_CLASSES = {"is_answer": "s.place = 1", "sides": CLASS_SIDES, "top": "MAX(n) OVER (PARTITION BY x)"}


class EvidenceTerm(NamedTuple):
    """SQL fragments for one term of the evidence: a column, or a pair of columns."""

    join: str  # the table or query that is joined to the rows, with its condition
    nats: list[str]  # for each class an SQL expression of the nats
    name: str  # of the column or pair, as the view of reasons names it; not SQL
    value: str  # an expression of the row's value, as the view of reasons shows it
    cell: str | None = None  # "expression AS c2": the cell of column 2 in its pairs
    words_table: str | None = None  # of a text: the query with the nats of each word, which is a reason of its own


def word_pattern(reading: Record, character: str) -> str:
    """Returns the regular expression of the words of a text. ``reading`` says how it is read; ``character`` is the
    regular expression of a character of words. Raises an error if the user gave a regular expression.
    """
    tokens = reading["tokens"]
    advice = f"one of {', '.join(TOKEN_PATTERNS)}: a regular expression of Python may mean something else elsewhere"
    errors.require(tokens in TOKEN_PATTERNS, "tokens", tokens, advice)
    return TOKEN_PATTERNS[tokens].replace("W", character)


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
    """Returns a script that creates the tables and the views of a model for a database, ``dialect``. Values that fewer
    than ``min_rows`` rows have are left out. ``table`` is the table with the rows to predict, and ``key`` its column
    that identifies a row (None: rows are numbered). ``name`` is the prefix of the new tables and views, and ``reasons``
    says whether to add the view of reasons.
    """
    if dialect not in DIALECTS:
        raise errors.unknown_choice("dialect", dialect, DIALECTS)
    if dialect == "spark" and key is None:
        raise errors.bad_setting("key", key, "the column that identifies the rows, because Spark rows have no order")
    script = _Script(model.evidence_table(min_rows=min_rows), dialect, table, key, name)
    text = ";\n\n".join([*script.make_tables(), *script.make_views(reasons)])
    return (
        f"-- A model of banbury, for {dialect}: evidence in nats, and views of the answers to the rows of"
        f' "{" ".join(table.split())}".\n{text};\n'.encode()
    )


@dataclass
class _Script:
    """The statements of a script. Methods take a ``column``: an entry of ``EvidenceTable.by_column``, to which the
    constructor adds its "sql_kind", a key of ``JOIN_OF_KIND``. ``column["column"]`` is its number.
    """

    tables: EvidenceTable  # the model
    dialect: str  # a key of DIALECTS
    table: str  # of the rows to predict
    key: str | None  # the column of that table that identifies a row
    name: str  # the prefix of the new tables and views

    def __post_init__(self) -> None:
        """Checks that the database can hold the model, and collects the columns and the SQL phrases that fill
        templates.
        """
        tables = self.tables
        self.syntax = DIALECTS[self.dialect]  # SQL phrases of the dialect by name
        self.n_classes = tables.prior.num_rows
        errors.require(
            self.n_classes <= MOST_CLASSES,
            "the model",
            f"{self.n_classes:,} classes",
            f"at most {MOST_CLASSES:,} classes, because each one is a column of a table",
        )
        classes = tables.prior["name"].to_pylist()
        errors.require(all(map(self.can_hold, classes)), "classes", classes, f"texts that {self.dialect} can hold")
        self.columns = tables.by_column()  # a dictionary for each column
        for column in self.columns:
            kind = {"text": "words", "counts": "words"}.get(column["kind"], column["kind"])  # as SQL distinguishes them
            column["sql_kind"] = "curves" if column["curves"] else kind
            if column["kind"] == "text" and self.syntax["word"] is None:
                raise errors.BadSetting(
                    f"column {column['name']!r} holds texts, but {self.dialect} has no regular expressions to split them. "
                    "Use another dialect, or export a page or ONNX.",
                    column=column["name"],
                )
        names_by_setting = {  # those that have to differ from each other
            "columns": [name for column in self.columns for name in self.names_of(column)],
            "key": ["row" if self.key is None else self.key, *VIEW_COLUMNS],
            "table and name": [self.table, *(f"{self.name}_{suffix}" for suffix in (*TABLES, *VIEWS))],
        }
        for setting, names in names_by_setting.items():
            are_names = all(isinstance(name, str) and name and "\0" not in name for name in names)
            errors.require(
                are_names and len(set(map(self.syntax["identity"], names))) == len(names),
                setting,
                names,
                f"names that {self.dialect} can hold and distinguish (most databases ignore case, PostgreSQL all after 63 bytes)",
            )
        self.phrase_by_name = {  # fills the templates
            **self.syntax,
            **{suffix: self.model_table(suffix) for suffix in (*TABLES, *VIEWS)},
            "key": self.quote(self.key or "row"),
            "each_class": f"CROSS JOIN {self.model_table('prior')} AS p",
            "join": f"JOIN {self.model_table('prior')} AS p ON p.class = s.class",
            "pivot": self.by_class("MAX(n) FILTER (WHERE class = {c}) AS n{c}"),
            "equal": self.literal(1.0 / self.n_classes),
            "order": "posterior" if tables.bends else "score",
            **(PHRASES_OF_LABELS if tables.answers == "labels" else PHRASES_OF_CLASSES),
        }

    # Names, literals and templates as SQL

    def quote(self, name: str) -> str:
        """Returns a name of a table or column, quoted as the dialect does."""
        mark = self.syntax["mark"]
        return f"{mark}{name.replace(mark, mark * 2)}{mark}"

    def model_table(self, suffix: str) -> str:
        """Returns the quoted name of one of the model's tables or views, such as "banbury_prior" for "prior"."""
        return self.quote(f"{self.name}_{suffix}")

    def literal(self, value: Any) -> str:
        """Returns the value (a text, a number or None) as an SQL literal. In a text, the character NUL becomes a
        function call, the phrase ``zero`` of the dialect's ``syntax``.
        """
        if value is None:
            return "NULL"
        if isinstance(value, float):
            if math.isinf(value):
                return f"{'-' if value < 0 else ''}{self.syntax['inf']}"
            digits = str(value)
            return digits if "e" in digits else f"{digits}e0"
        if isinstance(value, str):
            pieces = value.translate(self.syntax["escapes"]).split("\0")
            return f" || {self.syntax['zero']} || ".join(f"'{piece}'" for piece in pieces)
        return str(value)

    def can_hold(self, text: str) -> bool:
        """Returns whether the database can store this text: some (whose phrase ``zero`` is None) hold no character NUL."""
        return self.syntax["zero"] is not None or "\0" not in text

    def fill(self, template: str, **phrases: Any) -> str:
        """Returns an SQL template with its names in braces replaced: by ``phrases``, or by those of the whole script."""
        return template.format(**self.phrase_by_name, **phrases)

    def pick(self, expressions: Sequence[str]) -> str:
        """Returns an SQL expression that takes the one of ``expressions`` (SQL, one for each class) that belongs to the
        class of the row p of the table of classes. ``syntax`` has the dialect's template for this.
        """
        cases = " ".join(f"WHEN {c} THEN {expression}" for c, expression in enumerate(expressions))
        return str(self.syntax["pick"].format(items=", ".join(expressions), cases=cases))

    def by_class(self, template: str) -> str:
        """Returns an SQL list with an expression for each class: ``template`` with {c} replaced by the class number."""
        return ", ".join(template.replace("{c}", str(c)) for c in range(self.n_classes))

    # Tables

    def make_tables(self) -> Iterator[str]:
        """Yields the statements that create and fill the model's tables, without semicolons."""
        for name, rows in self.rows_of_tables().items():
            fields = TABLES[name].format(**self.syntax, nats=self.by_class(f"n{{c}} {self.syntax['real']}"))
            yield f"CREATE TABLE {self.model_table(name)} ({fields})"
            for chunk in _chunks([f"({', '.join(map(self.literal, row))})" for row in rows], ROWS_PER_STATEMENT):
                yield f"INSERT INTO {self.model_table(name)} VALUES\n" + ",\n".join(chunk)

    def rows_of_tables(self) -> dict[str, Rows]:
        """Returns the rows of every table. In entries, words are an ``item``, texts an item after "=", and numbers go
        from ``low`` to ``last``; a missing text is the item "-", and a missing number infinity.
        """
        rows: dict[str, Rows] = {name: [] for name in TABLES}
        for prior, rule in zip(self.tables.prior.to_pylist(), self.tables.calibration.to_pylist(), strict=True):
            # Of each class: its number, name and nats, and temperature, floor, slope, shift and threshold.
            rows["prior"].append((*prior.values(), *[*rule.values()][1:6]))
        for column in self.columns:
            # Values, words, or where intervals start; None for missing.
            keys = [key for key in column["entries"] if self.can_hold(str(key))]
            ends: Any = repeat((None, None))  # of each interval: its lowest and its highest number
            if column["kind"] == "number":
                # The highest number below the start of the next interval. The last key is that of missing numbers.
                lasts = np.nextafter([*keys[1:-1], math.inf], -math.inf).tolist()
                ends = zip([*keys[:-1], math.inf], [*lasts, math.inf], strict=False)
            for key, (low, last) in zip(keys, ends, strict=False):
                entry = column["entries"][key]
                item = "-" if key is None else f"={key}"  # by which rows look the entry up
                if column["sql_kind"] == "words":
                    item = key or ""
                rows["entries"].append(
                    (column["column"], item, low, last, entry["cell"], entry["scale"], *entry["nats"])
                )
        for curve in self.tables.curves.to_pylist():
            origin = curve["origin"]
            farthest = min(MOST_UNITS * curve["unit"], LARGEST_NUMBER)
            rows["curves"].append((*curve.values(), origin - farthest, origin + farthest, FEWEST_UNITS * curve["unit"]))
        for pair in self.tables.entries("pairs"):
            # Both columns and cells, then the nats.
            rows["pairs"].append((*(pair[name] for name in self.tables.pairs.column_names[:4]), *pair["nats"]))
        rows["stairs"] = [*self.tables.stairs()]
        return rows

    # The evidence of a row

    def inputs(self) -> str:
        """Returns the query of the rows: what each of the model's columns looks up as x0, x1, …, and the prior of each
        class as s0, s1, …, the sums to which evidence is added. ``key`` is the column that identifies a row, or None.
        """
        prior = map(self.literal, self.tables.prior["nats"].to_pylist())  # of each class
        select_list = [f"{nats} AS s{c}" for c, nats in enumerate(prior)]
        select_list.append(f"{'ROW_NUMBER() OVER ()' if self.key is None else self.quote(self.key)} AS row_id")
        for column in self.columns:
            number = column["column"]
            quoted = self.quote(column["name"])  # the name in the user's table
            if column["kind"] == "counts":
                names = self.names_of(column)
                select_list += [f"{self.as_number(name)} AS x{number}_{index}" for index, name in enumerate(names)]
                quoted = "1"  # a block is never missing
            lookup = LOOKUP_OF_KIND[column["sql_kind"]]
            select_list.append(
                f"{self.fill(lookup, as_number=self.as_number(column['name']), quoted=quoted)} AS x{number}"
            )
        return f"SELECT {', '.join(select_list)} FROM {self.quote(self.table)}"

    def names_of(self, column: Record) -> list[str]:
        """Returns the names of the columns of the user's table that one column of the model reads: a block of counts
        reads several.
        """
        words = [word for word in column["entries"] if word is not None]
        return words if column["kind"] == "counts" else [column["name"]]

    def as_number(self, name: str) -> str:
        """Returns the expression of a column of the user's table as a number, or NULL where it is missing or infinite."""
        double = self.syntax["double"].format(x=self.quote(name))
        return f"CASE WHEN ABS({double}) <= 1.7976931348623157e308 THEN {double} END"

    def column_term(self, column: Record) -> EvidenceTerm:
        """Returns the SQL of the evidence of a column in a row: of all its words, of the entry of its value or number,
        or of its curves.
        """
        number = column["column"]
        unseen = column["unseen"]  # the entry of values that are not listed
        kind = column["sql_kind"]
        nats = [  # SQL, for each class
            f"COALESCE(e{number}.n{c}, {self.literal(class_nats)})"
            for c, class_nats in enumerate(unseen["nats"].tolist())
        ]
        value = self.fill(VALUE_TO_SHOW[kind], j=number)  # SQL
        words_table = f"t{number}_nats AS f" if kind == "words" else None
        return EvidenceTerm(
            self.fill(JOIN_OF_KIND[kind], j=number),
            nats,
            column["name"],
            value,
            f"COALESCE(e{number}.cell, {self.literal(unseen['cell'])}) AS c{number}",
            words_table,
        )

    def pair_terms(self) -> Iterator[EvidenceTerm]:
        """Yields the SQL of the evidence of each pair of columns."""
        # The numbers of both columns; each pair has many entries.
        for first, second in dict.fromkeys((pair["first"], pair["second"]) for pair in self.tables.entries("pairs")):
            nats = [f"COALESCE(p{first}_{second}.n{c}, 0e0)" for c in range(self.n_classes)]  # SQL, for each class
            yield EvidenceTerm(
                self.fill(JOIN_PAIR, first=first, second=second),
                nats,
                f"{self.columns[first]['name']} with {self.columns[second]['name']}",
                "NULL",
            )

    def bag(self, column: Record) -> Iterator[str]:
        """Yields the named queries that split a column's texts, or a block of counts, into words, and weigh the words
        in the rows.
        """
        number = column["column"]
        if column["kind"] == "text":
            yield from self.grams(column)
        else:
            # A query for each column of the block, after one without rows.
            number_queries = ["SELECT row_id, '' AS word, 0e0 AS x FROM sums_0 WHERE 1 = 0"]
            for index, word in enumerate(self.names_of(column)):
                number_queries.append(
                    f"SELECT row_id, {self.literal(word)} AS word, x{number}_{index} AS x FROM sums_0"
                )
            blocks = [
                f"SELECT * FROM ({' UNION ALL '.join(chunk)}) AS u"
                for chunk in _chunks(number_queries, ROWS_PER_STATEMENT)
            ]
            query = f"SELECT row_id, word, x AS n FROM ({' UNION ALL '.join(blocks)}) AS t"
            yield f"t{number}_bag AS {self.syntax['m']}({query} WHERE x > {self.literal(column['threshold'])})"
        unseen = column["unseen"]["scale"]  # of words that are not listed
        yield self.fill(
            WORD_QUERIES,
            j=number,
            amount=AMOUNT_OF_WORD[column["count"]],
            unseen=self.literal(unseen),
            join_words="LEFT JOIN" if unseen else "JOIN",
            size="SQRT(SUM(a * a))" if column["length"] else "MAX(1e0)",
            nats_of_word=self.by_class("k.a / z.size * k.n{c} AS n{c}"),
            sums=self.by_class("SUM(n{c}) AS n{c}"),
        )

    def grams(self, column: Record) -> Iterator[str]:
        """Yields the named queries of the n-grams of a text's words or characters, and of how often each row has
        each.
        """
        number = column["column"]
        hint = self.syntax["m"]  # whether the database shall compute a named query once
        reading = column["reading"]  # how texts are split
        shortest, longest = reading["ngrams"]  # in words or characters
        # SQL of the text, and of what stands between the parts of an n-gram.
        text = f"LOWER(x{number})" if reading["lowercase"] else f"x{number}"
        separator = " || ' ' || "
        if reading["unit"] == "characters":
            text = self.syntax["blanks"].format(x=text, spaces=self.literal(SPACES_PATTERN))
            separator = " || "
            pattern = "(?s)."
        else:
            pattern = word_pattern(reading, self.syntax["word"])
        yield f"t{number}_tokens AS {hint}({self.syntax['tokens'].format(x=text, pattern=self.literal(pattern))})"
        stop_filter = f"WHERE word NOT IN ({', '.join(map(self.literal, reading['stop_words'] or ['']))})"
        next_words = "".join(
            f", LEAD(word, {n}) OVER (PARTITION BY row_id ORDER BY place) AS w{n}" for n in range(1, longest)
        )
        yield f"t{number}_words AS {hint}(SELECT row_id, word AS w0{next_words} FROM t{number}_tokens {stop_filter})"
        gram_queries = " UNION ALL ".join(
            f"SELECT row_id, {separator.join(f'w{i}' for i in range(n))} AS word FROM t{number}_words WHERE w{n - 1} IS NOT NULL"
            for n in range(shortest, longest + 1)
        )
        only_filter = f"WHERE word IN ({', '.join(map(self.literal, reading['only']))})" if reading["only"] else ""
        counts = f"SELECT row_id, word, COUNT(*) AS n FROM ({gram_queries}) AS g {only_filter} GROUP BY row_id, word"
        yield f"t{number}_bag AS {hint}({counts})"

    def steps(self) -> list[Sequence[EvidenceTerm]]:
        """Returns the terms of the evidence in groups of at most MOST_JOINS, which one query can join, columns before
        pairs.
        """
        column_chunks = _chunks([*map(self.column_term, self.columns)], size=MOST_JOINS)
        return [*column_chunks, *_chunks([*self.pair_terms()], size=MOST_JOINS)]

    def scoring(self) -> Iterator[str]:
        """Yields the named queries up to the scores: a row for each row of the user's table and each class. Query
        sums_0 has the input and the prior, and each query from sums_1 on adds the evidence of a step to the sums of the
        query before.
        """
        hint = self.syntax["m"]  # whether the database shall compute a named query once
        yield f"sums_0 AS {hint}({self.inputs()})"
        for column in self.columns:
            if column["sql_kind"] == "words":
                yield from self.bag(column)
        # What each query hands on to the next, besides the sums.
        carried_columns = ["f.row_id", *(f"f.x{column['column']}" for column in self.columns)]
        steps = self.steps()
        for step, terms in enumerate(steps):
            cells = [term.cell for term in terms if term.cell]  # such as "expression AS c2"
            # For each class, its sum with the evidence of this step added.
            sums = [f"f.s{c} + {' + '.join(term.nats[c] for term in terms)} AS s{c}" for c in range(self.n_classes)]
            joins = "\nLEFT JOIN ".join([f"sums_{step} AS f", *(term.join for term in terms)])
            yield f"sums_{step + 1} AS {hint}(SELECT {', '.join([*carried_columns, *cells, *sums])}\nFROM {joins})"
            carried_columns += [f"f.{cell.rpartition(' ')[2]}" for cell in cells]
        score = self.pick([f"f.s{c}" for c in range(self.n_classes)])
        source = f"sums_{len(steps)} AS f {self.phrase_by_name['each_class']}"
        yield f"scores AS {hint}(SELECT f.row_id, p.class, {score} AS score FROM {source})"

    def pieces(self) -> Iterator[str]:
        """Yields the queries of the nats of each column, pair and word of a row, for each class; last one without rows,
        so that there is one in any case.
        """
        for step, terms in enumerate(self.steps()):
            for term in terms:
                nats = [f"f.n{c}" for c in range(self.n_classes)] if term.words_table else term.nats
                source = term.words_table or f"sums_{step} AS f LEFT JOIN {term.join}"
                name = f"{self.literal(term.name)} AS evidence"
                value = f"CAST({term.value} AS {self.syntax['text']}) AS item"
                source = f"{source} {self.phrase_by_name['each_class']}"
                yield f"SELECT f.row_id, p.class, {name}, {value}, {self.pick(nats)} AS nats\nFROM {source}"
        yield "SELECT row_id, class, NULL AS evidence, NULL AS item, score AS nats FROM scores WHERE 1 = 0"

    # Views

    def make_views(self, reasons: bool) -> Iterator[str]:
        """Yields the statements that create the views, with the view of reasons if ``reasons`` is true."""
        # The queries from scores to posteriors.
        templates = [CENTRED_QUERIES, CALIBRATED_QUERIES if self.tables.bends else SHARE_QUERY, SUM_QUERY]
        templates = [LABEL_QUERIES] if self.tables.answers == "labels" else templates
        queries = ",\n".join([*self.scoring(), *map(self.fill, templates), self.fill(RANK_QUERIES)])
        yield self.fill(POSTERIOR_VIEW, queries=queries)
        yield self.fill(ANSWER_VIEW)
        if reasons:
            yield self.fill(REASONS_VIEW, queries=queries, pieces="\nUNION ALL\n".join(self.pieces()))


def _chunks(entries: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Yields consecutive slices of a sequence, with at most ``size`` entries each."""
    for start in range(0, len(entries), size):
        yield entries[start : start + size]
