"""Files that are rightly signed and say something else work, without a NaN, or are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import fuzzed_files
import hostile

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
