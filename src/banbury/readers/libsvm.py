"""LIBSVM and SVMlight: ``label index:value …`` a line, read as rows of a sparse matrix beside the column of the labels."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.readers.batches import Batch, LazyColumns, Source, Sparse, numbered
from banbury.readers.blocks import Block, cut, lines_before
from banbury.readers.columns import Column, Numbers
from banbury.readers.options import Options
from banbury.readers.tables import names_for

CLASS = "class"
_NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
ROW = re.compile(rb"[ \t]*" + _NUMBER + rb"(?:[ \t]+qid:\d+)?(?:[ \t]+\d+:" + _NUMBER + rb")*[ \t]*(?:#.*)?\r?")
BEGIN = re.compile(
    rb"(?:[ \t]*(?:#.*)?\r?\n)*[ \t]*" + _NUMBER + rb"(?:[ \t]+qid:\d+)?[ \t]+\d+:" + _NUMBER + rb"(?:\s|\Z)"
)
_BLANK = re.compile(rb"[ \t]*(?:#.*)?\r?")
_QUERY = re.compile(rb"\sqid:")
_SEVERAL = re.compile(rb"[ \t]*[-+\d.]+,")
WIDEST = 1 << 31


class LabelledSparse(Sparse):
    """Rows of a sparse matrix, and the column of their labels, which comes first."""

    def __init__(
        self, matrix: Any, names: tuple[str, ...], label: str, labels: Column, source: str | None = None
    ) -> None:
        super().__init__(matrix, names, True, source)
        self._label, self._labels = label, labels
        self.names = (label, *names)
        self._columns = LazyColumns(lambda name: labels if name == label else Numbers(self._column(name)))

    def __reduce__(self) -> tuple[Any, ...]:
        return LabelledSparse, (self._held, self._own_names, self._label, self._labels, self.source)

    def numbers(self, names: Sequence[str]) -> list[NDArray[Any]]:
        if self._label in names:
            return [self.column(name).numbers() for name in names]
        return super().numbers(names)

    def renamed(self, names: tuple[str, ...]) -> Batch:
        return Batch.renamed(self, names)

    def cut(self, start: int, stop: int) -> Batch:
        part = self._of(self._held[start:stop], self._labels.cut(start, stop))
        part.first_row = self.first_row + start
        return part

    def take(self, rows: NDArray[np.int64]) -> Batch:
        return self._of(self._held[rows], self._labels.take(rows))

    def _of(self, held: Any, labels: Column) -> Batch:
        return LabelledSparse(held, self._own_names, self._label, labels, self.source)


def from_libsvm(path: str, options: Options) -> Source:
    """A file of such rows, which need not fit in memory. It is read twice: how wide it is shows at its end.

    Columns are named by the numbers in the file; those of a schema are there, whether a row has them or not.
    """
    if options.columns is not None:
        raise errors.bad_setting("columns", options.columns, f"left out for {path}, whose columns have numbers")
    file = _LibsvmFile(path, options)
    return Source(file.batches, path, target=file.names[0])


class _LibsvmFile:
    """What is known of one file: its columns, and whether its labels are whole numbers."""

    def __init__(self, path: str, options: Options) -> None:
        self.path = path
        self.first, self.n_columns, self.whole = 1, 0, True
        for block in cut(path, 0):
            matrix, labels = self._parsed(block, None)
            if matrix.nnz:
                self.first = min(self.first, int(matrix.indices.min()))
            self.n_columns = max(self.n_columns, int(matrix.indices.max()) + 1 if matrix.nnz else 0)
            self.whole = self.whole and bool((labels == np.rint(labels)).all())
        known = [int(name) for name in options.kinds or () if name.isdecimal()]
        self.first, self.n_columns = min([self.first, *known]), max([self.n_columns, *(name + 1 for name in known)])
        own = (CLASS, *map(str, range(self.first, self.n_columns)))
        self.names = names_for(own, None)

    def batches(self) -> Iterator[Batch]:
        return numbered(self._each())

    def _each(self) -> Iterator[Batch]:
        for block in cut(self.path, 0):
            matrix, labels = self._parsed(block, self.n_columns)
            matrix = matrix[:, self.first : self.n_columns] if self.first else matrix
            held = Numbers(labels.astype(np.int64) if self.whole else labels)
            yield LabelledSparse(matrix, self.names[1:], self.names[0], held, self.path)

    def _parsed(self, block: Block, n_columns: int | None) -> tuple[Any, NDArray[np.float64]]:
        """The matrix and the labels of a block; its columns are those of the file, from 0."""
        from sklearn.datasets import load_svmlight_file

        data = bytes(block.data)
        if b"qid:" in data:
            raise self._explained(data, block)
        try:
            matrix, labels = load_svmlight_file(io.BytesIO(data), n_features=n_columns or None, zero_based=True)
        except (ValueError, OverflowError):
            raise self._explained(data, block) from None
        if not (np.isfinite(labels).all() and np.isfinite(matrix.data).all()):
            raise self._explained(data, block)
        return matrix, labels

    def _explained(self, data: bytes, block: Block) -> errors.BadFile:
        """What is wrong with a block, said of the line that is to blame."""
        lines = enumerate(data.split(b"\n"), lines_before(self.path, block.offset) + 1)
        for number, line in ((number, line) for number, line in lines if not _BLANK.fullmatch(line)):
            shown = errors.shortened(line.decode("latin-1"), 60)
            if _QUERY.search(line.partition(b"#")[0]):
                text = "has a qid: it belongs to a query, and is to be ranked within it, not classified. Take the qids out to "
                return self._bad(number, f"{text}classify the rows: {shown!r}")
            if _SEVERAL.match(line):
                return self._bad(number, f"has several labels, and a row of this file has one class: {shown!r}")
            if not ROW.fullmatch(line):
                return self._bad(number, f"is not a label and pairs of index:value, as in `1 3:0.5 7:1`: {shown!r}")
            indices = [int(pair.partition(b":")[0]) for pair in line.partition(b"#")[0].split()[1:]]
            if indices != sorted(set(indices)) or max(indices, default=0) >= WIDEST:
                return self._bad(number, f"has indices that do not rise, or are too large: {shown!r}")
        return errors.bad_file(self.path, "it holds a number that is not finite, or no rows of index:value pairs.")

    def _bad(self, line: int, why: str) -> errors.BadFile:
        return errors.BadFile(f"{self.path}, line {line:,} {why}", path=self.path, line=line)
