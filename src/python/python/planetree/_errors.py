"""Exceptions. All have the place, the problem and the remedy as attributes."""

from __future__ import annotations


class PlanetreeError(Exception):
    """An error of planetree.

    Attributes:
        problem: What is wrong.
        place: The file, row, column or argument that the problem is in, if it has one.
        remedy: What to do about it, if there is advice.
    """

    def __init__(self, problem: str, place: str | None = None, remedy: str | None = None) -> None:
        super().__init__(problem, place, remedy)
        self.problem = problem
        self.place = place
        self.remedy = remedy

    def __str__(self) -> str:
        text = self.problem if self.place is None else f"{self.place}: {self.problem}"
        return text if self.remedy is None else f"{text} ({self.remedy})"


class UsageError(PlanetreeError, ValueError):
    """An argument or a parameter is invalid, or arguments contradict each other."""


class DataError(PlanetreeError, ValueError):
    """Rows, a file or an object cannot be used."""


class QualityError(PlanetreeError):
    """A result is worse than a quality gate allows."""


class InternalError(PlanetreeError, RuntimeError):
    """A bug in planetree."""


class PlanetreeWarning(UserWarning):
    """Something in the data or the parameters that may not be meant."""
