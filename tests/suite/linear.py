"""Compares linear models trained by planetree with scikit-learn.

    linear.py linear|logistic|svm|ranksvm DATASET MODEL SCORES NORMALISATION LAMBDA

For SVMs, LAMBDA is svm_c, and the objective of both solutions is compared. That of ranksvm is computed on all pairs.
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


def differences(x, y, queries, weights):
    """The differences of all pairs of one query with different labels, the better document first, and the pairs' weights."""
    queries, found, of_pairs = np.array(queries), [], []
    for query in dict.fromkeys(queries.tolist()):
        rows = np.flatnonzero(queries == query)
        better, worse = np.nonzero(y[rows][:, None] > y[rows][None, :])
        found.append(x[rows[better]] - x[rows[worse]])
        of_pairs.append(np.full(len(better), weights[rows].mean()))
    return np.concatenate(found), np.concatenate(of_pairs)


def compare_svm(preset, x, y, queries, weights, ours, scores, cost):
    from sklearn.svm import LinearSVC

    if preset == "svm":
        rows, sides, intercept = x, np.where(y >= 1, 1.0, -1.0), np.mean(scores - x @ ours)
    else:
        rows, weights = differences(x, y, queries, weights)
        # Half of the pairs are turned around, because the solver wants two classes.
        sides, intercept = np.where(np.arange(len(rows)) % 2 == 0, 1.0, -1.0), 0.0
        rows = rows * sides[:, None]
    total = weights.sum()

    def objective(w, b):
        short = np.maximum(0, 1 - sides * (rows @ w + b))
        return w @ w / 2 + cost / total * (weights @ short**2) / 2

    theirs = LinearSVC(C=1.0, loss="squared_hinge", dual=False, tol=1e-12, max_iter=100000,
                       fit_intercept=preset == "svm", intercept_scaling=1e4)
    theirs.fit(rows, sides, sample_weight=weights * cost / (2 * total))
    best, found = objective(np.ravel(theirs.coef_), np.ravel(theirs.intercept_)[0] if preset == "svm" else 0.0), objective(ours, intercept)
    assert abs(found - best) <= 1e-6 * best, (found, best)
    print(f"objective {found:.12g}, of scikit-learn {best:.12g}")


def main(preset, dataset, model, scores, how, penalty):
    x, y, names, queries = read_zero_filled(dataset)
    table = pyarrow.dataset.dataset(dataset, format="parquet").to_table()
    weights = table["weight"].to_numpy() if "weight" in table.column_names else np.ones(len(y))
    x, penalty = normalise(x.astype(float), queries, weights, how), float(penalty)
    if preset in ("svm", "ranksvm"):
        rows = pyarrow.parquet.read_table(model).to_pydict()
        of_feature = dict(zip(rows["feature"], rows["value"]))
        ours = np.array([of_feature[name] for name in names])
        return compare_svm(preset, x, y, queries, weights, ours, np.loadtxt(scores), penalty)
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
