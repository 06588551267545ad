"""label: rows without labels, and a page to label them in."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from banbury import datasets, errors
from banbury.cli import inputs
from banbury.cli.serve import check_port, read_tokens, run
from banbury.cli.settings import counting
from banbury.model.naive_bayes import estimate
from banbury.service.app import Service
from banbury.service.rows import cells_of
from banbury.service.state import Put, ServedState, Together
from banbury.tally.table import Labels, Table, open_source
from banbury.tally.tally import Tally, count
from banbury.threads import n_threads

PUTS_PER_CHANGE = 1_000  # rows that are stored in one change


def label(args: Namespace) -> None:
    """Serves the page on which rows are labelled, until the process is told to end. The state is created from the rows
    unless it exists.
    """
    tokens = read_tokens(args)
    with _open_state(args) as state:
        run(args, Service(state, tokens, name=Path(args.state).stem), facts={}, doing="Label rows at")


def _open_state(args: Namespace) -> ServedState:
    """Returns the state in the folder ``args.state``, or creates it from the input; completes one whose creation was
    interrupted. Raises BadSetting if there are rows for a complete state, or none to create one from.
    """
    state = _load_state(args)
    try:
        if state is not None and state.names is not None:  # it is complete: the names of classes are stored last
            if args.input:
                raise errors.bad_setting(
                    "INPUT",
                    " ".join(args.input),
                    "omitted, because the state already has its rows. Use another --state to start again",
                )
            return state
        errors.require(
            args.input, "INPUT", None, f"the rows to label, because {args.state} does not contain all of them yet"
        )
        with inputs.open_input(args) as data:  # the opened input
            tally, rows = _read_pool(data, args)
            state = ServedState.of(tally, args.state) if state is None else state
            for puts in _batches_of_puts(rows):
                state.change(Together(tuple(puts)))
        state.offer([name.strip() for name in (args.classes or "").split(",") if name.strip()])
        return state
    except BaseException:
        if state is not None:
            state.close()
        raise


def _load_state(args: Namespace) -> ServedState | None:
    """Returns the state in the folder ``args.state``; None if there is none."""
    exists = os.path.exists(os.path.join(args.state, "log.sqlite"))
    return ServedState.of(served=None, folder=args.state) if exists else None


def serve_demo(args: Namespace) -> None:
    """Serves the page with docstrings of Python's library: half of them counted, a quarter labelled, a quarter to
    label.
    """
    check_port(args.port)
    args.state = os.path.join(args.folder, "page")
    args.host = "127.0.0.1"
    with _load_state(args) or _demo_state(args.state) as state:
        run(args, Service(state, name="demo"), facts={}, doing="Open the page at")


def _demo_state(folder: str) -> ServedState:
    """Creates the state of the demo in a folder and returns it: every second docstring is counted, half of the others
    are stored with their label, and half without.
    """
    columns = datasets.docstrings()  # by name, one entry per docstring
    names = columns.pop("name")  # the ids of the rows
    labels = columns.pop("module")  # the class of each row
    # Each as a dictionary of cells by column.
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    counted_columns = {name: column[::2] for name, column in columns.items()}
    state = ServedState.of(estimate(count(counted_columns, labels[::2])), folder)
    puts = (  # the changes that store every other docstring
        Put(names[number], rows[number], labels[number] if number % 4 == 1 else None)
        for number in range(1, len(rows), 2)
    )
    for batch in _batches_of_puts(iter(puts)):
        state.change(Together(tuple(batch)))
    state.offer(names=[])
    return state


def _read_pool(data: Any, args: Namespace) -> tuple[Tally, Iterator[Put]]:
    """Returns an empty tally under the schema of the rows to label, and an iterator over them, each with its label if
    it has one. ``data``: the opened input.
    """
    errors.require(args.weights is None, "--weights", args.weights, "omitted, because every answer counts once")
    options = counting(args, data)  # for counting, by name
    target = args.target  # the column with labels, or None
    # The options that decide the schema.
    families = {name: options.pop(name) for name in ("features", "missing")}
    del options["weights"]
    threads = n_threads(options.pop("threads", None))
    source = open_source(data, None, options)
    table = Table(source, Labels.without_target(source.weights, threads))
    first_batch = next(table.batches("reading", quietly=True))
    if target is not None and target not in first_batch.names:
        raise errors.unknown_column(target, first_batch.names, table.name)
    rows = first_batch if target is None else first_batch.without(target)
    # Any labels will do: the counts are subtracted again, and the schema stays.
    labels: Any = [["a"] for _ in range(rows.n_rows)] if args.several else ["a"] * rows.n_rows
    tally = count(rows, labels, **families)
    return tally - tally, _puts(table, target, tally.schema.columns, args.several)


def _puts(table: Table, target: str | None, columns: Sequence[str], several: bool) -> Iterator[Put]:
    """Yields each row of the table as a change that stores it: its number as identifier, its cells for JSON, and its
    label. ``target``: the column with labels, or None; ``columns``: those to store; ``several``: whether rows have
    label sets.
    """
    for batch in table.batches("reading"):
        # By column, one cell per row; and one label per row.
        cells = {name: cells_of(batch, name) for name in batch.names if name in columns and name != target}
        labels = [None] * batch.n_rows if target is None else cells_of(batch, target)
        for row_index in range(batch.n_rows):
            row = {name: column[row_index] for name, column in cells.items() if column[row_index] is not None}
            # A label on its own becomes a set of one.
            row_label = (
                labels[row_index]
                if not several or labels[row_index] is None or isinstance(labels[row_index], list)
                else [labels[row_index]]
            )
            yield Put(f"{batch.first_row + row_index + 1:07}", row or {columns[0]: None}, row_label)


def _batches_of_puts(rows: Iterator[Put]) -> Iterator[list[Put]]:
    """Yields the changes in ``rows`` in lists of at most PUTS_PER_CHANGE."""
    while puts := list(islice(rows, PUTS_PER_CHANGE)):
        yield puts
