"""Old names work for this version, and say the new ones."""

from __future__ import annotations

import pytest

from banbury.renamed import takes_old


@takes_old(most="n")
def listed(things: list[int], n: int = 2) -> list[int]:
    return things[:n]


def test_an_old_name_works_and_says_the_new_one() -> None:
    assert listed([1, 2, 3], n=1) == listed([1, 2, 3], 1) == [1]
    with pytest.warns(DeprecationWarning, match="most= is now called n=") as told:
        assert listed([1, 2, 3], most=1) == [1]  # type: ignore[call-arg]
    assert told[0].filename == __file__


def test_both_names_at_once_are_refused() -> None:
    with pytest.raises(TypeError, match="takes n= or, as it was called before, most="):
        listed([1], n=1, most=1)  # type: ignore[call-arg]
