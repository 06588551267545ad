"""The same data infer the same, and count the same, whatever they came in."""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet
from sklearn.model_selection import GroupKFold

import banbury as bb
from banbury import _core
from banbury.reading import blocks, read

Table = dict[str, list[Any]]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# Every way that a table may come in.


def to_text(value: Any) -> str:
    """A cell as programs write it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def to_csv(table: Table, delimiter: str = ",", path: str = "t.csv") -> str:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL)
        writer.writerow(table)
        writer.writerows([to_text(value) for value in row] for row in zip(*table.values(), strict=True))
    return path


def to_ndjson(table: Table) -> str:
    def plain(value: Any) -> Any:
        return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)

    rows = zip(*table.values(), strict=True)
    lines = (json.dumps(dict(zip(table, map(plain, row), strict=True))) for row in rows)
    Path("t.ndjson").write_text("".join(f"{line}\n" for line in lines))
    return "t.ndjson"


def to_parquet(table: Table) -> str:
    parquet.write_table(pyarrow.table(table), "t.parquet")
    return "t.parquet"


def to_arrow(table: Table) -> Any:
    feather.write_feather(pyarrow.table(table), "t.arrow")
    return feather.read_table("t.arrow")


def pandas_csv(table: Table) -> str:
    pandas.DataFrame(table).to_csv("p.csv", index=False)
    return "p.csv"


def polars_csv(table: Table) -> str:
    polars.DataFrame(table).write_csv("q.csv")
    return "q.csv"


WAYS: dict[str, Callable[[Table], Any]] = {
    "csv": to_csv,
    "tsv": lambda table: to_csv(table, "\t", "t.tsv"),
    "ndjson": to_ndjson,
    "parquet": to_parquet,
    "arrow": to_arrow,
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "mapping": dict,
    "pandas, written": pandas_csv,
    "polars, written": polars_csv,
}
CANNOT = {"polars, written": {"durations"}}  # Polars writes none


def inferred(data: Any) -> dict[str, str]:
    """What each column is taken for."""
    schema = bb.Schema.infer(data, target="class")
    kinds = {"integer": "number", "float": "number"}  # pandas makes floats of whole numbers that have gaps
    families = {f.name: f"{f.family} of {kinds.get(str(f.kind), f.kind)}" for f in schema.features}
    return families | dict(schema.left_out)


N = 120
DAY = dt.date(2001, 2, 3)
# Texts that are no plain numbers or flags: whatever they came in, they are texts.
TEXTS: Table = {
    "zip codes": ["00130", "01234", "90210", "00501", "13000"],
    "codes in hex": ["0x10", "0x1F", "0xff", "0x00"],
    "signed codes": ["+049", "-0130", "+01", "-02"],
    "percents": ["5%", "6.5%", "100%"],
    "grouped": ["1_000", "2 000", "3'000"],
    "mixed": ["1", "a", "2.5", "b", "true"],
    "flags in words": ["yes", "no", "yes", "no", "no"],
    "flags in letters": ["t", "f", "f"],
    "words": ["none", "None", "nil", "-", "missing"],
    "dates": ["2001-02-03", "1999-12-31", "2024-02-29"],
    "instants": ["2001-02-03 04:05:06", "1999-12-31 23:59:59"],
    "instants with T": ["2001-02-03T04:05:06Z", "1999-12-31T23:59:59Z"],
    "times": ["04:05:06", "23:59:00"],
    "times in minutes": ["04:05", "23:59"],
    "lengths of time": ["1:02:03", "26:00:00", "100:59:59"],
    "days": ["1 day, 2:03:04", "3 days, 0:00:01"],
    "days of pandas": ["0 days 01:02:03", "2 days 00:00:00"],
    "lengths by standard": ["P1D", "PT3H", "P2DT4H5M6.5S"],
    "other dates": ["03/02/2001", "31.12.1999"],
    "spaced": ["light rain", "sun", "snow and rain"],
}
TYPED: Table = {
    "few whole": [1, 2, 3, 4, 5],
    "many whole": list(range(1000, 1000 + N)),
    "whole with gaps": [7, None, 8, 9],
    "floats": [1.5, -2.25, 1e-7, 3e20, 0.1],
    "floats with gaps": [1.5, None, 2.5],
    "whole floats": [1.0, 2.0, 3.0],
    "zeros and ones": [0, 1, 1],
    "large": [2**53 + 1, 2**53, 2**60],
    "flags": [True, False, False],
    "flags with gaps": [True, None, False],
    "words with gaps": ["a", None, "b"],
    "dates": [DAY, DAY + dt.timedelta(1), None],
    "instants": [dt.datetime(2001, 2, 3, 4, 5, 6), dt.datetime(1999, 12, 31, 23, 59, 59)],
    "times": [dt.time(4, 5, 6), dt.time(23, 59)],
    "durations": [dt.timedelta(hours=1, seconds=5), dt.timedelta(days=2, hours=3)],
    "nothing": [None, None],
    "one value": [3.5, 3.5],
}


def column(values: list[Any]) -> list[Any]:
    return (values * N)[:N]


def table_of(columns: Table) -> Table:
    return {name: column(values) for name, values in columns.items()} | {"class": column(["x", "y", "y"])}


@pytest.mark.parametrize("columns", [TEXTS, TYPED], ids=["texts", "typed"])
@pytest.mark.parametrize("way", WAYS)
def test_a_table_of_nasty_columns_infers_the_same_from_everything(columns, way):
    table = table_of({name: values for name, values in columns.items() if name not in CANNOT.get(way, ())})
    assert inferred(WAYS[way](table)) == inferred(table)


@pytest.mark.parametrize("way", WAYS)
def test_a_table_of_nasty_columns_counts_the_same_from_everything(way):
    columns = {f"text {name}": values for name, values in TEXTS.items()} | TYPED
    table = table_of({name: values for name, values in columns.items() if name not in CANNOT.get(way, ())})
    assert bb.count(WAYS[way](table), target="class") == bb.count(table, target="class")


def test_what_pandas_reads_infers_as_what_is_read_here():
    """But for zeros before whole numbers, which pandas drops."""
    table = table_of(
        {name: values for name, values in (TEXTS | TYPED).items() if name not in ("zip codes", "signed codes")}
    )
    assert inferred(pandas.read_csv(to_csv(table))) == inferred(to_csv(table))


DRAWN = st.one_of(
    st.lists(st.sampled_from(sorted({text for texts in TEXTS.values() for text in texts})), min_size=2, max_size=6),
    st.lists(st.none() | st.integers(-(2**53), 2**53), min_size=2, max_size=6),
    st.lists(st.none() | st.floats(-1e9, 1e9).map(lambda x: x + 0.0), min_size=2, max_size=6),
    st.lists(st.none() | st.booleans(), min_size=2, max_size=6),
)


@settings(deadline=None, max_examples=60)
@example([["+01", "+01"], ["04:05", "04:05"]], "csv")  # a time that is one value only
@given(st.lists(DRAWN, min_size=1, max_size=4), st.sampled_from(sorted(WAYS)))
def test_any_columns_infer_and_count_the_same(columns, way):
    numbers = [set(map(type, values)) - {type(None)} for values in columns]
    plain = [
        types != {str} or any(not _is_plain(value) for value in values)
        for types, values in zip(numbers, columns, strict=True)
    ]
    table = table_of({f"c{j}": values for j, values in enumerate(columns) if plain[j]} | {"z": ["u", "v"]})
    data = WAYS[way](table)
    assert inferred(data) == inferred(table)
    assert bb.count(data, target="class") == bb.count(table, target="class")


def _is_plain(text: Any) -> bool:
    """Whether a text alone would be a number or a flag in a text file: there a type has to be read from texts."""
    return text in ("1", "2.5", "true")


# Any characters: none is special to the place where it stands, be it the start of a row, of a block or of a thread's work.

NASTY = "\ufeff\u2028\u2029\x85\xa0\u0301\u200b\x1c\x0b\f \t\r\n\"',;|#%{}\\@ab\xe9\xff\U0001f600\ue000"
BLANKS = " \t\n\r\f\v"  # around a text of a file, which do not count
NASTY_LETTERS = st.sampled_from(NASTY) | st.characters(codec="utf-8", min_codepoint=128)
NASTY_TEXTS = st.text(NASTY_LETTERS, min_size=1, max_size=4).map(lambda text: text.strip(BLANKS)).filter(bool)


def to_tsv(table: Table) -> str:
    return to_csv(table, "\t", "t.tsv")


def to_arff(table: Table) -> str:
    def cell(value: str | None) -> str:
        if value is None:
            return "?"
        if not re.search(r"[ ,'\"\\{}%\t\r\n\f\v]", value):
            return value
        escaped = re.sub(r"['\\]", r"\\\g<0>", value).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
        return f"'{escaped}'"

    header = "".join(f"@attribute '{name}' string\n" for name in table)
    rows = "".join(",".join(map(cell, row)) + "\n" for row in zip(*table.values(), strict=True))
    Path("t.arff").write_text(f"@relation t\n{header}@data\n{rows}", newline="")
    return "t.arff"


TEXT_FILES: dict[str, tuple[Callable[[Table], str], dict[str, Any]]] = {
    "csv": (to_csv, {}),
    "tsv": (to_tsv, {"quote": '"'}),
    "ndjson": (to_ndjson, {}),
    "arff": (to_arff, {}),
}


@pytest.mark.parametrize("way", TEXT_FILES)
@pytest.mark.filterwarnings(
    "ignore::banbury.errors.BanburyWarning"
)  # a first block may hold nothing but missing values
@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.tuples(st.none() | NASTY_TEXTS, NASTY_TEXTS, NASTY_TEXTS), min_size=2, max_size=8),
    order=st.randoms(use_true_random=False),
    block=st.sampled_from([1, 24, blocks.BLOCK]),
    threads=st.sampled_from([1, 3]),
)
def test_a_text_file_counts_as_its_table_in_any_order_blocks_and_threads(way, rows, order, block, threads):
    write, options = TEXT_FILES[way]
    features = {"the word": "categorical", "the text": "text"}
    table = {name: list(values) for name, values in zip([*features, "the class"], zip(*rows, strict=True), strict=True)}
    expected = bb.count(pandas.DataFrame(table), target="the class", features=features)
    order.shuffle(rows)
    shuffled = {name: list(values) for name, values in zip(table, zip(*rows, strict=True), strict=True)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", block)
        path = write(shuffled)
        assert bb.count(path, target="the class", features=features, threads=threads, **options) == expected


# Half a character. Python's strings may hold a lone surrogate, which no encoding has: it is a character like any other.

LONE = "\ud800"
WORDS = [f"{LONE}a", "a", LONE, "b", "a", f"b{LONE}"] * 10
SENTENCES = [f"one two {LONE} three four", f"{LONE}five two three four", "one six seven two"] * 20
LABELS = [f"yes{LONE}", "no"] * 30
GROUPS = [f"{LONE}{row % 6}" for row in range(60)]
NUMBERS = [float(row % 5) for row in range(60)]
PAIR = {f"word{LONE}": WORDS, "n": NUMBERS}


def to_categories(values: list[str]) -> Any:
    categories = sorted(set(values))
    index = pandas.Index(categories, dtype=object)
    return pandas.Series(pandas.Categorical.from_codes([categories.index(value) for value in values], index))


COLUMNS: dict[str, Callable[[list[str]], Any]] = {  # what may hold one: neither Arrow nor Polars can
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy, objects": lambda values: np.array(values, dtype=object),
    "pandas": lambda values: pandas.Series(values, dtype=object),
    "pandas, strings": lambda values: pandas.Series(values, dtype="string[python]"),
    "pandas, categories": to_categories,
}


@pytest.mark.parametrize("way", COLUMNS)
def test_a_lone_surrogate_is_a_character_whatever_holds_it(way):
    column = COLUMNS[way]
    features = {f"word{LONE}": "categorical", "text": "text"}
    table = PAIR | {"text": SENTENCES}
    data = {f"word{LONE}": column(WORDS), "n": NUMBERS, "text": column(SENTENCES)}
    tally = bb.count(table, LABELS, features=features)
    assert bb.count(data, column(LABELS), features=features) == tally
    assert np.array_equal(bb.estimate(tally).posterior(data), bb.estimate(tally).posterior(table))
    assert bb.count(column(SENTENCES), column(LABELS)) == bb.count(SENTENCES, LABELS)


@pytest.mark.parametrize("dtype", [object, "string[python]"])
def test_a_lone_surrogate_is_a_character_in_a_frame(dtype):
    frame = pandas.DataFrame({"word": pandas.Series(WORDS, dtype=dtype), "class": pandas.Series(LABELS, dtype=dtype)})
    assert bb.count(frame, "class") == bb.count({"word": WORDS, "class": LABELS}, "class")


USES: dict[str, Callable[..., Any]] = {
    "cross_validate": lambda groups: bb.cross_validate(PAIR, LABELS, folds=GroupKFold(3), groups=groups).log_loss,
    "cross_validate, weighed": lambda groups: (
        bb.cross_validate(PAIR, LABELS, folds=GroupKFold(3), groups=groups, weigh=True).log_loss
    ),
    "tune": lambda groups: str(bb.tune(PAIR, LABELS, folds=GroupKFold(3), groups=groups)),
    "learning_curve": lambda groups: str(bb.learning_curve(PAIR, LABELS, groups=groups)),
    "suspicious": lambda groups: str(bb.suspicious(PAIR, LABELS, groups=groups)),
    "weigh": lambda groups: bb.weigh(bb.count(PAIR, LABELS), PAIR, LABELS, groups=groups).posterior(PAIR).tolist(),
    "EvidenceClassifier": lambda groups: (
        bb.EvidenceClassifier().fit(PAIR, LABELS, groups=groups).predict_proba(PAIR).tolist()
    ),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.filterwarnings("ignore::banbury.errors.BanburyWarning")
def test_groups_may_have_lone_surrogates(use):
    answers = [USES[use](column(GROUPS)) for column in COLUMNS.values()]
    assert all(answer == answers[0] for answer in answers)


def test_answers_may_have_lone_surrogates():
    model = bb.estimate(bb.count(PAIR, LABELS))
    row = {f"word{LONE}": LONE, "n": 1.0}
    assert model.explain(row).winner == model.predict([row])[0]
    assert f"word{LONE}" in str(model.explain(row))


def test_columns_may_be_renamed_to_lone_surrogates():
    table = {"x": ["a", "b"], "y": ["p", "q"]}
    for way in ("ndjson", "parquet", "arrow", "pandas", "polars"):
        assert bb.count(WAYS[way](table), LONE, columns=["x", LONE]).classes == ("p", "q")
    texts = pyarrow.chunked_array([["one two", "three"]])
    assert bb.count(texts, ["p", "q"], columns=[LONE]).schema.columns == (LONE,)
    with pytest.raises(bb.errors.BadSetting, match=r"columns must be names without lone surrogates.* Got '\\ud800'"):
        bb.count(to_csv(table), LONE, columns=["x", LONE], header=True)


@pytest.mark.parametrize("setting", ["delimiter", "quote", "comment"])
def test_a_lone_surrogate_divides_and_quotes_nothing(setting):
    with pytest.raises(bb.errors.BadSetting, match=rf"{setting} must be one ASCII character"):
        bb.count(to_csv({"x": ["a", "b"], "y": ["p", "q"]}), "y", **{setting: LONE})


def test_a_lone_surrogate_stands_for_a_missing_value_in_no_file():
    path = to_csv({"x": ["a", "-", "b"], "y": ["p", "q", "q"]})
    assert bb.count(path, "y", missing_values=["-", LONE]) == bb.count(path, "y", missing_values=["-"])


def test_a_file_without_a_column_whose_name_has_a_lone_surrogate_is_named():
    model = bb.estimate(bb.count({LONE: SENTENCES}, LABELS, features={LONE: "text"}))
    Path("message").write_text("one six seven")
    with pytest.raises(bb.errors.UnknownColumn, match=r"no column '\\ud800' in message"):
        model.predict("message")


ESCAPED = {
    "ndjson": ("t.ndjson", '{{"x": "b", "y": "p"}}\n{{"x": "{0}", "y": "q"}}\n'),
    "ndjson, name": ("t.ndjson", '{{"y": "p"}}\n{{"y": "p", "{0}": "q"}}\n'),
    "arff": ("t.arff", "@relation r\n@attribute x string\n@attribute y {{p,q}}\n@data\n'{0}',p\nb,q\n"),
    "arff, sparse": ("t.arff", "@relation r\n@attribute x string\n@attribute y {{p,q}}\n@data\n{{0 '{0}'}}\n"),
    "arff, value": ("t.arff", "@relation r\n@attribute x {{b,'{0}'}}\n@attribute y {{p,q}}\n@data\nb,p\n"),
    "arff, name": ("t.arff", "@relation r\n@attribute '{0}' string\n@attribute y {{p,q}}\n@data\nb,p\n"),
}


@pytest.mark.parametrize("half", [r"\ud83d", r"\ude00", r"\ude00\ud83d", r"\ud83dx"])
@pytest.mark.parametrize("way", ESCAPED)
def test_a_lone_surrogate_that_a_file_spells_out_is_refused_with_its_line(way, half):
    path, text = ESCAPED[way]
    Path(path).write_text(text.format(half))
    with pytest.raises(bb.errors.BadFile, match=rf"{path}, line \d.*half a character") as refused:
        list(read(path))
    assert half in text.format(half).splitlines()[refused.value.line - 1]


@pytest.mark.parametrize("way", ESCAPED)
def test_a_character_that_a_file_spells_as_two_surrogates_is_one(way):
    path, text = ESCAPED[way]
    Path(path).write_text(text.format("\U0001f600"))
    plain = [(batch.names, [list(batch.column(name).cells()) for name in batch.names]) for batch in read(path)]
    Path(path).write_text(text.format(r"\ud83d\ude00"))
    assert plain == [(batch.names, [list(batch.column(name).cells()) for name in batch.names]) for batch in read(path)]


# What text files alone have to settle.


def test_codes_that_look_like_numbers_keep_their_zeros():
    Path("t.csv").write_text("zip,n,class\n00130,0,a\n10001,10,b\n 02134,-5,a\n")
    [batch] = read("t.csv")
    assert batch.kind("zip") == "string" and batch.head("zip", 3) == ["00130", "10001", "02134"]
    assert batch.kind("n") == "integer"


@pytest.mark.parametrize("value", ["0", "0.5", "-0.5", "1e05", "1e-05", "100", "-0", "+0.25", "0e3", "10.01"])
def test_zeros_that_are_no_codes_are_numbers(value):
    Path("t.csv").write_text(f"x,y\n{value},a\n2.5,b\n")
    assert next(iter(read("t.csv"))).kind("x") == "float"


def test_a_code_in_a_later_block_makes_words_of_all(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 64)
    Path("t.csv").write_text(
        "zip,class\n" + "".join(f"{10001 + n % 3},{'ab'[n % 2]}\n" for n in range(50)) + "00130,a\n"
    )
    with pytest.warns(bb.BanburyWarning, match="column 'zip' in t.csv changes type after its first rows"):
        tally = bb.count("t.csv", target="class", features={"zip": "categorical"})
    assert "'00130'" in str(tally) or "4 values" in str(tally)
    assert tally == bb.count(
        {"zip": [str(10001 + n % 3) for n in range(50)] + ["00130"], "class": [*"ab" * 25, "a"]},
        target="class",
        features={"zip": "categorical"},
    )


def test_a_model_of_numbers_reads_such_codes_as_numbers():
    Path("t.csv").write_text("x,y\n" + "".join(f"{n + 1},{'ab'[n % 2]}\n" for n in range(30)))
    Path("new.csv").write_text("x\n007\n12\n")
    model = bb.estimate(bb.count("t.csv", target="y"))
    assert np.array_equal(model.posterior("new.csv"), model.posterior({"x": [7, 12]}))


@pytest.mark.parametrize("word", ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?"])
def test_a_missing_word_is_missing_in_every_column(word):
    Path("t.csv").write_text(f"n,x,w,f\n1,1.5,a,true\n{word},{word},{word},{word}\n2,2.5,b,false\n")
    [batch] = read("t.csv")
    assert [batch.kind(name) for name in batch.names] == ["integer", "float", "string", "boolean"]
    assert all(len(batch.head(name, 9)) == 2 for name in batch.names)


@given(st.text("001x5+-.,\nae", max_size=40))
def test_a_glance_finds_every_code(text):
    found = any(re.match(r"[+-]?0[0-9xX]", field) for field in re.split("[,\n]", text))
    assert glance(text) >= found


def glance(text):
    return _core.any_leading_zero(np.frombuffer(text.encode(), np.uint8))


@pytest.mark.parametrize("text", ["1,2,3\n", "0.05,10,1003\n", "1e-05,2\n", "2001-01-02,10:05\n", "a0,b01,x.05\n"])
def test_a_glance_does_not_look_twice_without_need(text):
    assert not glance(text * 10000)
