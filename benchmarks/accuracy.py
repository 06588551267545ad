"""How right it is: `python -m benchmarks.accuracy [name ...]` sets weighed evidence beside learners that people use.

Adult comes with its own split; of the others each row is tested once, in ten stratified folds (digits and mushroom: five) of
shuffled rows. Everything that a learner chooses, it chooses within the rows it learns from. A cell has the share of right
answers and the log loss; times are of all fits together, and good for their order only. Plain is NaiveBayesClassifier, trees
the same with a temperature, W weights alone, WP with pairs, weighed EvidenceClassifier as it comes.

Texts (`newsgroups`, `lectures`, `sms`, `reviews`, `spamassassin`, `webkb`) have learners of their own. Newsgroups are split by
date, and `newsgroups-20` to `newsgroups-1000` learn from so few of the posts (`--learners plain,weighed`: peers want more);
`lectures` is the older collection without the headers that name the group, a third of it tested; WebKB is tested university
by university. Logistic regression and support vectors choose C, and whether TF-IDF is damped, on the training rows; NBSVM is
Wang and Manning's, words and pairs. Learners of other libraries (benchmarks/peers.py) stand beside them where they are
installed: `pip install --group peers`.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn import datasets as published
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import banbury as bb
from benchmarks import datasets, machine, peers
from benchmarks.measure import say
from benchmarks.tuned import categories, framed

SEED = 0
Split = tuple[Any, Any, Any, Any]  # rows and labels to learn from, and to test on
LEARNERS: dict[str, Callable[[Any], Any]] = {
    "Gaussian": lambda rows: bb.NaiveBayesClassifier(features=gaussian(rows)),
    "plain": lambda rows: bb.NaiveBayesClassifier(),
    "trees": lambda rows: bb.NaiveBayesClassifier(calibrate="temperature"),
    "W": lambda rows: bb.EvidenceClassifier(pairs=False, correct=False),
    "WP": lambda rows: bb.EvidenceClassifier(correct=False),
    "weighed": lambda rows: bb.EvidenceClassifier(),
    "logistic regression": lambda rows: logistic_regression(rows),
    "boosting": lambda rows: HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=SEED),
    **peers.TABLES,
}


def gaussian(rows: Any) -> Any:
    """Numbers as Gaussian columns, whatever they look like; all else as it comes."""
    return {name: "gaussian" for name in rows.select_dtypes("number") if rows[name].nunique() > 1} or "auto"


def logistic_regression(rows: Any) -> Any:
    numeric = list(rows.select_dtypes("number"))
    words = [name for name in rows if name not in numeric]
    coded = make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(handle_unknown="ignore"))
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return make_pipeline(make_column_transformer((scaled, numeric), (coded, words)), LogisticRegression(max_iter=2000))


TEXT_LEARNERS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda rows: bb.NaiveBayesClassifier(),
    "weighed": lambda rows: bb.EvidenceClassifier(),
    "logistic regression": lambda rows: searched(LogisticRegression(max_iter=300), "neg_log_loss"),
    "support vectors": lambda rows: searched(LinearSVC(), "accuracy"),
    "NBSVM": lambda rows: NBSVM(),
    **peers.TEXTS,
}


def searched(learner: Any, scoring: str) -> Any:
    """TF-IDF and a learner, their settings chosen by three folds."""
    words = TfidfVectorizer()
    grid = {
        "tfidfvectorizer__sublinear_tf": [False, True],
        f"{type(learner).__name__.lower()}__C": [1.0, 10.0, 100.0] if scoring == "neg_log_loss" else [0.1, 1.0],
    }
    return GridSearchCV(make_pipeline(words, learner), grid, scoring=scoring, cv=3)


class NBSVM:
    """Support vectors over words and pairs that are there, times their log-count ratios; interpolated with the mean weight."""

    def fit(self, texts: Sequence[str], labels: Any) -> NBSVM:
        self.words = CountVectorizer(binary=True, ngram_range=(1, 2))
        counts, self.classes_ = self.words.fit_transform(texts), np.unique(labels)
        self.weights, self.intercepts = [], []
        for name in self.classes_[: 1 if len(self.classes_) == 2 else None]:
            own = labels == (self.classes_[1] if len(self.classes_) == 2 else name)
            p, q = (np.asarray(counts[rows].sum(axis=0)).ravel() + 1.0 for rows in (own, ~own))
            ratio = np.log(p / p.sum()) - np.log(q / q.sum())
            machine = LinearSVC(C=1.0).fit(counts.multiply(ratio).tocsr(), own)
            mean = np.abs(machine.coef_).mean()
            self.weights.append(ratio * (0.75 * mean + 0.25 * machine.coef_.ravel()))
            self.intercepts.append(0.25 * float(machine.intercept_[0]))
        return self

    def predict(self, texts: Sequence[str]) -> Any:
        scores = self.words.transform(texts) @ np.stack(self.weights, axis=1) + self.intercepts
        return self.classes_[scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)]


def adult() -> Iterator[Split]:
    with datasets.adult() as (learned, held, _):
        train, test = (framed(str(path)) for path in (learned, held))
    yield train.rows, np.asarray(train.labels), test.rows, np.asarray(test.labels)


def folds(rows: Any, labels: Any, n: int, seed: int = SEED) -> Iterator[Split]:
    labels = np.asarray(labels)
    for train, test in StratifiedKFold(n, shuffle=True, random_state=seed).split(rows, labels):
        yield rows.iloc[train], labels[train], rows.iloc[test], labels[test]


def votes() -> Iterator[Split]:
    table = datasets.frame("house-votes-84", "house-votes-84.data", datasets.HOUSE_VOTES)
    for seed in range(5):
        yield from folds(table.drop(columns="party"), table["party"], 10, seed)


def published_table(load: Callable[..., Any], n: int = 10) -> Callable[[], Iterator[Split]]:
    def splits() -> Iterator[Split]:
        bunch = load(as_frame=True)
        return folds(bunch.data, bunch.target, n)

    return splits


def uci(name: str, file: str, names: list[str], target: str, n: int = 10) -> Callable[[], Iterator[Split]]:
    def splits() -> Iterator[Split]:
        table = datasets.frame(name, file, names)
        return folds(table.drop(columns=target), table[target], n)

    return splits


def miles() -> Iterator[Split]:
    """Where a car was made, from all else that is known of it."""
    import pandas as pd

    with datasets.unpacked("auto-mpg") as folder:
        names = ["mpg", "cylinders", "displacement", "horsepower", "weight", "acceleration", "year", "origin", "name"]
        file = next(path for path in sorted(folder.iterdir()) if path.suffix == ".data" or "mpg" in path.name)
        table = pd.read_csv(file, sep=r"\s+", names=names, na_values=["?"])
    return folds(table.drop(columns=["origin", "name"]), table["origin"], 10)


# Texts ----------------------------------------------------------------------------------------------------------------


def newsgroups() -> Iterator[Split]:
    with datasets.unpacked("20news-bydate") as folder:
        parts = [datasets.texts(folder / f"20news-bydate-{part}") for part in ("train", "test")]
    (learned, labels), (tested, truth) = parts
    yield learned, np.asarray(labels), tested, np.asarray(truth)


def few(n: int) -> Callable[[], Iterator[Split]]:
    """Newsgroups by date, of which so many posts have a label; of 20 one of each group. Five draws."""

    def splits() -> Iterator[Split]:
        learned, labels, tested, truth = next(newsgroups())
        groups = np.unique(labels)
        for seed in range(5):
            rng = np.random.default_rng(seed)
            each = [rng.choice(np.flatnonzero(labels == group)) for group in groups]
            at = each if n == len(groups) else rng.permutation(len(labels))[:n]
            yield [learned[i] for i in at], labels[at], tested, truth

    return splits


NAMING = re.compile(r"^(newsgroups|path|xref|followup-to):.*(\n[ \t].*)*\n", re.IGNORECASE | re.MULTILINE)


def lectures() -> Iterator[Split]:
    with datasets.unpacked("20_newsgroups") as folder:
        texts, labels = datasets.texts(next(folder.rglob("alt.atheism")).parent)
    heads = [text.partition("\n\n") for text in texts]
    texts = [NAMING.sub("", f"{head}\n") + "\n" + body for head, _, body in heads]
    yield from split_texts(
        texts, labels, [next(iter(StratifiedKFold(3, shuffle=True, random_state=SEED).split(texts, labels)))]
    )


def split_texts(texts: Sequence[str], labels: Sequence[str], splits: Iterable[tuple[Any, Any]]) -> Iterator[Split]:
    every, truth = np.array(texts, dtype=object), np.asarray(labels)
    for train, test in splits:
        yield every[train].tolist(), truth[train], every[test].tolist(), truth[test]


def text_folds(texts: Sequence[str], labels: Sequence[str], n: int) -> Iterator[Split]:
    return split_texts(texts, labels, StratifiedKFold(n, shuffle=True, random_state=SEED).split(texts, labels))


def sms() -> Iterator[Split]:
    with datasets.unpacked("sms-spam") as folder:
        lines = (folder / "SMSSpamCollection").read_text(encoding="utf-8").split("\n")
    pairs = [line.split("\t", 1) for line in lines if line]
    return text_folds([text for _, text in pairs], [label for label, _ in pairs], 10)


def reviews() -> Iterator[Split]:
    with datasets.unpacked("review-polarity") as folder:
        return text_folds(*datasets.texts(next(folder.rglob("txt_sentoken"))), 10)


def spamassassin() -> Iterator[Split]:
    with datasets.unpacked("spamassassin") as folder:
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and "cmds" not in path.name)
        kinds = ["ham" if "ham" in str(path.relative_to(folder)) else "spam" for path in paths]
        return text_folds([datasets.decoded(path.read_bytes()) for path in paths], kinds, 5)


def webkb() -> Iterator[Split]:
    """Pages of students, teachers, courses and projects, each university told by the others."""
    with datasets.unpacked("webkb") as folder:
        root = next(folder.rglob("student")).parent
        paths = sorted(
            path for name in ("student", "faculty", "course", "project") for path in (root / name).rglob("*")
        )
        paths = [path for path in paths if path.is_file()]
        texts = [datasets.decoded(path.read_bytes()) for path in paths]
        places = [path.relative_to(root).parts for path in paths]
    labels, groups = [place[0] for place in places], [place[1] for place in places]
    return split_texts(texts, labels, LeaveOneGroupOut().split(texts, labels, groups))


FEW = {f"newsgroups-{n}": few(n) for n in (20, 100, 300, 1000)}  # if asked for: peers want more
TEXTS = {
    "newsgroups": newsgroups,
    "lectures": lectures,
    "sms": sms,
    "reviews": reviews,
    "spamassassin": spamassassin,
    "webkb": webkb,
    **FEW,
}
DATA: dict[str, Callable[[], Iterator[Split]]] = {
    "adult": adult,
    "car": uci("car", "car.data", datasets.CAR, "class"),
    "mushroom": uci("mushroom", "agaricus-lepiota.data", datasets.MUSHROOM, "class", 5),
    "house-votes": votes,
    "auto-mpg": miles,
    "iris": published_table(published.load_iris),
    "wine": published_table(published.load_wine),
    "wdbc": published_table(published.load_breast_cancer),
    "digits": published_table(published.load_digits, 5),
    **TEXTS,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    print(f"{machine.description()}; {machine.versions()}")
    for every, names in ((LEARNERS, [n for n in DATA if n not in TEXTS]), (TEXT_LEARNERS, list(TEXTS))):
        names = [name for name in names if name in (options.names or DATA.keys() - FEW)]
        learners = [name for name in every if name in (options.learners or ",".join(every)).split(",")]
        if names:
            print("", line(["data", *learners]), line(["---"] * (len(learners) + 1)), sep="\n")
        for name in names:
            print(line([name, *(measured(name, learner, every) for learner in learners)]), flush=True)
    return 0


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def measured(name: str, learner: str, learners: dict[str, Callable[[Any], Any]]) -> str:
    say(f"accuracy: {name}, {learner}")
    right, losses, judged, took = [], [], 0, 0.0
    for rows, labels, tested, truth in DATA[name]():
        if learner == "boosting":
            rows, tested = categories(rows, tested)
        model = learners[learner](rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            model.fit(rows, labels)
            took += time.perf_counter() - start
            if not hasattr(model, "predict_proba"):
                right.append(model.predict(tested) == truth)
                continue
            posterior = model.predict_proba(tested)
        right.append(model.classes_[posterior.argmax(axis=1)] == truth)
        if set(truth) <= set(model.classes_):  # of few posts a group may have none
            losses.append(len(truth) * log_loss(truth, posterior, labels=model.classes_))
            judged += len(truth)
    every = np.concatenate(right)
    loss = f"{sum(losses) / judged:.4f}" if losses else "—"
    return f"{every.mean():.4f} / {loss} ({took:.1f} s)"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    made.add_argument("names", nargs="*", type=datasets.one_of(DATA), metavar="name", help=", ".join(DATA))
    made.add_argument("--learners", help="only these, with commas between them")
    return made


if __name__ == "__main__":
    raise SystemExit(main())
