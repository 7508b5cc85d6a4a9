"""Compares filled values with scikit-learn's IterativeImputer on forests.

    impute.py mask DATASET MASKED.csv TRUTH.npz
    impute.py compare MASKED FILLED TRUTH.npz
"""
import sys

import numpy as np

from dataset import read_dataset


def mask(dataset, masked, truth):
    """Removes a tenth of the values of features that are sometimes missing, and remembers them."""
    x, y, names, queries = read_dataset(dataset)
    some = np.flatnonzero(np.isnan(x).any(axis=0) & ~np.isnan(x).all(axis=0))
    generator = np.random.default_rng(1)
    hidden = np.zeros(x.shape, dtype=bool)
    hidden[:, some] = (generator.random((len(x), len(some))) < 0.1) & ~np.isnan(x[:, some])
    np.savez(truth, x=x, hidden=hidden)
    shown = np.where(hidden, np.nan, x)
    with open(masked, "w") as file:
        file.write(",".join(["query_id", "label"] + names) + "\n")
        for row in range(len(x)):
            values = ["" if np.isnan(value) else repr(float(value)) for value in shown[row]]
            file.write(",".join([queries[row], repr(float(y[row]))] + values) + "\n")
    print(f"{hidden.sum()} of {np.isfinite(x[:, some]).sum()} values of {len(some)} features are masked")


def compare(masked, filled, truth):
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    known = np.load(truth)
    x, hidden = known["x"], known["hidden"]
    shown, ours = read_dataset(masked)[0], read_dataset(filled)[0]
    assert not np.isnan(ours).any(), "values are still missing"
    forest = RandomForestRegressor(n_estimators=30, min_samples_leaf=3, max_features=0.5, random_state=0, n_jobs=1)
    theirs = IterativeImputer(forest, max_iter=2, random_state=0).fit_transform(shown)

    def error(values):
        """Mean over features of the error in standard deviations."""
        errors = []
        for feature in np.flatnonzero(hidden.any(axis=0)):
            rows, deviation = hidden[:, feature], np.nanstd(x[:, feature])
            if deviation > 0:
                errors.append(np.sqrt(np.mean((values[rows, feature] - x[rows, feature]) ** 2)) / deviation)
        return float(np.mean(errors))

    means = np.broadcast_to(np.nanmean(shown, axis=0), x.shape)
    found, expected, plain = error(ours), error(theirs), error(means)
    print(f"error in standard deviations: planetree {found:.4f}, scikit-learn {expected:.4f}, means {plain:.4f}")
    assert found <= 1.1 * expected, (found, expected)
    assert found < 0.7 * plain, (found, plain)


if __name__ == "__main__":
    {"mask": mask, "compare": compare}[sys.argv[1]](*sys.argv[2:])
