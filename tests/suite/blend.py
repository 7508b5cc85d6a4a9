"""Checks of `planetree blend --json` against numpy.

    blend.py PREDICTIONS... BLENDED.json

repeats the least squares of the labels on the scores of the models, each normalised as the JSON says.
"""
import json
import sys

import numpy as np
import pyarrow.parquet


def normalised(queries, scores, how):
    scores = scores.copy()
    for query in np.unique(queries):
        rows = queries == query
        values = scores[rows]
        constant = values.min() == values.max()
        if how == "unit_variance" and not constant:
            scores[rows] = values / values.std()
        elif how == "z":
            scores[rows] = 0.0 if constant else (values - values.mean()) / values.std()
        elif how == "minmax":
            scores[rows] = 0.0 if constant else (values - values.min()) / (values.max() - values.min())
        elif how == "rank":
            ranks = (values[:, None] > values).sum(1) + ((values[:, None] == values).sum(1) - 1) / 2
            scores[rows] = 0.5 if len(values) < 2 else ranks / (len(values) - 1)
    return scores


def main(tables, blended):
    blended = json.load(open(blended))
    tables = [pyarrow.parquet.read_table(path) for path in tables]
    queries = np.array(tables[0]["query_id"].to_pylist())
    labels = tables[0]["label"].to_numpy().astype(float)
    columns = [
        normalised(queries, table["score"].to_numpy(), model["normalise"])
        for table, model in zip(tables, blended["models"])
    ]
    matrix = np.column_stack(columns + [np.ones(len(labels))])
    expected = np.linalg.lstsq(matrix, labels, rcond=None)[0]
    found = [model["weight"] for model in blended["models"]] + [blended["intercept"]]
    for ours, theirs in zip(found, expected):
        assert abs(ours - theirs) <= 1e-9 * max(1.0, abs(theirs)), (found, expected)
    print(f"{len(labels)} rows: {found}")


if __name__ == "__main__":
    main(sys.argv[1:-1], sys.argv[-1])
