"""Several topics for each news story, from one count: `python examples/topics.py`.

It reads Reuters-21578 from the folder that BANBURY_DATA names: reuters21578/reuters21578.tar.gz.
"""

import html
import os
import re
import tarfile
from pathlib import Path

import banbury as bb

STORY = re.compile(r'<REUTERS TOPICS="YES" LEWISSPLIT="(TRAIN|TEST)".*?>(.*?)</REUTERS>', re.DOTALL)


def main() -> None:
    stories = read_stories()
    shared = set.intersection(*({topic for _, topics in part for topic in topics} for part in stories.values()))
    texts = {part: [text for text, _ in rows] for part, rows in stories.items()}
    topics = {
        part: [[topic for topic in row_topics if topic in shared] for _, row_topics in rows]
        for part, rows in stories.items()
    }
    print(f"{len(texts['TRAIN']):,} stories to learn from, {len(texts['TEST']):,} to test on, {len(shared)} topics")

    # Plain counts first: one pass, and "not about grain" is all stories minus those about grain.
    plain = bb.LabelModel.of(bb.count(texts["TRAIN"], target=topics["TRAIN"]), alpha=0.01)
    print(f"plain:   micro F1 {bb.evaluate(plain, texts['TEST'], topics['TEST']).micro_f1:.3f}")

    # Words that repeat each other are weighed, and every topic gets a threshold of its own.
    clf = bb.MultiLabelClassifier().fit(texts["TRAIN"], topics["TRAIN"])
    result = bb.evaluate(clf, texts["TEST"], topics["TEST"])
    print(f"weighed: micro F1 {result.micro_f1:.3f}, macro F1 {result.macro_f1:.3f}")

    story = "Wheat exports to the Soviet Union rose after the crude oil price fell"
    print(story, "→", ", ".join(clf.predict([story], top=3)[0]))
    print(clf.explain(story, "grain"))


def read_stories() -> dict[str, list[tuple[str, list[str]]]]:
    """The text and the topics of each story, in the two parts of the ModApte split."""
    archive = Path(os.environ["BANBURY_DATA"]) / "reuters21578" / "reuters21578.tar.gz"
    parts: dict[str, list[tuple[str, list[str]]]] = {"TRAIN": [], "TEST": []}
    with tarfile.open(archive) as files:
        for member in sorted(files.getmembers(), key=lambda member: member.name):
            if member.name.endswith(".sgm"):
                content = files.extractfile(member).read().decode("latin-1")
                for part, story in STORY.findall(content):
                    topics = list(dict.fromkeys(re.findall("<D>(.*?)</D>", between(story, "TOPICS"))))
                    text = between(story, "BODY") or re.sub("<.*?>", " ", between(story, "TEXT"))
                    parts[part].append((html.unescape(f"{between(story, 'TITLE')}\n{text}"), topics))
    return parts


def between(story: str, tag: str) -> str:
    """Returns the content of the first element with this tag, or an empty string."""
    element = re.search(f"<{tag}(?: [^>]*)?>(.*?)</{tag}>", story, re.DOTALL)
    return element[1] if element else ""


if __name__ == "__main__":
    main()
