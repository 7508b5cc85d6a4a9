"""Checks a listwise tree against the definition of expected NDCG, in floating point and by brute force.

    listwise.py DATASET MODEL [SPLITS]

The first tree of the model was grown on all queries and features of the dataset, level by level. For each split, every
threshold of every feature of the node is tried: the chosen one has the gain in the model, and none gains more.
"""
import sys

import numpy as np
import pyarrow.parquet

from dataset import read_zero_filled


def expected_dcg(gains, scores):
    """The mean over all orders of tied documents: each has the mean gain of its tie."""
    discounts = 1 / np.log2(np.arange(2, len(gains) + 2))
    order = np.argsort(-scores, kind="stable")
    gains, scores = gains[order], scores[order]
    total = 0.0
    for score in np.unique(scores):
        tie = scores == score
        total += gains[tie].mean() * discounts[tie].sum()
    return total


def mean_ndcg(queries, gains, scores):
    values = []
    for rows in queries:
        best = np.sort(gains[rows])[::-1] @ (1 / np.log2(np.arange(2, len(rows) + 2)))
        values.append(expected_dcg(gains[rows], scores[rows]) / best if best > 0 else 0.0)
    return np.mean(values)


def main(dataset, model, most="40"):
    features, labels, names, ids = read_zero_filled(dataset)
    gains = 2.0**labels - 1
    queries = [np.flatnonzero(np.array(ids) == query) for query in dict.fromkeys(ids)]
    rows = pyarrow.parquet.read_table(model).to_pylist()
    nodes = {row["node"]: row for row in rows if row["tree"] == 0}
    splits = sorted((node for node in nodes.values() if node["feature"] is not None), key=lambda node: node["left"])
    assert splits, "the tree has no split"
    leaf = np.zeros(len(labels), int)
    scores = np.full(len(labels), labels.mean())
    now = mean_ndcg(queries, gains, scores)
    for node in splits[: int(most)]:
        here = np.flatnonzero(leaf == node["node"])
        best = -1.0
        for feature in range(features.shape[1]):
            values = np.unique(features[here, feature])
            for low, high in zip(values, values[1:]):
                left = here[features[here, feature] <= low]
                right = here[features[here, feature] > low]
                tried = scores.copy()
                tried[left], tried[right] = labels[left].mean(), labels[right].mean()
                best = max(best, mean_ndcg(queries, gains, tried) - now)
        assert abs(best - node["gain"]) < 1e-9, (node, best)
        goes_left = features[here, names.index(node["feature"])] <= node["threshold"]
        for child, rows_of_child in ((node["left"], here[goes_left]), (node["right"], here[~goes_left])):
            leaf[rows_of_child] = child
            scores[rows_of_child] = labels[rows_of_child].mean()
            assert abs(nodes[child]["value"] - labels[rows_of_child].mean()) < 1e-12
        after = mean_ndcg(queries, gains, scores)
        assert abs(after - now - node["gain"]) < 1e-9, (node, after - now)
        now = after
    print(f"{min(len(splits), int(most))} of {len(splits)} splits, expected NDCG {now:.6f}")


main(*sys.argv[1:])
