#!/usr/bin/env python3
"""Seconds to compute Shapley values: planetree and LightGBM on the same trees and rows, two threads, best of three.

    benches/explain.py [PLANETREE]

Needs lightgbm, pyarrow and numpy.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import lightgbm
import numpy
import pyarrow.parquet

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "target/release/planetree"


def planetree(*words):
    subprocess.run([PROGRAM, "--quiet", *map(str, words)], check=True)


def matrix(dataset):
    """The features of a dataset as an array."""
    manifest = json.loads((dataset / "_manifest.json").read_text())
    tables = [pyarrow.parquet.read_table(dataset / file["name"]) for file in manifest["files"]]
    columns = [pyarrow.concat_tables(tables).column(name).to_numpy() for name in manifest["features"]]
    return numpy.column_stack(columns)


with tempfile.TemporaryDirectory() as folder:
    room = pathlib.Path(folder)
    planetree("sample", "--shape", "mslr", "--rows", 20000, "--seed", 5, "--output", room / "text")
    planetree("convert", room / "text/train.txt", "--output", room / "data")
    rows = matrix(room / "data")
    for leaves in (31, 63):
        model, text = room / f"model{leaves}", room / f"model{leaves}.txt"
        settings = ("--set", "num_trees=200", "--set", f"num_leaves={leaves}")
        planetree("train", "--data", room / "data", "--preset", "lambdamart", *settings, "--model", model)
        planetree("export", model, "--format", "lightgbm", "--output", text)
        bench = ["cargo", "bench", "-q", "-p", "planetree", "--bench", "explain", "--", room / "data", model]
        ours = float(subprocess.run(bench, check=True, capture_output=True, text=True, cwd=ROOT).stdout.split()[-1])
        booster = lightgbm.Booster(model_file=text)
        booster.predict(rows[:100], pred_contrib=True, num_threads=2)  # warm up
        theirs = float("inf")
        for _ in range(3):
            begun = time.perf_counter()
            booster.predict(rows, pred_contrib=True, num_threads=2)
            theirs = min(theirs, time.perf_counter() - begun)
        print(f"{len(rows)} rows, 200 trees of {leaves} leaves: {ours:.2f} s, LightGBM {theirs:.2f} s, ratio {ours / theirs:.2f}")
