"""A census table next to gradient boosting: accuracy, log loss and time, and why an answer: `python examples/census.py`.

It reads Adult from the folder that BANBURY_DATA names: adult/adult.tar.gz.
"""

import os
import tarfile
import tempfile
import time
from pathlib import Path

import pandas
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, log_loss

import banbury as bb

COLUMNS = """age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain
    capital_loss hours_per_week native_country income""".split()


def main() -> None:
    train, test = read_adult()
    test_labels = test.pop("income")
    train_labels = train.pop("income")

    # Banbury takes strings, numbers and gaps as they are. Boosting needs categories, and the same ones in both parts.
    learners = {
        "naive Bayes": (bb.NaiveBayesClassifier(), train, test),
        "naive Bayes, calibrated": (bb.NaiveBayesClassifier(calibrate="temperature"), train, test),
        "weighed evidence": (bb.EvidenceClassifier(), train, test),
        "gradient boosting": (HistGradientBoostingClassifier(random_state=0), *as_categories(train, test)),
    }
    print(f"{'':24} accuracy  log loss    fit")
    for name, (learner, train_rows, test_rows) in learners.items():
        start = time.perf_counter()
        learner.fit(train_rows, train_labels)
        seconds = time.perf_counter() - start
        accuracy = accuracy_score(test_labels, learner.predict(test_rows))
        loss = log_loss(test_labels, learner.predict_proba(test_rows))
        print(f"{name:24} {accuracy:8.4f}  {loss:8.4f}  {seconds:.1f} s")

    # The weighed answer is a sum, so it can be explained term by term.
    weighed = learners["weighed evidence"][0]
    print(weighed.explain(test.iloc[3]))


def read_adult() -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """The training and the test part, with the test part's full stops removed from its labels."""
    archive = Path(os.environ["BANBURY_DATA"]) / "adult" / "adult.tar.gz"
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        read = {"header": None, "names": COLUMNS, "skipinitialspace": True, "na_values": "?", "comment": "|"}
        train, test = (
            pandas.read_csv(next(Path(folder).rglob(name)), **read).dropna(subset=["income"])
            for name in ("adult.data", "adult.test")
        )
    test["income"] = test["income"].str.rstrip(".")
    return train, test


def as_categories(train: pandas.DataFrame, test: pandas.DataFrame) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Both parts with their strings as categories of the training part."""
    texts = train.select_dtypes(exclude="number").columns
    types = {name: pandas.CategoricalDtype(sorted(train[name].dropna().unique())) for name in texts}
    return train.astype(types), test.astype(types)


if __name__ == "__main__":
    main()
