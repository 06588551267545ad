"""Rows in partitions on any engine: counting, scoring and sampling them, each partition exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from banbury import errors
from banbury.engines.answers import PartitionAnswers
from banbury.engines.counting import CountedRows, CountPart, CountPlan, CountSettings, Sampled, TakeFirst, plan_count
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
from banbury.quality.results import TRAINING_ROWS_NOTE, SummedEvaluation
from banbury.reading import n_threads
from banbury.reading.batches import as_name, other_columns
from banbury.rows.sampling import ABOVE_ALL_HASHES, RowSample, sample_rows
from banbury.tally.label_sets import LabelTarget
from banbury.tally.schema import ColumnFacts
from banbury.tally.tally import Tally, check_classes, count_table
from banbury.weighing import MOST_ROWS

OVERSAMPLING = 4  # times the wanted rows that are fetched, since identical rows count once
MOST_RESTARTS = 20  # each restart is due to a column that shows more than in all earlier passes


@dataclass
class CompletedParts:
    """The partitions that have just been completed: for the progress line how many and the share of all partitions done
    so far, and the value made of them.
    """

    n_rows: int
    share: float | None
    value: Any


class Partitions:
    """The partitions of an engine, with the questions that can be asked of their rows."""

    def __init__(self, engine: Engine) -> None:
        """Keeps the engine. The first rows are fetched when they are first needed."""
        self.engine = engine
        self._first_rows: tuple[dict[str, str], list[Sampled]] | None = None  # column kinds they were read with, rows

    def table(self, target: Any, **settings: Any) -> PartitionedTable:
        """Returns the labelled rows as a table; the settings are those of ``bb.count``."""
        return PartitionedTable(self, _check_settings(target, **settings))

    def predict(self, model: Any, **settings: Any) -> Any:
        """Returns a lazy frame of the same kind, with an additional column for the class or labels of each row."""
        return self._answer(model, "predict", settings)

    def posterior(self, model: Any, **settings: Any) -> Any:
        """Returns a lazy frame of the same kind, with an additional column for the probability of each class or label."""
        return self._answer(model, "posterior", settings)

    predict_proba = posterior

    def explain(self, model: Any, **settings: Any) -> Any:
        """Returns a lazy frame of the same kind, with additional columns for the class that the model gives each row
        and the evidence for it, in decibans.
        """
        return self._answer(model, "explain", settings)

    def _answer(self, model: Any, question: str, settings: Mapping[str, Any]) -> Any:
        """Returns a lazy frame with the model's answers. ``question`` is "predict", "posterior" or "explain";
        ``settings`` has keyword arguments of that method, None where omitted.
        """
        passed_settings = {name: value for name, value in settings.items() if value is not None}
        return self.engine.answer(
            PartitionAnswers(model_of(model), question, passed_settings, tuple(self.engine.columns))
        )

    def evaluate(self, model: Any, target: Any = None, *, sample: int | None = None, **reading: Any) -> Any:
        """Evaluates a model as ``bb.evaluate`` does, on all partitions; with several labels per row, on a sample of
        ``sample`` rows. ``target`` is the column of the true classes, None for that of the model; ``reading`` has
        options for reading files.
        """
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
        # The sum over all partitions; its classes are the model's, and then those that only the rows have.
        evaluated = self.sum_of(Evaluate(replace(model, threads=1), target, reading), "scoring on")
        if evaluated is None or not evaluated.n_rows:
            raise _no_rows_error()
        if evaluated.outcomes is None:
            raise errors.no_target(evaluated.n_rows, target)
        classes, notes = add_unknown_classes(model.classes, evaluated.classes)
        outcomes = evaluated.outcomes.among(evaluated.classes, classes)
        table = self.table(target, schema=model.schema, **reading)
        are_training_rows = same_rows(lambda: model.n_rows == outcomes.n_rows and table.count_all() == model.tally)
        return SummedEvaluation(classes, outcomes, notes=(TRAINING_ROWS_NOTE,) if are_training_rows else notes)

    def _evaluate_sets(self, model: Any, target: Any, n: int | None, reading: dict[str, Any]) -> LabelEvaluation:
        """Evaluates a multi-label model on a sample of ``n`` rows, None for the usual number. ``target`` is the column
        of label sets, or None for that of the model; ``reading`` has options for reading files.
        """
        labels = model.schema.labels  # where the sets of labels were when the model was counted
        if isinstance(target, str) and labels is not None:
            reading.setdefault("target_delimiter", labels.delimiter)
        table = self.table(labels if target is None else target, **reading)
        sample = table.draw_sample(model.tally, MOST_ROWS if n is None else n)
        rows = sample.table(model.schema, n_threads(None))  # in one batch
        evaluation = evaluate_labels(model, next(iter(rows.source)), rows.labels.sets)
        notes = [] if sample.is_whole else [f"a sample of {sample.n_sampled:,} of {sample.n_rows:,} rows"]
        return replace(evaluation, weights=rows.labels.weights, notes=(*evaluation.notes, *notes))

    def first_rows(self, reading: Mapping[str, Any], new_facts: ColumnFacts) -> list[Sampled]:
        """Returns the first ``SAMPLE`` rows, from as many partitions as that takes, one entry per partition; cached in
        ``_first_rows`` after the column kinds they were read with. Raises an error if no partition has rows or their
        columns differ.

        ``reading`` has options for reading files. ``new_facts`` is what later rows have shown; if it says that a column
        of files is text, they are read again.
        """
        string_columns = {name: "string" for name, kind in new_facts.kinds.items() if kind == "string"}
        kinds = string_columns if self.engine.are_files else {}  # column → kind that files are read with
        if self._first_rows is not None and self._first_rows[0] == kinds:
            return self._first_rows[1]
        sample = list[Sampled]()
        n_rows = 0  # in the sample
        with closing(self.engine.first(TakeFirst(reading, kinds))) as parcels:
            for parcel in parcels:
                if parcel is not None:
                    sample.append(parcel.value)
                    n_rows += parcel.value.batch.n_rows
                if n_rows >= SAMPLE:
                    break
        if not sample:
            raise _no_rows_error()
        last_batch = sample[-1].batch  # which may have more rows than are needed
        sample[-1] = replace(sample[-1], batch=last_batch.slice(0, SAMPLE - n_rows + last_batch.n_rows))
        _check_alike(sample)
        self._first_rows = kinds, sample
        return sample

    def sum_of(self, work: PartWork, activity: str) -> Any:
        """Returns the sum of the values that ``work`` makes of all partitions; None if there is none. ``activity`` is
        what the progress line says is being done, such as "counting on".
        """
        total = add_up(completed.value for completed in self.watch_steps(self.engine.add_up_parts(work), activity))
        return None if total is None else total.value

    def watch_steps(self, steps: Steps[tuple[int, Any]], activity: str) -> Iterator[CompletedParts]:
        """Yields the steps of an engine while a progress line says ``activity``. ``steps`` are pairs of how many
        partitions are done and a value, such as a parcel. However this ends, nothing is left running.
        """
        n_partitions = self.engine.n_partitions
        count_tasks = self.engine.progress  # how many tasks are done; None if partitions are counted instead
        n_done_before = 0

        def report_steps() -> Iterator[CompletedParts]:
            """Yields each of the ``steps`` with how many partitions it has completed since the step before, and the
            share of all ``n_partitions`` done so far; None if their number is unknown.
            """
            nonlocal n_done_before
            for n_done, value in steps:
                yield CompletedParts(n_done - n_done_before, n_done / n_partitions if n_partitions else None, value)
                n_done_before = n_done

        with hear_interrupts(), closing(steps):
            yield from watch(
                report_steps(),
                activity,
                self.engine.name,
                "partitions" if count_tasks is None else "tasks",
                count_tasks,
            )


@dataclass(frozen=True, eq=False)
class PartitionedTable:
    """Labelled rows in partitions and how they are counted; the counterpart of ``Table`` for local rows."""

    partitions: Partitions
    settings: CountSettings
    sample_size: ClassVar[int] = MOST_ROWS  # sample size where rows are needed in memory

    @property
    def has_sets(self) -> bool:
        """Whether rows have sets of labels."""
        return self.count_plan().schema.labels is not None

    def count_plan(self, new_facts: ColumnFacts | None = None) -> CountPlan:
        """Returns the schema and settings for counting, inferred from the first rows of the first partitions.
        ``new_facts`` are facts about columns that other rows have shown, such as fractions among integers; None if
        there are none yet.
        """
        new_facts = ColumnFacts() if new_facts is None else new_facts
        with hear_interrupts():
            first_rows = self.partitions.first_rows(self.settings.reading, new_facts)
            return plan_count(first_rows, new_facts, self.settings, self.partitions.engine.are_files)

    def count_all(self) -> Tally:
        """Returns the tally of all partitions."""
        plan, counts = self.count(CountPart)
        assert counts.tally is not None
        tally = check_classes(counts.tally, counts.n_rows, plan.schema.target)
        names = self.partitions.engine.names  # of the partitions
        return tally if names is None else replace(tally, parts=frozenset(names))

    def count(self, work: Callable[[CountPlan], PartWork]) -> tuple[CountPlan, CountedRows]:
        """Counts all partitions with ``work(plan)`` and returns that plan, and the count with its tally. Gives the
        workers' warnings; raises an error if no partition has rows.

        If rows show wider columns than the first ones did (``ColumnFacts``), counting starts again from the beginning.
        """
        all_new_facts = ColumnFacts()
        for _ in range(MOST_RESTARTS):
            plan = self.count_plan(all_new_facts)
            counts: CountedRows | None = self.partitions.sum_of(work(plan), "counting on")
            if counts is None or not (counts.new_facts or counts.n_rows):
                raise _no_rows_error()
            if not counts.new_facts:
                for message in counts.warnings:
                    errors.warn(errors.BanburyWarning(message))
                return plan, counts
            all_new_facts |= counts.new_facts
            columns = errors.listed(map(repr, counts.new_facts.columns), 6)  # their names, as text
            noun = "columns" if len(counts.new_facts.columns) > 1 else "column"
            message = (
                f"{noun} {columns} of some partitions {'do' if noun == 'columns' else 'does'} not match the first "
            )
            errors.warn(f"{message}{SAMPLE:,} rows, so counting starts again")
        [column, *_] = all_new_facts.columns
        raise errors.BadValue(
            f"column {column!r} changes type between passes. Name its family in features=, or pass a schema.",
            column=column,
        )

    def draw_sample(self, tally: Tally, n: int, also: Sequence[str] = ()) -> RowSample:
        """Returns a sample of the rows that the tally counted, at most ``n`` distinct ones, selected by their hashes,
        in one pass, or in two if many rows are identical.

        ``also`` names uncounted columns to fetch with them; without any, rows come with their groups.
        """
        errors.check_whole("sample", n, 2)
        target = tally.schema.target if self.settings.target is None else self.settings.target
        # Rows are counted under the schema of the tally, so settings that infer one are the defaults.
        counting: dict[str, Any] = {"schema": tally.schema, "features": "auto", "missing": "skip", "trees": "many"}
        settings = replace(self.settings, target=target, **counting, groups=None if also else self.settings.groups)
        plan = replace(self, settings=settings).count_plan()
        if tally.schema.labels is not None and not isinstance(plan.settings.target, LabelTarget):
            raise errors.bad_setting("target", target, "sets of labels: lists, flags, or texts with target_delimiter=")
        n_rows = float(tally.n_rows)
        # Rows with higher hashes are not fetched: at first only as many as are likely to be enough, then all.
        for hash_limit in (ABOVE_ALL_HASHES * OVERSAMPLING * n / max(n_rows, 1.0), ABOVE_ALL_HASHES):
            work = SampleRows(plan, settings.groups, n, hash_limit, tuple(also))
            sample: RowSample | None = self.partitions.sum_of(work, "sampling on")
            if sample is not None and sample.is_complete(hash_limit):
                break
        if sample is None:
            raise _no_rows_error()
        return sample


@count_table.register
def _(table: PartitionedTable) -> Tally:
    """Returns the tally of all partitions."""
    return table.count_all()


@sample_rows.register
def _(table: PartitionedTable, tally: Tally, n: int) -> RowSample:
    """Returns a sample of the rows of all partitions: of those that the tally counted, at most ``n`` distinct ones."""
    return table.draw_sample(tally, n)


def _check_settings(target: Any, threads: int | None = None, **settings: Any) -> CountSettings:
    """Returns the settings for counting with ``target`` and ``threads`` (None: one); those in ``settings`` that are no
    fields of ``CountSettings`` are options for reading files, None where omitted. Raises an error for those that cannot
    apply to partitions.
    """
    field_names = {field.name for field in fields(CountSettings)}
    reading = {name: settings.pop(name) for name in settings.keys() - field_names}
    for name in ("weights", "groups"):
        _check_column(name, settings.get(name))
    reading = {name: value for name, value in reading.items() if value is not None}
    return CountSettings(_check_column("target", target), **settings, threads=n_threads(threads or 1), reading=reading)


def _check_column(setting: str, value: Any) -> Any:
    """Returns the value of a setting that must be a column name, several or None. Arrays are refused, since partitions
    have no order. ``setting`` is its name, for the error.
    """
    are_names = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    if value is None or are_names or isinstance(value, (str, int, LabelTarget)):
        return value
    raise errors.bad_setting(
        setting,
        type(value).__name__,
        "the name of a column when rows are in partitions; add it to the frame",
    )


def _check_alike(sample: Sequence[Sampled]) -> None:
    """Raises an error if partitions have different columns. ``sample`` has the first rows of each."""
    names = sample[0].batch.names
    for sampled in sample[1:]:
        if set(sampled.batch.names) != set(names):
            raise other_columns(sampled.batch.names, names, "a partition", "partition")


def _no_rows_error() -> errors.EmptyData:
    """Returns the error of partitions without any rows."""
    return errors.empty_data(None, "all partitions are empty")
