"""Trains scikit-learn forests on one text file and evaluates them on another; prints NDCG@10, one line per seed.

    forest.py KIND TRAIN TEST TREES SEEDS

KIND: point (RandomForestClassifier with entropy), gini, rand (ExtraTreesClassifier, one feature per node), variance
(RandomForestRegressor). Rows are sampled with replacement: scikit-learn cannot sample whole queries without replacement.
Files may be comma-separated lists and gzipped. NDCG is planetree's: gain 2^label - 1, 0 for a query without gain.
"""
import gzip
import math
import sys

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor


def read(files):
    rows, labels, queries = [], [], []
    for name in files.split(","):
        for line in gzip.open(name, "rt") if name.endswith("gz") else open(name):
            label, query, *pairs = line.split("#")[0].split()
            labels.append(float(label))
            queries.append(name + query)
            rows.append([(int(place), float(value)) for place, value in (pair.split(":") for pair in pairs)])
    width = max(place for row in rows for place, _ in row)
    x = np.zeros((len(rows), width), np.float32)
    for row, pairs in enumerate(rows):
        for place, value in pairs:
            x[row, place - 1] = value
    return x, np.array(labels), queries


def ndcg(labels, scores, queries):
    values, start = [], 0
    for end in range(1, len(queries) + 1):
        if end < len(queries) and queries[end] == queries[start]:
            continue
        gains = 2 ** labels[start:end] - 1
        discounts = 1 / np.log2(np.arange(2, end - start + 2))
        order = np.argsort(-scores[start:end], kind="stable")
        best = (np.sort(gains)[::-1][:10] * discounts[:10]).sum()
        values.append((gains[order][:10] * discounts[:10]).sum() / best if best > 0 else 0.0)
        start = end
    return np.mean(values)


def main():
    kind, train, test, trees, seeds = sys.argv[1:]
    x, y, _ = read(train)
    tx, ty, tq = read(test)
    width = max(x.shape[1], tx.shape[1])
    x, tx = (np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (x, tx))
    features = int(math.log2(width)) + 1
    for seed in range(int(seeds)):
        shared = dict(n_estimators=int(trees), bootstrap=True, n_jobs=2, random_state=seed)
        if kind == "variance":
            forest = RandomForestRegressor(max_features=0.1, **shared).fit(x, y)
            scores = forest.predict(tx)
        else:
            if kind == "rand":
                forest = ExtraTreesClassifier(max_features=1, criterion="entropy", **shared)
            else:
                criterion = "gini" if kind == "gini" else "entropy"
                forest = RandomForestClassifier(max_features=features, criterion=criterion, **shared)
            forest.fit(x, y)
            scores = forest.predict_proba(tx) @ forest.classes_
        print(ndcg(ty, scores, tq))


if __name__ == "__main__":
    main()
