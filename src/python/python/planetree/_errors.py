"""Exceptions. All have the place, the problem and the remedy as attributes."""

from __future__ import annotations

import re


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

    def rename(self, names: dict[str, str]) -> None:
        """Replaces paths of temporary files by the names of what they were written from."""
        for path in sorted(names, key=len, reverse=True):
            self.problem = self.problem.replace(path, names[path])
            self.place = None if self.place is None else self.place.replace(path, names[path])
            self.remedy = None if self.remedy is None else self.remedy.replace(path, names[path])
        self.args = (self.problem, self.place, self.remedy)


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


# Text within backquotes or a command of the shell, which stay as they are; or, as a word, `--set` or an option of a command,
# which a value may follow.
_OPTION = re.compile(r"(`[^`]*`|planetree [a-z-]+ [^;,)]*)|(?<![^\s(\"'])--(?:set |([a-z][a-z-]+)(?:[ =](?=[A-Z\"]))?)")


def from_command(kind: str, problem: str, place: str | None, remedy: str | None) -> PlanetreeError:
    """Returns the exception for an error of the extension module. Options of commands are named as in Python."""

    def named(match: re.Match[str]) -> str:
        if match[1] or not match[2]:
            return match[1] or ""
        return match[2].replace("-", "_") + ("=" if match[0][-1] in " =" else "")

    problem, remedy = (text and _OPTION.sub(named, text) for text in (problem, remedy))
    return {error.__name__: error for error in (UsageError, DataError, QualityError, InternalError)}[kind](problem, place, remedy)
