"""Reports: one HTML file that says what a model is, how good it is, where it errs and why."""

from banbury.reports.findings import Findings, Mistake
from banbury.reports.making import Report, report

__all__ = ["Findings", "Mistake", "Report", "report"]
