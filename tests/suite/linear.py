"""Compares linear models trained by planetree with scikit-learn.

    linear.py linear|logistic DATASET MODEL SCORES NORMALISATION LAMBDA
"""
import sys

import numpy as np
import pyarrow.dataset
import pyarrow.parquet

from dataset import read_zero_filled


def by_query(x, queries):
    """Scales every feature to the range 0 to 1 within each query; a constant feature becomes 0."""
    x, queries = x.copy(), np.array(queries)
    for query in dict.fromkeys(queries.tolist()):
        rows = queries == query
        least, most = x[rows].min(axis=0), x[rows].max(axis=0)
        x[rows] = (x[rows] - least) / np.where(most > least, most - least, 1.0)
    return x


def normalise(x, queries, weights, how):
    if how == "query":
        return by_query(x, queries)
    if how == "z":
        mean = np.average(x, axis=0, weights=weights)
        deviation = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weights))
        return (x - mean) / np.where(deviation > 1e-12, deviation, 1.0)
    if how == "minmax":
        spread = x.max(axis=0) - x.min(axis=0)
        return (x - x.min(axis=0)) / np.where(spread > 0, spread, 1.0)
    return x


def main(preset, dataset, model, scores, how, penalty):
    x, y, names, queries = read_zero_filled(dataset)
    table = pyarrow.dataset.dataset(dataset, format="parquet").to_table()
    weights = table["weight"].to_numpy() if "weight" in table.column_names else np.ones(len(y))
    x, penalty = normalise(x.astype(float), queries, weights, how), float(penalty)
    if preset == "linear":
        from sklearn.linear_model import Ridge

        theirs = Ridge(alpha=penalty, solver="svd", tol=1e-14).fit(x, y, sample_weight=weights)
        expected = theirs.predict(x)
    else:
        from sklearn.linear_model import LogisticRegression

        theirs = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-12, max_iter=1000)
        theirs.fit(x, y >= 1, sample_weight=weights)
        expected = theirs.decision_function(x)
    rows = pyarrow.parquet.read_table(model).to_pydict()
    ours = dict(zip(rows["feature"], rows["value"]))
    coefficients = np.ravel(theirs.coef_)
    constant = x.std(axis=0) < 1e-12
    pairs = [(ours[name], weight) for name, weight, flat in zip(names, coefficients, constant) if not flat]
    worst = max(abs(one - other) / (1 + abs(other)) for one, other in pairs)
    error = np.abs(np.loadtxt(scores) - expected).max()
    assert worst < 1e-6, (worst, pairs)
    assert error < 1e-6, error
    print(f"maximum error of weights {worst:.1e}, of scores {error:.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:])
