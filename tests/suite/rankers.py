"""Trains Coordinate Ascent with fastrank, and writes a score for each row.

    rankers.py DATASET METRIC SEED SCORES
"""
import sys

import fastrank
import numpy as np

from dataset import read_zero_filled
from linear import by_query


def main(dataset, metric, seed, scores):
    x, y, _, queries = read_zero_filled(dataset)
    x = by_query(x.astype(float), queries)
    numbers = {query: number for number, query in enumerate(dict.fromkeys(queries))}
    rows = fastrank.CDataset.from_numpy(
        x.astype(np.float32), y.astype(float), np.array([numbers[query] for query in queries], dtype=np.int64)
    )
    request = fastrank.TrainRequest.coordinate_ascent()
    request.measure = metric
    request.params.seed = int(seed)
    request.params.init_random = False
    request.params.quiet = True
    found = rows.predict_scores(rows.train_model(request))
    np.savetxt(scores, [found[row] for row in range(len(y))], fmt="%.17g")
    print(f"{len(y)} rows scored by fastrank")


if __name__ == "__main__":
    main(*sys.argv[1:])
