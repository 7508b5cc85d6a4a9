"""The `planetree` command."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig

from . import _native


def main() -> int:
    """Runs the program with the arguments of the process."""
    # The program handles signals itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    script = os.path.join(sysconfig.get_path("scripts"), "planetree")
    program = script if os.access(script, os.X_OK) else None
    sys.stdout.flush()
    return _native.main(program, ["planetree", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
