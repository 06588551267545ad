"""Reports: one HTML file that says what a model is, how good it is, where it errs and why."""

from banbury.reports.file import Report, report
from banbury.reports.findings import Findings, Mistake

__all__ = ["Findings", "Mistake", "Report", "report"]
