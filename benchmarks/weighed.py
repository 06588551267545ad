"""Weighed evidence beside gradient boosting: a fit and a prediction of Adult, 32,561 rows learned and 16,281 predicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier

import banbury as bb
from benchmarks import datasets
from benchmarks.measure import Figure, Peer, Setting, WrongAnswer, compare, say


def figures(setting: Setting) -> Iterator[Figure]:
    if not datasets.has_data("adult"):
        say(f"weighed: left out; {datasets.UNSET}")
        return
    train, test = datasets.adult_split()
    train = train.take(range(setting.rows(len(train))))
    boosted_train, boosted_test = datasets.as_categories(train.rows, test.rows)
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)

    def check(ours: Any, theirs: Any) -> str:
        accuracies = test.accuracy(ours.predict(test.rows)), test.accuracy(theirs.predict(boosted_test))
        if not setting.small and accuracies[0] < accuracies[1] - 0.01:
            raise WrongAnswer(f"weighed evidence is {accuracies[0]:.2%} accurate, boosting {accuracies[1]:.2%}")
        return f"{accuracies[0]:.2%} right, the peer {accuracies[1]:.2%}"

    data = f"Adult, {len(train):,} rows, 14 columns, 2 classes"
    peer = Peer("HistGradientBoostingClassifier", lambda: boosting.fit(boosted_train, train.labels))
    ours = bb.EvidenceClassifier()
    yield compare(("weighed", "fit", data), lambda: ours.fit(train.rows, train.labels), check, setting, peer)
    yield compare(
        ("weighed", "predict", f"Adult, {len(test):,} rows"),
        lambda: ours.predict(test.rows),
        lambda *_: "",
        setting,
        Peer("HistGradientBoostingClassifier", lambda: boosting.predict(boosted_test)),
    )
