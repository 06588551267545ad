"""Public data sets that are too large to ship, from the folder that BANBURY_DATA names."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNSET = "BANBURY_DATA is unset: it names the folder of public data sets"


def there(name: str) -> bool:
    folder = os.environ.get("BANBURY_DATA")
    return bool(folder) and (Path(folder or "") / name).is_dir()


@contextmanager
def unpacked(name: str) -> Iterator[Path]:
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


def texts(folder: Path) -> tuple[list[str], list[str]]:
    """The files below a folder, by name, and the sub-folder each is in."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [decoded(path.read_bytes()) for path in paths], [path.relative_to(folder).parts[0] for path in paths]


def decoded(content: bytes) -> str:
    """UTF-8, or Latin-1 where it is not."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")
