"""Shows the progress of long calls: a line that is rewritten, in notebooks and on terminals."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from typing import Callable

from ._errors import PlanetreeWarning

_LOG = logging.getLogger("planetree")
_INTERVAL = 0.2

Report = Callable[[str, str, int, int], None]


def _notebook_line() -> Callable[[str], None] | None:
    """Returns a function that shows a line in a notebook; None outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)


def _terminal_line(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


class Progress:
    """Shows phases and rounds. Notes go to the logger "planetree", and warnings are Python warnings.

    With verbose=None, progress is shown in notebooks and on terminals. With True it is shown everywhere.
    """

    def __init__(self, verbose: bool | None = None) -> None:
        self._verbose = verbose
        self._line: Callable[[str], None] | None = None
        self._is_terminal = False
        self._begun = time.monotonic()
        self._shown = 0.0
        self._last = ""

    def __enter__(self) -> Report:
        if self._verbose is not False:
            self._line = _notebook_line()
            if self._line is None and sys.stderr is not None and sys.stderr.isatty():
                self._line, self._is_terminal = _terminal_line, True
            elif self._line is None and self._verbose:
                self._line = lambda text: print(text, file=sys.stderr)
        return self._report

    def __exit__(self, *_: object) -> None:
        if self._line is None:
            return
        if self._is_terminal:
            self._line("")
        elif self._last:
            self._line(self._last)

    def _report(self, kind: str, text: str, round: int, rounds: int) -> None:
        if kind == "warning" or text.startswith("warning: "):
            warnings.warn(text.removeprefix("warning: "), PlanetreeWarning, stacklevel=6)
        elif kind == "message":
            _LOG.info(text)
        elif self._line is not None:
            now = time.monotonic()
            if kind == "round":
                text = f"round {round} of {rounds}  {text}  {now - self._begun:.0f} s"
            self._last = text
            if now - self._shown >= _INTERVAL or round == rounds:
                self._shown, self._last = now, ""
                self._line(text)
