"""Turns keyword arguments into command-line arguments, and training parameters into `--set`."""

from __future__ import annotations

import difflib
import functools
import json
import os
from typing import Any

from . import _native
from ._errors import UsageError


@functools.cache
def _options_of(command: str) -> dict[str, tuple[bool, bool]]:
    return {name: (takes_value, repeats) for name, takes_value, repeats in _native.options_of(command)}


@functools.cache
def _kinds() -> dict[str, str]:
    """Returns the kinds of all training parameters by their names and aliases."""
    return {name: entry[2] for entry in _native.parameters() for name in (entry[0], *entry[1])}


def parameter_names() -> frozenset[str]:
    """Returns the names and aliases of all training parameters."""
    return frozenset(_kinds())


def _without_stage(name: str) -> str:
    """Returns the name of a parameter. Parameters of stages are called stage.N.NAME."""
    parts = name.split(".")
    return parts[2] if len(parts) == 3 and parts[0] == "stage" and parts[1].isdigit() else name


def is_parameter(name: str) -> bool:
    """Returns whether a name is a training parameter."""
    return _without_stage(name) in _kinds()


# What other libraries call the number of threads, which is no training parameter.
_THREADS = ("n_jobs", "nthread", "num_threads", "thread_count")


def unknown(kind: str, name: str, names: Any) -> UsageError:
    """Returns the error for an unknown name, with the nearest one."""
    near = ["threads"] if name in _THREADS else difflib.get_close_matches(name, sorted(names), n=1)
    remedy = f"did you mean {near[0]}?" if near else "docs/train.md lists all parameters"
    return UsageError(f"unknown {kind} {name!r}", None, remedy)


def check_parameters(names: Any, others: Any = ()) -> None:
    """Fails if a name is neither a training parameter nor one of `others`."""
    for name in names:
        if name not in others and not is_parameter(name):
            raise unknown("parameter", name, parameter_names() | set(others))


def text_of(value: Any) -> str:
    """Returns a value as it is written on the command line."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()  # scalars of NumPy
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.1f}"
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(each) for each in value)
    if isinstance(value, dict):
        return ",".join(f"{json.dumps(str(name))}={text_of(each)}" for name, each in value.items())
    if isinstance(value, (str, int, float, os.PathLike)):
        return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    raise UsageError(f"found a value of type {type(value).__name__}", None, "pass a number, a string, True or False")


def settings(parameters: dict[str, Any]) -> list[str]:
    """Returns training parameters as command-line arguments. None means the default."""
    check_parameters(parameters)
    words: list[str] = []
    for name, value in parameters.items():
        if isinstance(value, dict) and _kinds()[_without_stage(name)] != "table":
            raise UsageError(f"{name}: found a value of type dict", None, "pass a number, a string, True or False")
        if value is not None:
            words += ["--set", f"{name}={text_of(value)}"]
    return words


def arguments(command: str, options: dict[str, Any], *, may_set: bool = False) -> list[str]:
    """Returns keyword arguments as command-line arguments. Those that are no options of the command are training
    parameters, if `may_set` allows them."""
    known = _options_of(command)
    words: list[str] = []
    parameters: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            if may_set and is_parameter(name):
                parameters[name] = value
                continue
            raise unknown("option", name, set(known) | (parameter_names() if may_set else set()))
        if value is None or value is False:
            continue
        takes_value, repeats = known[name]
        option = f"--{name.replace('_', '-')}"
        if not takes_value:
            if value is not True:
                raise UsageError(f"{name} is a switch, found {value!r}", None, "pass True or False")
            words.append(option)
            continue
        for each in _values(name, value, repeats):
            words.append(option if each is True else f"{option}={each}")
    return words + settings(parameters)


def _values(name: str, value: Any, repeats: bool) -> list[Any]:
    if value is True:
        return [True]
    if isinstance(value, dict):
        return [f"{key}={text_of(each)}" for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [text_of(each) for each in value] if repeats else [text_of(value)]
    return [text_of(value)]
