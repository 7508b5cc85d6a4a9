"""Rows that the tests share: the sample data, as arrays."""

import functools
import os
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
SMALL = {"num_trees": 8, "num_leaves": 8, "min_data_in_leaf": 5}


@functools.cache
def letor(name):
    """The features (NaN where absent), labels and query ids of a file of sample_data."""
    labels, queries, rows = [], [], []
    for line in (ROOT / "sample_data" / f"{name}.txt").read_text().splitlines():
        label, query, *entries = line.split("#")[0].split()
        labels.append(float(label))
        queries.append(int(query.removeprefix("qid:")))
        rows.append({int(feature): float(value) for feature, value in (entry.split(":") for entry in entries)})
    width = max(max(row) for row in rows)
    X = np.array([[row.get(feature, np.nan) for feature in range(1, width + 1)] for row in rows])
    return X, np.array(labels), np.array(queries)


def names(X):
    """Names of the columns, as in a dataset that is converted from LETOR text."""
    return [f"f{place + 1}" for place in range(X.shape[1])]


def write_letor(name, path):
    """Writes a file of sample_data without comments, which have document ids."""
    lines = (ROOT / "sample_data" / f"{name}.txt").read_text().splitlines()
    pathlib.Path(path).write_text("".join(f"{line.split('#')[0].rstrip()}\n" for line in lines))


def document_ids(name):
    """The document ids of a file of sample_data."""
    lines = (ROOT / "sample_data" / f"{name}.txt").read_text().splitlines()
    return [line.split("docid =")[1].split()[0] for line in lines]


def program():
    """The program of the same build, which the results are compared with."""
    return os.environ["PLANETREE_PROGRAM"]


def command(directory, *arguments):
    """Runs the program in a directory."""
    done = subprocess.run([program(), "--quiet", *map(str, arguments)], cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def settings(parameters):
    """Parameters as arguments of the program."""
    return [word for name, value in parameters.items() for word in ("--set", f"{name}={value}")]
