"""Pictures of models, explanations and results, drawn with matplotlib: ``pip install 'banbury[plots]'``.

They are used as scikit-learn's displays are: ``from_...`` computes and draws; the numbers stay as attributes; ``plot`` draws them
again, on ``ax`` if given; ``ax_`` and ``figure_`` are what was drawn on; ``save`` writes a PNG or SVG file.
"""

from banbury.plots.bandwidth import BandwidthDisplay
from banbury.plots.boundary import DecisionBoundaryDisplay
from banbury.plots.density import DensityDisplay
from banbury.plots.evidence import ComparedEvidenceDisplay, EvidenceDisplay
from banbury.plots.labels import LabelsDisplay
from banbury.plots.likelihood import LikelihoodDisplay
from banbury.plots.network import NetworkDisplay
from banbury.plots.nomogram import NomogramDisplay
from banbury.plots.results import (
    CalibrationDisplay,
    ConfusionMatrixDisplay,
    ConvergenceDisplay,
    LearningCurveDisplay,
    PosteriorDisplay,
)
from banbury.plots.shape_pictures import ShapesDisplay

shapes = ShapesDisplay.from_model

__all__ = [
    "BandwidthDisplay",
    "CalibrationDisplay",
    "ComparedEvidenceDisplay",
    "ConfusionMatrixDisplay",
    "ConvergenceDisplay",
    "DecisionBoundaryDisplay",
    "DensityDisplay",
    "EvidenceDisplay",
    "LabelsDisplay",
    "LearningCurveDisplay",
    "LikelihoodDisplay",
    "NetworkDisplay",
    "NomogramDisplay",
    "PosteriorDisplay",
    "ShapesDisplay",
    "shapes",
]
