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
from banbury.cli.serve import check_port, run
from banbury.cli.settings import counting
from banbury.model.naive_bayes import estimate
from banbury.service.access import Tokens, check_address
from banbury.service.app import Service
from banbury.service.rows import cells_of
from banbury.service.state import Put, ServedState, Together
from banbury.tally.table import Table
from banbury.tally.tally import Tally, count

TOGETHER = 1_000  # rows that are kept in one change


def label(args: Namespace) -> None:
    """Keeps the rows in a state, unless it was begun before, and serves its page."""
    tokens = None if args.tokens is None else Tokens.read(args.tokens)
    check_address(args.host, tokens)
    check_port(args.port)
    with _opened(args) as state:
        run(args, Service(state, tokens, name=Path(args.state).stem), {}, "Label rows at")


def _opened(args: Namespace) -> ServedState:
    """The state as it was left; or begun with the rows, of which a part may be there from a start that was broken off."""
    there = os.path.exists(os.path.join(args.state, "log.sqlite"))
    state = ServedState.of(None, args.state) if there else None
    try:
        if state is not None and state.names is not None:
            if args.input:
                text = "omitted, because the state already has its rows. Use another --state to start again"
                raise errors.bad_setting("INPUT", " ".join(args.input), text)
            return state
        errors.require(
            args.input, "INPUT", None, f"the rows to label, because {args.state} does not contain all of them yet"
        )
        with inputs.open_input(args) as data:
            tally, rows = _pool(data, args)
            state = ServedState.of(tally, args.state) if state is None else state
            for part in _parts(rows):
                state.change(Together(tuple(part)))
        state.offer([name.strip() for name in (args.classes or "").split(",") if name.strip()])
        return state
    except BaseException:
        if state is not None:
            state.close()
        raise


def serve_demo(args: Namespace) -> None:
    """The page on docstrings of Python's own library: half of them counted, a quarter labelled, and a quarter to label."""
    check_port(args.port)
    args.state, args.host = os.path.join(args.folder, "page"), "127.0.0.1"
    begun = os.path.exists(os.path.join(args.state, "log.sqlite"))
    with ServedState.of(None, args.state) if begun else _demo_state(args.state) as state:
        run(args, Service(state, name="demo"), {}, "Open the page at")


def _demo_state(folder: str) -> ServedState:
    docs = datasets.docstrings()
    names = docs.pop("name")
    labels = docs.pop("module")
    rows = [dict(zip(docs, values, strict=True)) for values in zip(*docs.values(), strict=True)]
    counted = {name: column[::2] for name, column in docs.items()}
    state = ServedState.of(estimate(count(counted, labels[::2])), folder)
    puts = (Put(names[k], rows[k], labels[k] if k % 4 == 1 else None) for k in range(1, len(rows), 2))
    for part in _parts(iter(puts)):
        state.change(Together(tuple(part)))
    state.offer([])
    return state


def _pool(data: Any, args: Namespace) -> tuple[Tally, Iterator[Put]]:
    """Sums of no row, under the schema of the rows; and the rows, each with its label, if it has one."""
    errors.require(args.weights is None, "--weights", args.weights, "omitted, because every answer counts once")
    settings = counting(args, data)
    target = args.target
    families = {name: settings.pop(name) for name in ("features", "missing")}
    del settings["weights"]
    table = Table.of(data, labelled=False, **settings)
    first = next(table.batches("reading", quietly=True))
    if target is not None and target not in first.names:
        raise errors.unknown_column(target, first.names, table.name)
    rows = first if target is None else first.without(target)
    labels: Any = [["a"] for _ in range(rows.n_rows)] if args.several else ["a"] * rows.n_rows
    some = count(rows, labels, **families)
    return some - some, _puts(table, target, some.schema.columns, args.several)


def _puts(table: Table, target: str | None, columns: Sequence[str], several: bool) -> Iterator[Put]:
    """Every row as JSON has it, under the number that it has in the data."""
    for batch in table.batches("reading"):
        cells = {name: cells_of(batch, name) for name in batch.names if name in columns and name != target}
        labels = [None] * batch.n_rows if target is None else cells_of(batch, target)
        for k in range(batch.n_rows):
            row = {name: column[k] for name, column in cells.items() if column[k] is not None}
            row_label = labels[k] if not several or labels[k] is None or isinstance(labels[k], list) else [labels[k]]
            yield Put(f"{batch.first_row + k + 1:07}", row or {columns[0]: None}, row_label)


def _parts(rows: Iterator[Put]) -> Iterator[list[Put]]:
    while part := list(islice(rows, TOGETHER)):
        yield part
