"""Whatever is saved is loaded: it is written again as the same bytes, and answers every question alike."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import banbury as bb
import saved_models
from banbury.files import from_bytes, to_bytes


def assert_comes_back(thing: Any) -> None:
    content = to_bytes(thing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = from_bytes(content, "it.banbury")
    assert to_bytes(again) == content  # type: ignore[arg-type]
    assert saved_models.ask(again) == saved_models.ask(thing)


@pytest.mark.parametrize("kind", saved_models.KINDS)
def test_whatever_is_saved_is_loaded(kind: str) -> None:
    refused = []
    for shape, rows in saved_models.shapes().items():
        try:
            thing = saved_models.make(kind, *rows)
        except bb.BanburyError:  # such rows make no such model
            refused.append(shape)
            continue
        assert_comes_back(thing)
    assert "30 rows" not in refused and len(refused) < 10
