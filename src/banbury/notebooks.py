"""Notebooks: how objects are displayed there, in one small style, and as data frames.

No script, and nothing from other hosts. Colours are translucent and letters take the page's own colour, so that light and
dark pages both suit. Blue speaks for the winner and orange against it, which no common colour blindness confuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from typing import Any, NamedTuple

FOR = "59, 130, 246"
AGAINST = "234, 120, 20"
BAR = 0.75  # how dense the colour of a bar is
SHOWN = 20  # rows of a table on a page; frames have all

STYLE = f"""<style>
.banbury {{ font: 14px/1.5 system-ui, sans-serif; color: inherit; max-width: 62em; text-align: left; }}
.banbury p {{ margin: .4em 0; }}
.banbury .head {{ font-size: 1.15em; }}
.banbury .note {{ opacity: .75; font-size: .92em; }}
.banbury .text {{ white-space: pre-wrap; overflow-wrap: anywhere; overflow-y: auto; max-height: 22em; line-height: 1.7;
  padding: .6em .9em; margin: .5em 0; border: 1px solid rgba(128, 128, 128, .35); border-radius: 6px; }}
.banbury .text span {{ border-radius: 3px; padding: .08em 0; }}
.banbury .key {{ padding: .05em .5em; border-radius: 3px; }}
.banbury .against {{ text-decoration: underline dotted; text-underline-offset: .22em; }}
.banbury table {{ border-collapse: collapse; margin: .5em 0; width: 100%; font: inherit; color: inherit; background: none; }}
.banbury table.plain {{ width: auto; }}
.banbury tr, .banbury td, .banbury th {{ background: none; border: 0; }}
.banbury td, .banbury th {{ padding: .12em .8em .12em 0; text-align: left; vertical-align: top; font-weight: normal; }}
.banbury thead th {{ opacity: .75; }}
.banbury td.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
.banbury td.value {{ overflow-wrap: break-word; }}
.banbury tr.name {{ opacity: .75; }}
.banbury td.bar {{ width: 45%; padding: .12em 0; vertical-align: middle; }}
.banbury .track {{ display: flex; height: .95em; }}
.banbury .half {{ flex: 1; display: flex; }}
.banbury .left {{ justify-content: flex-end; border-right: 1px solid rgba(128, 128, 128, .6); }}
.banbury .left i {{ background: rgba({AGAINST}, {BAR}); border-radius: 3px 0 0 3px; }}
.banbury .right i {{ background: rgba({FOR}, {BAR}); border-radius: 0 3px 3px 0; }}
.banbury tr.sum td {{ border-top: 1px solid rgba(128, 128, 128, .5); font-weight: 600; }}
.banbury .classes {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(16em, 1fr)); align-items: start;
  gap: .4em 2.2em; }}
.banbury caption {{ text-align: left; font-weight: 600; color: inherit; padding: .2em 0; }}
@media (max-width: 36em) {{ .banbury td.bar {{ width: 28%; }} .banbury td, .banbury th {{ padding-right: .5em; }} }}
</style>"""


class NotebookTable(NamedTuple):
    """Columns of one length under a caption, which may be empty."""

    caption: str
    columns: Mapping[str, Sequence[Any]]


class Displayed:
    """What a notebook shows as tables: the first line of its text, its tables, and notes."""

    def _notebook_tables(self) -> list[NotebookTable]:
        """The tables, the most important first."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """The object as a notebook displays it."""
        head = str(self).partition("\n")[0]
        tables = "".join(map(html_of_table, self._notebook_tables()))
        notes = "".join(f'<p class="note">{safe(note)}</p>' for note in getattr(self, "notes", ()))
        return f'{STYLE}<div class="banbury"><p class="head">{safe(head)}</p>{tables}{notes}</div>'


class Tabular(Displayed):
    """What is one table above all, which ``to_frame`` returns."""

    def _frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """The columns of the frame, whole."""
        raise NotImplementedError

    def _notebook_tables(self) -> list[NotebookTable]:
        return [NotebookTable("", self._frame_columns())]

    def to_frame(self) -> Any:
        """The table as a pandas frame if pandas is installed, else as a Polars frame, else as an Arrow table."""
        columns = self._frame_columns()
        if find_spec("pandas") is not None:
            import pandas

            return pandas.DataFrame(columns)
        typed = {name: values_of_one_type(values) for name, values in columns.items()}
        if find_spec("polars") is not None:
            import polars

            return polars.DataFrame(typed)
        import pyarrow

        return pyarrow.table(typed)


def columns_of(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Records as columns; what a record lacks is None."""
    rows = list(records)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def values_of_one_type(values: Sequence[Any]) -> list[Any]:
    """The values, as texts where their types differ: columns of Polars and Arrow have one type."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 or kinds == {int, float}:
        return list(values)
    return [None if value is None else str(value) for value in values]


def html_of_table(table: NotebookTable) -> str:
    """The first rows of a table, and how many more there are."""
    n_rows = max(map(len, table.columns.values()), default=0)
    caption = f"<caption>{safe(table.caption)}</caption>" if table.caption else ""
    head = "".join(f"<th>{safe(name)}</th>" for name in table.columns)
    rows = zip(*(values[:SHOWN] for values in table.columns.values()), strict=True)
    body = "".join(f"<tr>{''.join(map(html_of_cell, row))}</tr>" for row in rows)
    hidden = f'<p class="note">… and {n_rows - SHOWN:,} more</p>' if n_rows > SHOWN else ""
    return f'<table class="plain">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{hidden}'


def html_of_cell(value: Any) -> str:
    """A cell: numbers to the right, with four digits after the point at most."""
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    if isinstance(value, float):
        return f'<td class="number">{value:,.6g}</td>' if abs(value) >= 1 else f'<td class="number">{value:.4f}</td>'
    return f'<td class="value">{"" if value is None else safe(value)}</td>'


def safe(value: Any) -> str:
    """A value as HTML: escaped, and what no page can hold replaced."""
    return escape(str(value).encode("utf-8", "replace").decode(), quote=True)
