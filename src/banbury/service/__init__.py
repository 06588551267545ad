"""The service: a model that answers, learns and forgets over HTTP, and loses nothing that it acknowledged."""

from banbury.service.state import ServedState

__all__ = ["ServedState"]
