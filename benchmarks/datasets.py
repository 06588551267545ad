"""Public data sets that are too large to ship, from the folder that BANBURY_DATA names."""

from __future__ import annotations

import argparse
import gzip
import html
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

UNSET = "BANBURY_DATA is unset: it names the folder of public data sets"
ADULT = """age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain
    capital_loss hours_per_week native_country income""".split()
INCOME = ADULT[-1]
MUSHROOM = """class cap_shape cap_surface cap_color bruises odor gill_attachment gill_spacing gill_size gill_color stalk_shape
    stalk_root stalk_surface_above_ring stalk_surface_below_ring stalk_color_above_ring stalk_color_below_ring veil_type
    veil_color ring_number ring_type spore_print_color population habitat""".split()
CAR = "buying maint doors persons lug_boot safety class".split()
HOUSE_VOTES = ["party", *(f"vote{k}" for k in range(1, 17))]
AUTO_MPG = "mpg cylinders displacement horsepower weight acceleration year origin name".split()
NAMING = ("newsgroups", "xref", "followup-to", "path")  # headers of a post that name its group


@dataclass(frozen=True)
class Part:
    """Rows (a list of texts, a frame or an array) and their labels; groups are rows that belong together."""

    rows: Any
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, row_numbers: Any) -> Part:
        return Part(take_rows(self.rows, row_numbers), self.labels[row_numbers])

    def accuracy(self, predictions: Any) -> float:
        """Returns the share of right predictions."""
        return float(np.mean(np.asarray(predictions) == self.labels))


def take_rows(rows: Any, row_numbers: Any) -> Any:
    if isinstance(rows, list):
        return [rows[number] for number in row_numbers]
    return rows.iloc[row_numbers] if hasattr(rows, "iloc") else rows[row_numbers]


def thirds(part: Part) -> tuple[Part, Part]:
    """Two thirds of each class to learn from, and one to test on."""
    train, test = train_test_split(np.arange(len(part)), test_size=1 / 3, random_state=0, stratify=part.labels)
    return part.take(train), part.take(test)


# Files ----------------------------------------------------------------------------------------------------------------


def has_data(*names: str) -> bool:
    """Whether BANBURY_DATA names a folder that has these data sets."""
    folder = os.environ.get("BANBURY_DATA")
    return bool(folder) and all((Path(folder or "") / name).is_dir() for name in names)


@contextmanager
def unpack_folder(name: str) -> Iterator[Path]:
    """A temporary folder with the files of a data set as their authors published them."""
    with tempfile.TemporaryDirectory() as folder:
        for archive in sorted((Path(os.environ["BANBURY_DATA"]) / name).glob("*.gz")):
            if archive.name.endswith(".tar.gz"):
                with tarfile.open(archive) as tar:
                    tar.extractall(folder, filter="data")
            else:
                with gzip.open(archive) as source, open(Path(folder) / archive.stem, "wb") as copy:
                    shutil.copyfileobj(source, copy)
        yield Path(folder)


def texts(folder: Path, step: int = 1) -> tuple[list[str], list[str]]:
    """The files below a folder, by name, and the sub-folder each is in; every ``step``-th of them."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())[::step]
    return [decode_text(path.read_bytes()) for path in paths], [path.relative_to(folder).parts[0] for path in paths]


def decode_text(content: bytes) -> str:
    """UTF-8, or Latin-1 where it is not."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


# Tables ---------------------------------------------------------------------------------------------------------------


@contextmanager
def adult() -> Iterator[tuple[Path, Path, dict[str, Any]]]:
    """Adult's rows to learn from and to test on, and how to read them; both files spell the classes alike."""
    with unpack_folder("adult") as folder:
        train = folder / "adult.data"
        test = folder / "test.csv"
        train.write_bytes(train.read_bytes().strip() + b"\n")
        lines = (folder / "adult.test").read_text(encoding="utf-8").splitlines()[1:]  # the first is no row
        test.write_text("".join(f"{line.removesuffix('.')}\n" for line in lines if line), encoding="utf-8")
        yield train, test, {"columns": ADULT}


def adult_split() -> tuple[Part, Part]:
    with adult() as (train, test, _):
        return read_table(train, ADULT, INCOME), read_table(test, ADULT, INCOME)


TABLES = {  # the folder, the file, its columns, and the one to predict
    "car": ("car", "car.data", CAR, "class"),
    "census": ("adult", "adult.data", ADULT, INCOME),
    "house-votes": ("house-votes-84", "house-votes-84.data", HOUSE_VOTES, "party"),
    "mushroom": ("mushroom", "agaricus-lepiota.data", MUSHROOM, "class"),
    "auto-mpg": ("auto-mpg", "auto-mpg.data", AUTO_MPG, "origin"),
}


def table(name: str) -> Part:
    folder, file, columns, target = TABLES[name]
    with unpack_folder(folder) as path:
        part = read_table(path / file, columns, target, sep=r"\s+" if name == "auto-mpg" else ",")
    return Part(part.rows.drop(columns="name", errors="ignore"), part.labels)


def read_table(path: Path, columns: list[str], target: str, sep: str = ",") -> Part:
    """A table as the UCI repository publishes it: no header, and ``?``, but nothing else, for a missing value."""
    import pandas as pd

    frame = pd.read_csv(path, names=columns, sep=sep, skipinitialspace=True, na_values=["?"], keep_default_na=False)
    labels = frame.pop(target).to_numpy()
    return Part(frame, labels if labels.dtype.kind in "iu" else labels.astype(np.str_))


def as_categories(train: Any, test: Any) -> tuple[Any, Any]:
    """Two frames with their words as pandas categories, as boosting wants them; words only the second has are missing."""
    types = {name: train[name].astype("category").dtype for name in train if train[name].dtype.kind not in "iuf"}
    return train.astype(types), test.astype(types)


# Texts ----------------------------------------------------------------------------------------------------------------


def newsgroups(step: int = 1) -> tuple[Part, Part]:
    """20 Newsgroups by date, headers and all: older posts to learn from, and newer ones."""
    with unpack_folder("20news-bydate") as folder:
        train, test = (texts(folder / f"20news-bydate-{part}", step) for part in ("train", "test"))
    return Part(train[0], np.array(train[1])), Part(test[0], np.array(test[1]))


def load_older_newsgroups() -> Part:
    """The older collection of 20 Newsgroups, headers and all."""
    with unpack_folder("20_newsgroups") as folder:
        posts, groups = texts(folder / "20_newsgroups")
    return Part(posts, np.array(groups))


def split_post(post: str) -> tuple[str, str]:
    """The headers of a post and its body, which a blank line parts."""
    head, _, body = post.replace("\r\n", "\n").partition("\n\n")
    return head, body


def without_headers(post: str, names: Sequence[str] = NAMING) -> str:
    """A post without these headers and their continuation lines."""
    head, body = split_post(post)
    fields = re.findall(r"[^\n]*(?:\n[ \t][^\n]*)*", head)
    kept = [field for field in fields if field and field.split(":", 1)[0].strip().lower() not in names]
    return "\n".join(kept) + "\n\n" + body


def sms() -> Part:
    with unpack_folder("sms-spam") as folder:
        lines = (folder / "SMSSpamCollection").read_text(encoding="utf-8").split("\n")
    labels, messages = zip(*(line.split("\t", 1) for line in lines if line), strict=True)
    return Part(list(messages), np.array(labels))


def reviews() -> Part:
    with unpack_folder("review-polarity") as folder:
        reviews, labels = texts(folder / "txt_sentoken")
    return Part(reviews, np.array(labels))


def mail() -> Part:
    """SpamAssassin's mail, undecoded: headers, attachments and odd encodings are left in."""
    with unpack_folder("spamassassin") as folder:
        mails, folders = texts(folder / "spamassassin")
    return Part(mails, np.array(["ham" if "ham" in name else "spam" for name in folders]))


def web_pages() -> Part:
    """WebKB: pages of students, teachers, courses and projects; the groups are the universities."""
    with unpack_folder("webkb") as folder:
        root = folder / "webkb"
        paths = sorted(path for path in root.rglob("*") if path.is_file())
        folder_names = [path.relative_to(root).parts for path in paths]
        kept = [k for k, names in enumerate(folder_names) if names[0] in ("student", "faculty", "course", "project")]
        pages = [decode_text(paths[k].read_bytes()) for k in kept]
    return Part(pages, np.array([folder_names[k][0] for k in kept]), np.array([folder_names[k][1] for k in kept]))


@dataclass(frozen=True)
class Stories:
    """Texts, and the topics of each."""

    texts: list[str]
    topics: list[list[str]]

    def __len__(self) -> int:
        return len(self.texts)

    def first(self, n: int) -> Stories:
        return Stories(self.texts[:n], self.topics[:n])


def reuters() -> tuple[Stories, Stories]:
    """Reuters-21578, the ModApte split: stories to learn from and to test on, with the topics that both parts have."""
    parts: dict[str, list[tuple[str, list[str]]]] = {"TRAIN": [], "TEST": []}
    with unpack_folder("reuters21578") as folder:
        for path in sorted(folder.rglob("*.sgm"), key=lambda path: path.name):
            stories = re.findall(r"<REUTERS(.*?)>(.*?)</REUTERS>", path.read_bytes().decode("latin-1"), re.DOTALL)
            for attributes, story in stories:
                part = re.findall(r'LEWISSPLIT="(.*?)"', attributes)[0]
                if 'TOPICS="YES"' in attributes and part in parts:
                    topics = re.findall("<D>(.*?)</D>", content_of(story, "TOPICS"))
                    parts[part].append((story_text(story), topics))
    shared = set.intersection(*({topic for _, topics in part for topic in topics} for part in parts.values()))
    train, test = (
        Stories([text for text, _ in part], [[t for t in dict.fromkeys(topics) if t in shared] for _, topics in part])
        for part in parts.values()
    )
    return train, test


def content_of(story: str, tag: str) -> str:
    content = re.search(f"<{tag}(?: [^>]*)?>(.*?)</{tag}>", story, re.DOTALL)
    return content[1] if content else ""


def story_text(story: str) -> str:
    """The title and the body; some stories are a text without them."""
    body = content_of(story, "BODY") or re.sub("<.*?>", " ", content_of(story, "TEXT"))
    return html.unescape(f"{content_of(story, 'TITLE')}\n{body}")


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """A type for argparse: one of these names."""

    def check(name: str) -> str:
        if name not in names:
            raise argparse.ArgumentTypeError(f"no {name!r} here; there are {', '.join(names)}")
        return name

    return check
