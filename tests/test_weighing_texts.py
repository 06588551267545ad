"""Weighed texts: words are counted, left out and corrected as slow twins do it, and depend on what texts hold alone."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banbury as bb
from banbury import errors, files
from banbury.families.bags.lexicon import Lexicon
from banbury.files.weighing import read_setting
from banbury.reading import read
from banbury.weighing.texts import SETTINGS, WordEvidence, one_label_each
from test_weighing import check_refusals

WORDS = [f"w{k}" for k in range(60)]


def corpus(n: int = 240, n_classes: int = 3, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts of which each class prefers some words."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    shares = rng.dirichlet(np.full(len(WORDS), 0.4), n_classes) + 0.01
    shares /= shares.sum(axis=1, keepdims=True)
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 30), p=shares[label])) for label in labels]
    return texts, [f"class {label}" for label in labels]


def frame(columns: dict[str, Any]) -> Any:
    import pandas as pd

    return pd.DataFrame(columns)


@pytest.fixture(params=[(2, SETTINGS), (3, SETTINGS), (3, SETTINGS[-1:])])
def fitted(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], list[str], bb.EvidenceClassifier]:
    """Texts of two and three classes, and a classifier of them; also one that takes in its texts' own words."""
    n_classes, settings = request.param
    texts, labels = corpus(n_classes=n_classes)
    monkeypatch.setattr("banbury.weighing.texts.SETTINGS", settings)
    return texts, labels, bb.EvidenceClassifier(threads=1).fit(texts, labels)


# Slow twins -----------------------------------------------------------------------------------------------------------


def slow_left_out(texts: list[str], labels: list[str], text: int, often: bool, power: float) -> list[float]:
    """What the words of a text say of each class when it is not counted; how rare words are stays that of all texts."""
    classes = sorted(set(labels))
    bags = [Counter(each.split()) for each in texts]
    having = Counter(word for bag in bags for word in bag)
    rarity = {word: (math.log((1 + len(texts)) / (1 + n)) + 1) ** power for word, n in having.items()}
    others = [(bag, label) for k, (bag, label) in enumerate(zip(bags, labels, strict=True)) if k != text]
    left = Counter(word for bag, _ in others for word in bag)
    values = {w: (math.sqrt(n) if often else 1.0) * rarity[w] for w, n in bags[text].items() if left[w]}
    length = math.sqrt(sum(x * x for x in values.values())) or 1.0
    says = []
    for name in classes:
        own = Counter(word for bag, label in others if label == name for word in bag)
        rest = Counter(word for bag, label in others if label != name for word in bag)
        total, total_rest = sum(own.values()) + len(left), sum(rest.values()) + len(left)
        each = (
            x / length * (math.log((own[w] + 1) / total) - math.log((rest[w] + 1) / total_rest))
            for w, x in values.items()
        )
        says.append(sum(each) / (2 if len(classes) == 2 else 1))
    return says


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("setting", SETTINGS[:3])
def test_a_text_that_is_left_out_was_never_counted(n_classes: int, setting: Any) -> None:
    texts, labels = corpus(60, n_classes, seed=4)
    texts[3] = texts[3] + " seldom seldom"
    tally = bb.count({"text": texts}, labels, features={"text": bb.Text()})
    lexicon = Lexicon.of(tally.schema["text"], tally.of("text"))
    batch = next(iter(read({"text": texts})))
    bags = lexicon.bags(batch, tally.of("text"), 1)
    evidence = WordEvidence.of_classes(lexicon.documents(), lexicon.used.texts)
    numbers = np.array([tally.classes.index(label) for label in labels], dtype=np.int32)
    assert np.array_equal(bags.count(one_label_each(numbers), np.ones(60), n_classes), lexicon.documents())
    left_out = evidence.leave_each_out(bags, setting, one_label_each(numbers), 1)
    for text in range(0, 60, 7):
        slow = slow_left_out(texts, labels, text, setting.use_counts, setting.idf_power)
        np.testing.assert_allclose(left_out[text], slow, rtol=2e-5, atol=2e-5)


# What must not matter -------------------------------------------------------------------------------------------------


def test_neither_the_order_of_texts_nor_the_threads_matter(fitted: Any) -> None:
    texts, labels, clf = fitted
    order = np.random.default_rng(1).permutation(len(texts))
    other = bb.EvidenceClassifier(threads=3).fit([texts[i] for i in order], [labels[i] for i in order])
    assert np.array_equal(clf.predict_proba(texts), other.predict_proba(texts))


def test_a_weight_of_two_is_the_text_twice_and_of_none_no_text(fitted: Any) -> None:
    texts, labels, _ = fitted
    weights = np.random.default_rng(2).integers(0, 3, len(texts))
    weighed = bb.EvidenceClassifier().fit(texts, labels, sample_weight=weights)
    repeated = [k for k, n in enumerate(weights.tolist()) for _ in range(n)]
    twice = bb.EvidenceClassifier().fit([texts[k] for k in repeated], [labels[k] for k in repeated])
    assert np.array_equal(weighed.predict_proba(texts), twice.predict_proba(texts))


# Answers --------------------------------------------------------------------------------------------------------------


def test_words_add_up_to_the_log_odds_and_are_shaded(fitted: Any) -> None:
    texts, _, clf = fitted
    for text in [*texts[:6], "", "never seen", "w1 w1 unknown w2"]:
        told = clf.explain(text)
        posterior = dict(zip(clf.model_.classes, clf.model_.log_posterior([text])[0], strict=True))
        assert told.log_odds == pytest.approx(posterior[told.winner] - posterior[told.against], abs=1e-9)
        assert told.prior + sum(each.decibans for each in told.evidence) == pytest.approx(told.decibans, abs=1e-9)
    assert told.unknown == ("unknown",)
    (found,) = [each for each in told.evidence if each.value == "w1"]
    assert found.times == 2 and found.positions == ((0, 2), (3, 5))


def test_corrections_lose_less_than_counts_and_unions_than_texts() -> None:
    texts, labels = corpus(600, seed=7)
    rng = np.random.default_rng(3)
    hint = [label if rng.random() < 0.5 else f"class {rng.integers(0, 3)}" for label in labels]
    subject = [" ".join(each.split()[:2]) for each in corpus(600, seed=7)[0]]
    numbers = rng.normal(size=600)
    mixed = frame({"body": texts, "subject": subject, "hint": hint, "number": numbers})
    half, rest = slice(0, 400), slice(400, 600)

    def loss(clf: Any, rows: Any) -> float:
        clf.fit(rows[half], labels[half])
        answers = clf.predict_proba(rows[rest])
        own = [clf.classes_.tolist().index(label) for label in labels[rest]]
        return float(-np.log(answers[np.arange(200), own]).mean())

    often = [
        " ".join(each.replace("w", twin) for twin in "wvutsrq") for each in texts
    ]  # what counting hears seven times
    assert loss(bb.EvidenceClassifier(), often) < loss(bb.NaiveBayesClassifier(), often)
    together = bb.EvidenceClassifier(features={"body": bb.Text(), "subject": bb.Text()})
    assert loss(together, mixed) < loss(bb.EvidenceClassifier(), texts)
    assert list(together.weighing_.worth())[-2:] == ["body", "subject"]  # type: ignore[union-attr]
    told = together.explain(mixed[rest].iloc[[0]])
    assert {each.feature for each in told.evidence} >= {"body", "hint", "number"}
    assert told.prior + sum(each.decibans for each in told.evidence) == pytest.approx(told.decibans, abs=1e-9)


def test_embeddings_and_other_families_are_evidence_too() -> None:
    texts, labels = corpus(300, 2, seed=8)
    rng = np.random.default_rng(0)
    shift = np.array([label == "class 1" for label in labels])[:, None]
    embedding = (rng.normal(size=(300, 4)) + 0.7 * shift).tolist()
    rows = frame({"text": texts, "embedding": embedding, "x": rng.normal(size=300) + shift[:, 0]})
    clf = bb.EvidenceClassifier(features={"text": bb.Text(), "x": bb.Gaussian()}).fit(rows[:200], labels[:200])
    assert clf.weighing_ is not None and set(clf.weighing_.worth()) == {"text", "embedding", "x"}
    assert min(clf.weighing_.worth().values()) > 0
    assert clf.score(rows[200:], labels[200:]) > 0.85
    told = clf.explain(rows[200:201])
    assert told.prior + sum(each.decibans for each in told.evidence) == pytest.approx(told.decibans, abs=1e-9)


def test_sparse_matrices_are_weighed_as_texts_are() -> None:
    from sklearn.feature_extraction.text import CountVectorizer

    texts, labels = corpus(300, 3, seed=9)
    counts = CountVectorizer(token_pattern=r"\w+").fit_transform(texts)
    sparse = bb.EvidenceClassifier().fit(counts[:200], labels[:200])
    words = bb.EvidenceClassifier(features=bb.Text(tokens="word1")).fit(texts[:200], labels[:200])
    assert sparse.weighing_ is not None
    np.testing.assert_allclose(sparse.predict_proba(counts[200:]), words.predict_proba(texts[200:]), atol=0.05)


# Learning and forgetting ----------------------------------------------------------------------------------------------


def test_the_tally_stays_exact_and_words_may_come_and_go(tmp_path: Path) -> None:
    texts, labels = corpus(260, seed=5)
    texts[17] += " Wednesbury wednesbury"
    clf = bb.EvidenceClassifier().fit(texts, labels)
    assert not clf.weights_stale_
    bb.save(clf.model_, tmp_path / "before.banbury")
    assert b"wednesbury" in (tmp_path / "before.banbury").read_bytes()
    before = clf.predict_proba(texts)
    assert np.array_equal(bb.load(tmp_path / "before.banbury").posterior(texts), before)  # type: ignore[union-attr]
    assert np.array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(texts), before)
    clf.forget([texts[17]], [labels[17]])
    assert clf.weights_stale_
    bb.save(clf.model_, tmp_path / "after.banbury")
    assert b"wednesbury" not in (tmp_path / "after.banbury").read_bytes()
    assert b"wednesbury" not in pickle.dumps(clf)
    assert clf.tally_ == bb.EvidenceClassifier().fit(texts[:17] + texts[18:], labels[:17] + labels[18:]).tally_
    np.testing.assert_allclose(
        bb.load(tmp_path / "after.banbury").posterior(texts),
        clf.predict_proba(texts),
        rtol=0,
        atol=0,  # type: ignore[union-attr]
    )
    clf.partial_fit(["quite new words here"], [labels[0]])
    assert np.isfinite(clf.predict_proba(["new words w1"])).all()
    clf.forget(["quite new words here"], [labels[0]], refit=(texts[:17] + texts[18:], labels[:17] + labels[18:]))
    assert not clf.weights_stale_
    again = bb.EvidenceClassifier().fit(texts[:17] + texts[18:], labels[:17] + labels[18:])
    assert np.array_equal(clf.predict_proba(texts), again.predict_proba(texts))


def test_how_words_count_is_kept_and_older_files_left_texts_out(fitted: Any) -> None:
    _, _, classifier = fitted
    (learned,) = classifier.model_.weighing.weights.texts
    again = files.from_bytes(files.to_bytes(classifier.model_), "a test").weighing.weights.texts[0]
    assert again.setting == learned.setting and np.array_equal(again.corrections, learned.corrections)
    about = {"setting": list(learned.setting[:4]), "strength": 1.0}
    assert read_setting(about, learned.corrections)[0] == learned.setting._replace(leave_out=True)


def test_a_damaged_file_is_refused(fitted: Any, tmp_path: Path) -> None:
    _, _, clf = fitted
    file = tmp_path / "weighed.banbury"
    bb.save(clf.model_, file)
    changes = [
        lambda w: w["texts"][0].update(setting=[True, 1.0]),
        lambda w: w["texts"][0].update(setting=[True, 1.0, -1.0, 1.0]),
        lambda w: w["texts"][0].update(strength="far"),
        lambda w: w["texts"][0].update(column="none"),
        lambda w: w["texts"].clear(),
        lambda w: w.update(scored=["text"]),
    ]
    check_refusals(file, changes)


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::banbury.errors.BanburyWarning")
@pytest.mark.parametrize(
    "texts",
    [[""] * 120, ["same"] * 120, [f"own{k}" for k in range(120)], ["yes"] * 60 + ["no"] * 60, [None, "a word"] * 60],
    ids=["empty", "one word", "words of their own", "the label", "missing"],
)
def test_texts_that_say_little_or_all_are_answered(texts: list[Any]) -> None:
    labels = ["yes"] * 60 + ["no"] * 60
    clf = bb.EvidenceClassifier(weigh=True, features=bb.Text()).fit(frame({"text": texts}), labels)
    answers = clf.predict_proba(frame({"text": [*texts, "other"]}))
    assert np.isfinite(answers).all()
    np.testing.assert_allclose(answers.sum(axis=1), 1.0)


def test_a_class_of_one_text_and_groups_that_are_classes() -> None:
    texts, labels = corpus(150, 2, seed=6)
    rare = [*labels[:-1], "rare"]
    assert np.isfinite(bb.EvidenceClassifier().fit(texts, rare).predict_proba(texts)).all()
    assert np.isfinite(bb.EvidenceClassifier().fit(texts, labels, groups=labels).predict_proba(texts)).all()


def test_too_many_words_and_classes_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels = corpus(150, 2, seed=6)
    monkeypatch.setattr("banbury.weighing.columns.MOST_CELLS", 50)
    with pytest.raises(errors.BadSetting, match="too many to weigh"):
        bb.EvidenceClassifier().fit(texts, labels)


@pytest.mark.parametrize(
    "family",
    [
        bb.Text(ngrams=2),
        bb.Text(unit="characters", ngrams=(2, 3)),
        bb.Text(tokens=r"w\d"),
        bb.Text(min_count=3, max_words=40),
        bb.Text(vocabulary=[*WORDS[:30], "unseen"]),
        bb.Text(model="bernoulli", damping="log", length=True),
    ],
    ids=str,
)
def test_any_words_are_weighed(family: Any, tmp_path: Path) -> None:
    texts, labels = corpus(200, 3, seed=2)
    clf = bb.EvidenceClassifier(features=family).fit(texts, labels)
    assert clf.weighing_ is not None and clf.score(texts, labels) > 0.6
    bb.save(clf.model_, tmp_path / "model.banbury")
    assert np.array_equal(bb.load(tmp_path / "model.banbury").posterior(texts), clf.predict_proba(texts))  # type: ignore[union-attr]
    clf.forget(texts[:20], labels[:20])
    assert np.isfinite(clf.predict_proba(texts)).all()
    assert clf.model_.informative(n=3)
