"""Files that are rightly signed and say something else work, without a NaN, or are refused by name."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import banbury as bb
import fuzzed_files
import hostile
import naive_files

N = 30  # files of each kind


@pytest.mark.parametrize("name", fuzzed_files.THINGS)
def test_a_changed_file_works_or_is_refused_by_name(name: str) -> None:
    content = fuzzed_files.content_of(name)
    assert fuzzed_files.use(content) == "works"
    rng = np.random.default_rng(list(fuzzed_files.THINGS).index(name))
    outcomes = {fuzzed_files.use(changed) for _, changed in fuzzed_files.changed_files(content, rng, N)}
    assert "BadFile" in outcomes


def test_a_file_that_names_very_many_nodes_takes_no_memory_for_them() -> None:
    content = fuzzed_files.content_of("a weighed table")
    levels = naive_files.unpacked(content)[1]["weighing.0.tree"]
    levels[0, 0] = 2**31
    changed = naive_files.rewritten(content, arrays={"weighing.0.tree": levels})
    tracemalloc.start()
    try:
        with pytest.raises(bb.errors.BadFile, match="nodes without cells"):
            hostile.loaded(changed)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
