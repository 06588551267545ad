"""What is served, as JSON: classes, families, the digest, and how old weights are."""

from __future__ import annotations

from typing import Any

from banbury import __version__
from banbury.label_sets import EVERY
from banbury.service.state import State
from banbury.sums import rows_of


def described(state: State) -> dict[str, Any]:
    """The model as it stands, and the change as of which it does."""
    learner = state.learner
    digest, change = state.digest()
    tally, settings = learner.tally(), learner.settings
    several = tally.schema.labels is not None
    each = zip(tally.classes, rows_of(tally.rows).tolist(), strict=True)
    name = "label" if several else "class"
    classes = [{name: own, "rows": n} for own, n in each if not (several and own == EVERY)]
    weighing = settings.weighing
    told: dict[str, Any] = {
        "kind": "model of labels" if several else "model",
        "rows": tally.n_rows,
        "target": tally.schema.target,
        "labels" if several else "classes": classes,
        "features": [{"name": f.name, "family": str(f.family), "why": f.why} for f in tally.schema.features],
        "how": settings.choice.how,
        "alpha": settings.choice.alpha,
        "weighed": weighing is not None,
        "calibrated": settings.calibration is not None,
        "digest": digest,
        "change": change,
        "learns": state.folder is not None,
        "keeps_rows": state.keeps_rows,
        "version": __version__,
    }
    if weighing is not None:
        told["weights"] = {"stale": weighing.is_stale(tally), "learned_at": learner.weighed_at}
    return told
