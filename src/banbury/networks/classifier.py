"""NetworkClassifier: a network that is asked for one of its nodes, and answers as a model does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury.distributions.family import Kind
from banbury.explain import Explanation
from banbury.networks.network import BeliefNetwork
from banbury.readers import Batch, Source
from banbury.sums import Keys


@dataclass(frozen=True)
class NetworkClassifier:
    """The classes are the values of the node, be it the network's target or another.

    >>> import banbury as bb
    >>> network = bb.BeliefNetwork.count(bb.datasets.play_tennis(), parents={"play": ["wind"]})
    >>> asked = NetworkClassifier(network, "wind")
    >>> asked.classes, asked.explain({"play": "yes"}).winner
    (('strong', 'weak'), 'weak')
    """

    network: BeliefNetwork
    target: str

    @property
    def classes(self) -> Keys:
        return self.network.variables[self.network._asked(self.target)].values

    @property
    def target_kind(self) -> Kind:
        return self.network.variables[self.network._asked(self.target)].kind

    def label(self, value: Any) -> Any:
        """What a value of the node's column is called: a number's bin, and others as they are."""
        variable = self.network.variables[self.network._asked(self.target)]
        return value if variable.cuts is None or value is None else variable.values[variable.place(value)]

    def stream(self, rows: Any, **reading: Any) -> Iterator[tuple[Batch, NDArray[np.float64]]]:
        return self.network.stream(rows, self.target, **reading)

    def explain(self, row: Any, against: Any = None) -> Explanation:
        return self.network.explain(row, against, self.target)

    def _read(self, rows: Any, reading: Mapping[str, Any]) -> Source:
        return self.network._read(rows, reading)
