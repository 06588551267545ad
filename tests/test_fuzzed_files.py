"""Files that are rightly signed and say something else work, without a NaN, or are refused by name."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import banbury as bb
import fuzzed_files
import hostile
import naive_files

N = 40  # files of each kind


@pytest.mark.parametrize("name", fuzzed_files.THINGS)
def test_a_changed_file_works_or_is_refused_by_name(name: str) -> None:
    content = hostile.saved(fuzzed_files.THINGS[name]())
    assert fuzzed_files.tried(content) == "works"
    rng, met = np.random.default_rng(sorted(fuzzed_files.THINGS).index(name)), dict[str, str]()
    for changes in (fuzzed_files.of_headers, fuzzed_files.of_arrays):
        for what, changed in changes(content, rng, N if len(content) < 40_000 else N // 4):
            met[what] = fuzzed_files.tried(changed)
    assert "BadFile" in met.values()


def test_a_file_that_names_very_many_nodes_takes_no_memory_for_them() -> None:
    content = hostile.saved(fuzzed_files.weighed())
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
