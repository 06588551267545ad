"""Work: the verbs on data that live elsewhere, whatever engine they live on."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from banbury import errors
from banbury.distributions.scales import SAMPLE
from banbury.engines.answers import PartitionAnswers, check_question
from banbury.engines.counting import Asked, CountPart, Sampled, Settled, TakeFirst, settled_by
from banbury.engines.engine import Engine, PartWork, Steps
from banbury.engines.interrupts import heeded
from banbury.engines.parcels import Adding, CountedPartitions, Wider, in_chunks, opened, repeat_warnings, total
from banbury.engines.sampling import SampleRows, add_samples, sample_in
from banbury.engines.validation import CountFolds, Evaluate, Folded, ScoreFolds
from banbury.files import to_bytes
from banbury.label_sets import LabelTarget
from banbury.labels import LabelEvaluation, LabelModel
from banbury.labels import evaluate as evaluate_labels
from banbury.labels.validation import HeldRows
from banbury.naive_bayes import Model, met, same_rows
from banbury.progress import watched
from banbury.quality.recipes import Plain
from banbury.quality.results import OWN_ROWS, SummedEvaluation, SummedValidation
from banbury.readers import n_threads
from banbury.readers.batches import other_columns
from banbury.rows.folds import Dealing
from banbury.rows.labelled import MemoryRows, rows_of_sample
from banbury.tally import Tally, complete
from banbury.weighing import MOST_ROWS, RowSample
from banbury.weighing.sampling import LARGEST

COUNTED_BY = ("schema", "features", "missing", "trees")
MORE_THAN_WANTED = 4  # times as many rows of a sample are brought, in case some are alike
MOST_RESTARTS = 20  # each time, some column shows more than in all passes before


@dataclass
class Done:
    """Partitions that are done, as progress tells of them."""

    n_rows: int
    share: float | None
    value: Any


class Work:
    """The verbs, on the partitions of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._first: tuple[dict[str, str], list[Sampled]] | None = None

    def count(self, target: Any, id: Any = None, **settings: Any) -> Tally:
        """``bb.count`` of all partitions; ``id`` is a column that is no feature."""
        asked = replace(_asked(target, **settings), id=_column("id", id))
        settled, counted = self._widened(asked, CountPart)
        assert counted.tally is not None
        tally = complete(counted.tally, counted.n_rows, settled.schema.target)
        return tally if self.engine.names is None else replace(tally, parts=frozenset(self.engine.names))

    def validated(
        self, target: Any, dealing: Dealing, recipes: Sequence[Plain], **counting: Any
    ) -> tuple[Tally, list[SummedValidation]]:
        """The tally of all partitions and the validation of each recipe, in two passes."""
        asked = replace(_asked(target, **counting), id=dealing.id)
        for recipe in recipes:
            recipe.check()
        settled, counted = self._widened(asked, lambda settled: CountFolds(settled, dealing))
        assert counted.tally is not None
        complete(counted.tally, counted.n_rows, settled.schema.target)
        folded = Folded.of(counted.tally, counted.tally.skipped)
        found = self._scored(ScoreFolds.of(settled, dealing, folded, recipes))
        found.told.warn(recipes[0].how)
        if not found.outcomes[0].weight > 0:
            raise errors.tested_nothing()
        classes, weighted = folded.groups.classes, settled.weights is not None
        what = f"{len(folded.used)}-fold cross-validation of {Plain.name}"
        validations = [SummedValidation(classes, outcomes, weighted, what) for outcomes in found.outcomes]
        return folded.groups.total, validations

    def held(self, target: Any, dealing: Dealing, n: int | None, **counting: Any) -> MemoryRows:
        """A sample of rows, to be dealt and validated here by models that count all the others as well."""
        tally = self.count(target, id=dealing.id, **counting)
        sample = self._countable(tally, target, n, counting, () if dealing.id is None else (dealing.id,))
        return rows_of_sample(sample, tally, n_threads(counting["threads"]), dealing)

    def has_sets(self, target: Any, **counting: Any) -> bool:
        """Whether the target is one of sets of labels."""
        return self.settled(_asked(target, **counting), Wider()).schema.labels is not None

    def held_sets(self, target: Any, n: int | None, **counting: Any) -> HeldRows:
        """A sample of rows with sets of labels, and the tally of all others."""
        tally = self.count(target, **counting)
        sample = self._countable(tally, target, n, counting)
        rows = HeldRows.of(sample.table(tally.schema, n_threads(counting["threads"])))
        if sample.is_whole:
            return rows
        return replace(rows, others=replace(tally, skipped=0, parts=frozenset()) - rows.count())

    def _countable(
        self, tally: Tally, target: Any, n: int | None, counting: Mapping[str, Any], also: tuple[str, ...] = ()
    ) -> RowSample:
        """A sample whose rows can be subtracted from those of all to the last bit; raises otherwise."""
        own = {name: value for name, value in counting.items() if name not in COUNTED_BY}
        sample = self.sampled(tally, target, MOST_ROWS if n is None else n, also=also, **own)
        wanted = f"{sample.n_sampled:,} at least: so many rows are alike, and have weights"
        errors.require(not sample.has_too_many_alike or sample.weights is None, "sample", sample.n, wanted)
        return sample

    def evaluated_sets(self, model: LabelModel, target: Any, n: int | None, **reading: Any) -> LabelEvaluation:
        """``bb.evaluate`` of a sample of rows with sets of labels."""
        target, given = model.schema.labels if target is None else target, {"weights": None, "threads": None, **reading}
        if isinstance(target, str) and model.schema.labels is not None:
            given.setdefault("target_delimiter", model.schema.labels.delimiter)
        sample = self.sampled(model.tally, target, MOST_ROWS if n is None else n, **given)
        table = sample.table(model.schema, n_threads(None))
        found = evaluate_labels(model, next(iter(table.source)), table.labels.sets)
        notes = [] if sample.is_whole else [f"a sample of {sample.n_sampled:,} of {sample.n_rows:,} rows"]
        return replace(found, weights=table.labels.weights, notes=(*found.notes, *notes))

    def sampled(
        self, tally: Tally, target: Any, n: int, *, groups: Any = None, also: tuple[str, ...] = (), **counting: Any
    ) -> RowSample:
        """A sample of the rows that a tally counted, in one pass; of rows that are much alike, in two."""
        errors.check_whole("sample", n, 2)
        given = {"schema": tally.schema, "features": "auto", "missing": "skip", **counting}
        asked = _asked(tally.schema.target if target is None else target, **given)
        asked = replace(asked, id=_column("groups", groups))
        settled = self.settled(asked, Wider())
        if tally.schema.labels is not None and not isinstance(settled.target, LabelTarget):
            raise errors.bad_setting("target", target, "sets of labels: lists, flags, or texts with target_delimiter=")
        n_rows = float(tally.n_rows)
        for below in (LARGEST * MORE_THAN_WANTED * n / max(n_rows, 1.0), LARGEST):
            added = self.engine.added(SampleRows(settled, asked.id, n, below, also), add_samples)
            found = [sample_in(done.value) for done in self._watched(added, "sampling on") if done.value]
            sample = RowSample.total(found) if found else None
            if sample is not None and sample.is_complete(below):
                break
        if sample is None:
            raise errors.empty_data(None, "all partitions are empty")
        return sample

    def _scored(self, work: PartWork) -> Any:
        """The sum of what work makes of all partitions, each once."""
        done, found = set[int](), None

        def steps() -> Steps[tuple[int, Any]]:
            with closing(self.engine.each(work)) as each:
                for partition, parcel in each:
                    if partition not in done:
                        done.add(partition)
                        yield len(done), pickle.loads(parcel[0])

        for value in (step.value for step in self._watched(steps(), "scoring on") if step.value is not None):
            found = value if found is None else found + value
        if found is None:
            raise errors.empty_data(None, "all partitions are empty")
        return found

    def evaluate(self, model: Any, target: str | None, **reading: Any) -> SummedEvaluation:
        """``bb.evaluate`` of all partitions."""
        target = model.target if target is None else target
        wanted = "the name of the column that has the true classes, of a Model, where rows live elsewhere"
        errors.require(target is not None and isinstance(model, Model), "target", target, wanted)
        found = self._scored(Evaluate(tuple(in_chunks(to_bytes(model))), target, reading))
        if found.outcomes is None:
            lacking = errors.no_target(found.n_rows, target)
            raise lacking if found.n_rows else errors.empty_data(None, "all partitions are empty")
        classes, notes = met(model.classes, found.classes)
        outcomes = found.outcomes.among(found.classes, classes)
        counting = {"schema": model.schema, "features": "auto", "weights": None, "missing": "skip", "threads": None}
        as_many = model.n_rows == outcomes.n_rows
        counted = same_rows(lambda: as_many and self.count(target, **counting, **reading) == model.tally)
        return SummedEvaluation(classes, outcomes, notes=(OWN_ROWS,) if counted else notes)

    def answered(self, model: Any, question: str, **settings: Any) -> Any:
        """What a model says of all rows: a frame of the same kind, with the answers as columns beside its own, lazily."""
        check_question(model, question)
        said = {name: value for name, value in settings.items() if value is not None}
        return self.engine.answered(PartitionAnswers(model, question, said, tuple(self.engine.columns)))

    def _widened(self, asked: Asked, work: Callable[[Settled], PartWork]) -> tuple[Settled, CountedPartitions]:
        """What is counted, and the count; again from the start where partitions show more than the first rows did."""
        wider = Wider()
        for _ in range(MOST_RESTARTS):
            settled = self.settled(asked, wider)
            counted = self._summed(work(settled))
            if not counted.wider:
                repeat_warnings(counted.warnings)
                if not counted.n_rows:
                    raise errors.empty_data(None, "all partitions are empty")
                return settled, counted
            wider |= counted.wider
            columns = errors.listed(map(repr, counted.wider.columns), 6)
            several = "columns" if len(counted.wider.columns) > 1 else "column"
            text = f"{several} {columns} of some partitions {'do' if several == 'columns' else 'does'} not stay what the first "
            errors.warn(f"{text}{SAMPLE:,} rows were: counting again from the start")
        [column, *_] = wider.columns
        text = f"column {column!r} is of another kind in each pass. Give its family in features=, or a schema."
        raise errors.BadValue(text, column=column)

    def settled(self, asked: Asked, wider: Wider) -> Settled:
        """What is counted, by the first rows in the order of partitions: empty and tiny ones are read through."""
        with heeded():
            return settled_by(self._sample(asked, wider), wider, asked, self.engine.are_files)

    def _sample(self, asked: Asked, wider: Wider) -> list[Sampled]:
        """The first rows of the first partitions; read again only where columns of files are read as something else."""
        read_as = {name: "string" for name, kind in wider.kinds.items() if kind == "string"}
        kinds = read_as if self.engine.are_files else {}
        if self._first is not None and self._first[0] == kinds:
            return self._first[1]
        reading = {name: value for name, value in asked.reading.items() if name != "target_delimiter"}
        sample, n_rows = list[Sampled](), 0
        with closing(self.engine.first(TakeFirst(reading, kinds))) as taken:
            for parcel in taken:
                if parcel:
                    sample.append(pickle.loads(parcel[0]))
                    n_rows += sample[-1].batch.n_rows
                if n_rows >= SAMPLE:
                    break
        if not sample:
            raise errors.empty_data(None, "all partitions are empty")
        sample[-1] = replace(sample[-1], batch=sample[-1].batch.cut(0, SAMPLE - n_rows + sample[-1].batch.n_rows))
        _check_alike(sample)
        self._first = kinds, sample
        return sample

    def _summed(self, work: PartWork) -> CountedPartitions:
        """All partitions, each once."""
        parcels = (done.value for done in self._watched(self.engine.added(work, Adding())) if done.value is not None)
        return total(map(opened, parcels))

    def _watched(self, steps: Steps[tuple[int, Any]], doing: str = "counting on") -> Iterator[Done]:
        """The steps, while a line says how far they are. However this ends, nothing is left running."""
        every, ask, before = self.engine.n_partitions, self.engine.progress, 0

        def told() -> Iterator[Done]:
            nonlocal before
            for n_done, value in steps:
                more, before = n_done - before, n_done
                yield Done(more, n_done / every if every else None, value)

        with heeded(), closing(steps):
            yield from watched(told(), doing, self.engine.name, "partitions" if ask is None else "tasks", ask)


def _asked(target: Any, *, schema: Any, features: Any, weights: Any, missing: Any, threads: Any, **rest: Any) -> Asked:
    """What a user asked for, checked as far as that can be done before any row is seen."""
    classes, trees = rest.pop("classes", None), rest.pop("trees", "many")
    said = {name: value for name, value in rest.items() if value is not None}
    columns = _column("target", target), _column("weights", weights)
    threads = n_threads(threads or 1)
    return Asked(columns[0], schema, features, columns[1], classes, missing, threads, said, trees=trees)


def _column(setting: str, given: Any) -> Any:
    """What is named by a column, or not given; arrays have rows in an order, and partitions have none."""
    names = isinstance(given, (list, tuple)) and all(isinstance(name, str) for name in given)
    if given is None or names or isinstance(given, (str, int, LabelTarget)):
        return given
    wanted = "the name of a column where rows live elsewhere: put it beside the others in the frame"
    raise errors.bad_setting(setting, type(given).__name__, wanted)


def _check_alike(sample: Sequence[Sampled]) -> None:
    names = sample[0].batch.names
    for each in sample[1:]:
        if set(each.batch.names) != set(names):
            raise other_columns(each.batch.names, names, "a partition", "partition")
