"""Writes _parameters.py, the types of the training parameters, from the parameters that the extension module lists.

    make python-types
"""

import pathlib

from planetree import _native

PATH = pathlib.Path(__file__).resolve().parents[1] / "python/planetree/_parameters.py"
HEAD = '''"""Types of the training parameters. Written by tests/write_parameters.py; a test compares it with the parameters."""

from typing import Literal, Mapping, Sequence, TypedDict


class Parameters(TypedDict, total=False):
    """Training parameters. docs/train.md describes them."""

'''
TYPES = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str | int | float | Sequence[float] | Sequence[str]",
    "table": "str | Sequence[int] | Mapping[str, int]",
}


def text():
    """The content of the file."""
    lines = []
    for name, aliases, kind, words, _default, help in _native.parameters():
        written = TYPES.get(kind) or f"Literal[{', '.join(repr(word).replace(chr(39), chr(34)) for word in words)}]"
        lines.append(f"    {name}: {written} | None\n    # {help}\n")
        lines += [f"    {alias}: {written} | None\n" for alias in aliases if alias.isidentifier() and alias != "lambda"]
    return HEAD + "".join(lines)


if __name__ == "__main__":
    PATH.write_text(text())
