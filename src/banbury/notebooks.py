"""Notebooks: how objects are displayed there, in one small style, and as data frames.

No scripts, and nothing from other hosts. Colours are translucent and text has the page's own colour, so that it suits light and
dark pages. Blue is for the winner and orange against it; people with common kinds of colour blindness can tell them apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from typing import Any, NamedTuple

from banbury.errors import many

FOR = "59, 130, 246"  # red, green and blue of evidence for the winner, and of evidence against it
AGAINST = "234, 120, 20"
BAR_OPACITY = 0.75  # from 0 to 1
MOST_TABLE_ROWS = 20  # of a table on a page; frames have all

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
.banbury .left i {{ background: rgba({AGAINST}, {BAR_OPACITY}); border-radius: 3px 0 0 3px; }}
.banbury .right i {{ background: rgba({FOR}, {BAR_OPACITY}); border-radius: 0 3px 3px 0; }}
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
    """An object that notebooks display as tables, below the first line of its text and above its notes."""

    def _notebook_tables(self) -> list[NotebookTable]:
        """Returns the tables, the most important first."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Returns the object as a notebook displays it, as HTML: a headline, tables and notes."""
        head = str(self).partition("\n")[0]
        tables = "".join(map(html_of_table, self._notebook_tables()))
        notes = "".join(f'<p class="note">{safe(note)}</p>' for note in getattr(self, "notes", ()))
        return f'{STYLE}<div class="banbury"><p class="head">{safe(head)}</p>{tables}{notes}</div>'


class Tabular(Displayed):
    """An object that is essentially one table, which ``to_frame`` returns."""

    def _frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Returns the columns of the frame by name, with all rows."""
        raise NotImplementedError

    def _notebook_tables(self) -> list[NotebookTable]:
        """Returns the table to display."""
        return [NotebookTable("", self._frame_columns())]

    def to_frame(self) -> Any:
        """Returns the table as a pandas frame if pandas is installed, else as a Polars frame, else as an Arrow table."""
        columns = self._frame_columns()
        if find_spec("pandas") is not None:
            import pandas

            return pandas.DataFrame(columns)
        typed_columns = {name: values_of_one_type(values) for name, values in columns.items()}
        if find_spec("polars") is not None:
            import polars

            return polars.DataFrame(typed_columns)
        import pyarrow

        return pyarrow.table(typed_columns)


def align_columns(rows: Sequence[Sequence[str]], right_aligned: Collection[int] = ()) -> list[str]:
    """Returns rows of cells as lines of text with aligned columns, indented by two spaces. The columns whose numbers
    are in ``right_aligned`` are aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    alignments = [">" if column in right_aligned else "<" for column in range(len(widths))]
    lines = [
        "  ".join(f"{cell:{alignment}{width}}" for cell, alignment, width in zip(row, alignments, widths, strict=True))
        for row in rows
    ]
    return [f"  {line}".rstrip() for line in lines]


def more_line(n: int, noun: str) -> list[str]:
    """Returns a list with a line that says how many more there are of what ``noun`` names, such as ``… and 3 more
    features``; an empty list if there are none.
    """
    return [f"  … and {many(n, f'more {noun}')}"] if n > 0 else []


def columns_of(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Returns the records (one mapping from column to cell per row) as columns; a cell that a record lacks is None."""
    record_list = list(records)
    names = dict.fromkeys(name for record in record_list for name in record)
    return {name: [record.get(name) for record in record_list] for name in names}


def values_of_one_type(values: Sequence[Any]) -> list[Any]:
    """Returns the values, converted to texts if their types differ, since Polars and Arrow need one type per column.
    None stays None, and whole numbers go with others.
    """
    types = {type(value) for value in values if value is not None}
    if len(types) <= 1 or types == {int, float}:
        return list(values)
    return [None if value is None else str(value) for value in values]


def html_of_table(table: NotebookTable) -> str:
    """Returns the first rows of a table (its ``columns`` are lists of cells by name) as HTML, and how many more there
    are.
    """
    n_rows = max(map(len, table.columns.values()), default=0)
    caption = f"<caption>{safe(table.caption)}</caption>" if table.caption else ""
    head = "".join(f"<th>{safe(name)}</th>" for name in table.columns)
    rows = zip(*(values[:MOST_TABLE_ROWS] for values in table.columns.values()), strict=True)
    body = "".join(f"<tr>{''.join(map(html_of_cell, row))}</tr>" for row in rows)
    hidden = f'<p class="note">… and {n_rows - MOST_TABLE_ROWS:,} more</p>' if n_rows > MOST_TABLE_ROWS else ""
    return f'<table class="plain">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{hidden}'


def html_of_cell(value: Any) -> str:
    """Returns the value of a cell as HTML; numbers are right-aligned and have four decimals below 1, six digits
    otherwise.
    """
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    if isinstance(value, float):
        return f'<td class="number">{value:,.6g}</td>' if abs(value) >= 1 else f'<td class="number">{value:.4f}</td>'
    return f'<td class="value">{"" if value is None else safe(value)}</td>'


def safe(value: Any) -> str:
    """Returns a value as escaped HTML, without characters that a page cannot contain."""
    return escape(str(value).encode("utf-8", "replace").decode(), quote=True)
