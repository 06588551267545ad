"""A spam filter that learns, explains, and forgets messages exactly: `python examples/spam.py`.

It reads the SMS Spam Collection from the folder that BANBURY_DATA names: sms-spam/SMSSpamCollection.gz.
"""

import gzip
import os
from pathlib import Path

import banbury as bb


def main() -> None:
    texts, labels = read_messages()

    # How good is it? Ten folds cost one count, because the counts of a fold are subtracted.
    print(bb.cross_validate(texts, labels, folds=10))

    # One pass over the messages makes the tally; a model is derived from it in milliseconds.
    tally = bb.count(texts, labels)
    model = bb.estimate(tally)
    print(model.explain(["Free entry! Win a prize, text WIN to claim. See you at lunch"]))

    # Somebody asks that the first three messages be forgotten.
    theirs = tally.count(texts[:3], labels[:3])
    without = tally - theirs
    print(f"{tally.n_rows:,} messages, {without.n_rows:,} after forgetting")
    print(f"digest before {tally.digest()[:16]}…, after {without.digest()[:16]}…")
    assert without == tally.count(texts[3:], labels[3:]), "what remains is what counting the other messages gives"
    assert without + theirs == tally, "and learning them again gives the identical tally"


def read_messages() -> tuple[list[str], list[str]]:
    """The texts and their labels, "ham" or "spam"."""
    path = Path(os.environ["BANBURY_DATA"]) / "sms-spam" / "SMSSpamCollection.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t", 1) for line in file]
    return [text for _, text in rows], [label for label, _ in rows]


if __name__ == "__main__":
    main()
