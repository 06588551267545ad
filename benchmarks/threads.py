"""Every task above on one thread and on all: what the second core brings, and that it changes no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB

import banbury as bb
from benchmarks import bernoulli, categorical, gaussian, mixed
from benchmarks.measure import Figure, Setting, Task, WrongAnswer, in_turns, limited, say
from benchmarks.yardstick import loops

AT_LEAST = 1.75  # on two threads


def tasks(setting: Setting) -> Iterator[Figure]:
    if setting.threads == 1:
        say("threads: nothing to compare on one thread")
        return
    yield from machine_itself(setting)
    yield scaled(ten_folds(setting), setting)
    for module in (gaussian, categorical, bernoulli, mixed):
        for task in module.tasks(setting):
            if task.name in ("fit", "predict"):
                yield scaled(task, setting)


def ten_folds(setting: Setting) -> Task:
    X, y = gaussian.data(setting.rows(gaussian.ROWS))
    what = f"{len(y):,} × {gaussian.COLUMNS} float64, {gaussian.CLASSES} classes"
    run = lambda: bb.cross_validate(X, y, folds=10, features="gaussian").posteriors  # noqa: E731
    return Task("gaussian", "10 folds", what, run, lambda _: "")


def machine_itself(setting: Setting) -> Iterator[Figure]:
    """What all threads bring a C loop that computes and hardly reads: 2× on two idle cores, less beside neighbours."""
    if loops() is None:
        return
    say("threads: a C loop, to see what the machine gives")
    rows = setting.rows(gaussian.ROWS // 10)
    X, y = gaussian.data(rows)
    model = GaussianNB(var_smoothing=0.0).fit(X, y)
    many, one = (gaussian.c_loops(X, y, threads)[1] for threads in (setting.threads, 1))
    times, answers = in_turns({"all": lambda: many(model), "one": lambda: one(model)}, setting)
    if not np.array_equal(answers["all"], answers["one"]):
        raise WrongAnswer("the C loop answers differently on several threads")
    what = f"{rows:,} × {gaussian.COLUMNS} float64"
    name = "a C loop, for comparison"
    yield Figure("threads", name, what, times["all"], times["one"], "itself on 1 thread", "bit for bit")


def scaled(task: Task, setting: Setting) -> Figure:
    say(f"threads: {task.benchmark} {task.name}, {task.data}")
    times, answers = in_turns({"all": on(setting.threads, task.ours), "one": on(1, task.ours)}, setting)
    many, one = (comparable(answers[name]) for name in ("all", "one"))
    if not all(np.array_equal(a, b) for a, b in zip(many, one, strict=True)):
        raise WrongAnswer(f"{task.benchmark} {task.name}: {setting.threads} threads and one thread answer differently")
    aim = None if setting.small or setting.threads != 2 else AT_LEAST
    name = f"{task.benchmark} {task.name}"
    return Figure(
        "threads", name, task.data, times["all"], times["one"], "ours on 1 thread", "bit for bit", at_least=aim
    )


def on(threads: int, run: Callable[[], Any]) -> Callable[[], Any]:
    def limited_run() -> Any:
        with limited(threads):
            return run()

    return limited_run


def comparable(answer: Any) -> list[Any]:
    """A model's or a classifier's sums, or the answer itself."""
    if isinstance(answer, np.ndarray):
        return [answer]
    tally = getattr(answer, "model_", answer).tally
    return [tally.digest()]
