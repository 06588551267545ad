"""Rows in partitions, whatever engine they are on: what is made of each partition is added up, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from banbury import errors
from banbury.engines.answers import PartitionAnswers
from banbury.engines.counting import CountedRows, CountPart, CountSettings, Sampled, Settled, TakeFirst, settle
from banbury.engines.engine import Engine, PartWork, Steps
from banbury.engines.interrupts import hear_interrupts
from banbury.engines.parcels import add_up
from banbury.engines.sampling import SampleRows
from banbury.engines.validation import Evaluate
from banbury.families.moments import SAMPLE
from banbury.labels import LabelEvaluation
from banbury.labels import evaluate as evaluate_labels
from banbury.model.naive_bayes import Model, add_unknown_classes, model_of, same_rows
from banbury.progress import watch
from banbury.quality.results import OWN_ROWS, SummedEvaluation
from banbury.reading import n_threads
from banbury.reading.batches import as_name, other_columns
from banbury.rows.sampling import LARGEST, RowSample, sample_rows
from banbury.tally.label_sets import LabelTarget
from banbury.tally.schema import ColumnFacts
from banbury.tally.tally import Tally, complete, count_table
from banbury.weighing import MOST_ROWS

MORE_THAN_WANTED = 4  # times as many rows of a sample are brought, in case some are alike
MOST_RESTARTS = 20  # each time, some column shows more than in all passes before


@dataclass
class Done:
    """Partitions that are done, as progress tells of them."""

    n_rows: int
    share: float | None
    value: Any


class Partitions:
    """The partitions of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._first: tuple[dict[str, str], list[Sampled]] | None = None

    def table(self, target: Any, **settings: Any) -> PartitionedTable:
        """The rows with their target; the settings are those of ``bb.count``."""
        return PartitionedTable(self, _check_settings(target, **settings))

    def predict(self, model: Any, **settings: Any) -> Any:
        """A frame of the same kind, lazily: the class of each row, or its labels, in a column beside its own."""
        return self._answer(model, "predict", settings)

    def posterior(self, model: Any, **settings: Any) -> Any:
        """The same with the probability of each class or label."""
        return self._answer(model, "posterior", settings)

    predict_proba = posterior

    def explain(self, model: Any, **settings: Any) -> Any:
        """The same with the class of each row and the evidence for it, in decibans."""
        return self._answer(model, "explain", settings)

    def _answer(self, model: Any, question: str, settings: Mapping[str, Any]) -> Any:
        given_settings = {name: value for name, value in settings.items() if value is not None}
        return self.engine.answer(
            PartitionAnswers(model_of(model), question, given_settings, tuple(self.engine.columns))
        )

    def evaluate(self, model: Any, target: Any = None, *, sample: int | None = None, **reading: Any) -> Any:
        """``bb.evaluate`` of all partitions; where rows have sets of labels, of a sample."""
        model = model_of(model)
        target = as_name(target)
        if model.schema.labels is not None:
            return self._evaluate_sets(model, target, sample, reading)
        target = model.target if target is None else target
        errors.require(
            target is not None and isinstance(model, Model),
            "target",
            target,
            "the name of the column with the true classes, for a Model and rows in partitions",
        )
        result = self.sum_of(Evaluate(replace(model, threads=1), target, reading), "scoring on")
        if result is None or not result.n_rows:
            raise _empty()
        if result.outcomes is None:
            raise errors.no_target(result.n_rows, target)
        classes, notes = add_unknown_classes(model.classes, result.classes)
        outcomes = result.outcomes.among(result.classes, classes)
        table = self.table(target, schema=model.schema, **reading)
        are_own = same_rows(lambda: model.n_rows == outcomes.n_rows and table.count_all() == model.tally)
        return SummedEvaluation(classes, outcomes, notes=(OWN_ROWS,) if are_own else notes)

    def _evaluate_sets(self, model: Any, target: Any, n: int | None, reading: dict[str, Any]) -> LabelEvaluation:
        labels = model.schema.labels
        if isinstance(target, str) and labels is not None:
            reading.setdefault("target_delimiter", labels.delimiter)
        table = self.table(labels if target is None else target, **reading)
        sample = table.draw_sample(model.tally, MOST_ROWS if n is None else n)
        rows = sample.table(model.schema, n_threads(None))
        evaluation = evaluate_labels(model, next(iter(rows.source)), rows.labels.sets)
        notes = [] if sample.is_whole else [f"a sample of {sample.n_sampled:,} of {sample.n_rows:,} rows"]
        return replace(evaluation, weights=rows.labels.weights, notes=(*evaluation.notes, *notes))

    def first_rows(self, reading: Mapping[str, Any], wider: ColumnFacts) -> list[Sampled]:
        """The first rows of the first partitions; read again only where columns of files are read as something else."""
        read_as = {name: "string" for name, kind in wider.kinds.items() if kind == "string"}
        kinds = read_as if self.engine.are_files else {}
        if self._first is not None and self._first[0] == kinds:
            return self._first[1]
        sample = list[Sampled]()
        n_rows = 0
        with closing(self.engine.first(TakeFirst(reading, kinds))) as taken:
            for parcel in taken:
                if parcel is not None:
                    sample.append(parcel.value)
                    n_rows += sample[-1].batch.n_rows
                if n_rows >= SAMPLE:
                    break
        if not sample:
            raise _empty()
        sample[-1] = replace(sample[-1], batch=sample[-1].batch.slice(0, SAMPLE - n_rows + sample[-1].batch.n_rows))
        _check_alike(sample)
        self._first = kinds, sample
        return sample

    def sum_of(self, work: PartWork, doing: str) -> Any:
        """The sum of what work makes of all partitions, each once; None where it makes nothing of any."""
        total = add_up(done.value for done in self.watch_steps(self.engine.add_up_parts(work), doing))
        return None if total is None else total.value

    def watch_steps(self, steps: Steps[tuple[int, Any]], doing: str) -> Iterator[Done]:
        """The steps, while a line says how far they are. However this ends, nothing is left running."""
        n_partitions = self.engine.n_partitions
        ask = self.engine.progress
        n_before = 0

        def each() -> Iterator[Done]:
            nonlocal n_before
            for n_done, value in steps:
                yield Done(n_done - n_before, n_done / n_partitions if n_partitions else None, value)
                n_before = n_done

        with hear_interrupts(), closing(steps):
            yield from watch(each(), doing, self.engine.name, "partitions" if ask is None else "tasks", ask)


@dataclass(frozen=True, eq=False)
class PartitionedTable:
    """Labelled rows in partitions, and how they are counted; what ``Table`` is of rows that are here."""

    partitions: Partitions
    settings: CountSettings
    n_held: ClassVar[int] = MOST_ROWS  # rows that are sampled where they are needed in memory

    @property
    def has_sets(self) -> bool:
        """Whether the target is one of sets of labels."""
        return self.settle().schema.labels is not None

    def settle(self, wider: ColumnFacts | None = None) -> Settled:
        """What is counted, by the first rows in the order of partitions: empty and tiny ones are read through."""
        wider = ColumnFacts() if wider is None else wider
        with hear_interrupts():
            first_rows = self.partitions.first_rows(self.settings.reading, wider)
            return settle(first_rows, wider, self.settings, self.partitions.engine.are_files)

    def count_all(self) -> Tally:
        """The tally of all partitions."""
        settled, counts = self.count(CountPart)
        assert counts.tally is not None
        tally = complete(counts.tally, counts.n_rows, settled.schema.target)
        names = self.partitions.engine.names
        return tally if names is None else replace(tally, parts=frozenset(names))

    def count(self, work: Callable[[Settled], PartWork]) -> tuple[Settled, CountedRows]:
        """What is counted, and the count; again from the start where partitions show more than the first rows did."""
        wider = ColumnFacts()
        for _ in range(MOST_RESTARTS):
            settled = self.settle(wider)
            counts: CountedRows | None = self.partitions.sum_of(work(settled), "counting on")
            if counts is None or not (counts.wider or counts.n_rows):
                raise _empty()
            if not counts.wider:
                for text in counts.warnings:
                    errors.warn(errors.BanburyWarning(text))
                return settled, counts
            wider |= counts.wider
            columns = errors.listed(map(repr, counts.wider.columns), 6)
            several = "columns" if len(counts.wider.columns) > 1 else "column"
            text = f"{several} {columns} of some partitions {'do' if several == 'columns' else 'does'} not match the first "
            errors.warn(f"{text}{SAMPLE:,} rows, so counting starts again")
        [column, *_] = wider.columns
        raise errors.BadValue(
            f"column {column!r} changes type between passes. Name its family in features=, or pass a schema.",
            column=column,
        )

    def draw_sample(self, tally: Tally, n: int, also: Sequence[str] = ()) -> RowSample:
        """A sample of the rows that a tally counted, in one pass; of rows that are much alike, in two.

        Columns that are not counted come ``also``; if there are none, the rows come with the groups that were asked for.
        """
        errors.check_whole("sample", n, 2)
        target = tally.schema.target if self.settings.target is None else self.settings.target
        counted_as: dict[str, Any] = {"schema": tally.schema, "features": "auto", "missing": "skip", "trees": "many"}
        settings = replace(self.settings, target=target, **counted_as, groups=None if also else self.settings.groups)
        settled = replace(self, settings=settings).settle()
        if tally.schema.labels is not None and not isinstance(settled.settings.target, LabelTarget):
            raise errors.bad_setting("target", target, "sets of labels: lists, flags, or texts with target_delimiter=")
        n_rows = float(tally.n_rows)
        for below in (LARGEST * MORE_THAN_WANTED * n / max(n_rows, 1.0), LARGEST):
            work = SampleRows(settled, settings.groups, n, below, tuple(also))
            sample: RowSample | None = self.partitions.sum_of(work, "sampling on")
            if sample is not None and sample.is_complete(below):
                break
        if sample is None:
            raise _empty()
        return sample


@count_table.register
def _(table: PartitionedTable) -> Tally:
    return table.count_all()


@sample_rows.register
def _(table: PartitionedTable, tally: Tally, n: int, also: Sequence[str] = ()) -> RowSample:
    return table.draw_sample(tally, n, also)


def _check_settings(target: Any, threads: int | None = None, **settings: Any) -> CountSettings:
    """What a user asked for, checked as far as that can be done before any row is seen."""
    names = {field.name for field in fields(CountSettings)}
    reading = {name: settings.pop(name) for name in settings.keys() - names}
    for name in ("weights", "groups"):
        _column(name, settings.get(name))
    reading = {name: value for name, value in reading.items() if value is not None}
    return CountSettings(_column("target", target), **settings, threads=n_threads(threads or 1), reading=reading)


def _column(setting: str, value: Any) -> Any:
    """What is named by a column, or not given; arrays have rows in an order, and partitions have none."""
    names = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    if value is None or names or isinstance(value, (str, int, LabelTarget)):
        return value
    raise errors.bad_setting(
        setting,
        type(value).__name__,
        "the name of a column when rows are in partitions; add it to the frame",
    )


def _check_alike(sample: Sequence[Sampled]) -> None:
    names = sample[0].batch.names
    for part in sample[1:]:
        if set(part.batch.names) != set(names):
            raise other_columns(part.batch.names, names, "a partition", "partition")


def _empty() -> errors.EmptyData:
    return errors.empty_data(None, "all partitions are empty")
