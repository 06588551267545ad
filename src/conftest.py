"""The families are imported before the doctests of one of their files, or pytest would import that file twice."""

import banbury.families  # noqa: F401
