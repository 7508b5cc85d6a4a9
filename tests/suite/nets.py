"""Compares nets trained by planetree with plain gradient descent in numpy.

    nets.py DATASET FIRST LAST SCORES OBJECTIVE NORMALISATION ACTIVATION RATE EPOCHS PENALTY

FIRST and LAST are models after one epoch and after EPOCHS more, trained with optimiser=sgd and batch_queries=0. SCORES are
those of LAST, one per line.
"""
import sys

import numpy as np
import pyarrow.dataset
import pyarrow.parquet

from dataset import read_zero_filled
from linear import normalise


def read_net(model):
    """The features of the inputs, and the weights and biases of each layer."""
    table = pyarrow.parquet.read_table(model).to_pandas()
    features, layers = None, []
    for _, rows in table.groupby("tree", sort=True):
        units = [unit for _, unit in rows.groupby("node", sort=True)]
        if features is None:
            features = list(units[0]["feature"].iloc[1:])
        weights = np.array([unit["value"].to_numpy()[1:] for unit in units])
        biases = np.array([unit["value"].to_numpy()[0] for unit in units])
        layers.append([weights, biases])
    return features, layers


ACTIVATIONS = {
    "tanh": (np.tanh, lambda a: 1 - a * a),
    "relu": (lambda z: np.maximum(z, 0), lambda a: (a > 0).astype(float)),
    "logistic": (lambda z: 1 / (1 + np.exp(-z)), lambda a: a * (1 - a)),
}


def forward(layers, activation, x):
    values = [x]
    for number, (weights, biases) in enumerate(layers):
        sums = values[-1] @ weights.T + biases
        values.append(sums if number + 1 == len(layers) else ACTIVATIONS[activation][0](sums))
    return values


def score_gradients(objective, y, scores):
    """The negative derivatives of the loss of a query by its scores."""
    if objective == "squared":
        return y - scores
    if objective == "listnet":
        softmax = lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).sum()
        return softmax(y) - softmax(scores)
    better = (y[:, None] > y[None, :]).astype(float)
    pull = better / (1 + np.exp(scores[:, None] - scores[None, :]))
    return pull.sum(axis=1) - pull.sum(axis=0)


def main(dataset, first, last, scores, objective, normalisation, activation, rate, epochs, penalty):
    x, y, names, queries = read_zero_filled(dataset)
    table = pyarrow.dataset.dataset(dataset, format="parquet").to_table()
    weights = table["weight"].to_numpy() if "weight" in table.column_names else np.ones(len(y))
    features, layers = read_net(first)
    x = normalise(x.astype(float), queries, weights, normalisation)
    x = x[:, [names.index(feature) for feature in features]]
    numbers = np.array(queries)
    groups = [np.flatnonzero(numbers == query) for query in dict.fromkeys(queries)]
    if objective != "squared":
        groups = [rows for rows in groups if len(set(y[rows].tolist())) > 1]
    for _ in range(int(epochs)):
        values = forward(layers, activation, x)
        gradient = np.zeros(len(y))
        for rows in groups:
            weight = weights[rows] if objective == "squared" else weights[rows].mean()
            gradient[rows] = weight * score_gradients(objective, y[rows], values[-1][rows, 0])
        delta, steps = gradient[:, None] / len(groups), []
        for number in reversed(range(len(layers))):
            steps.insert(0, (delta.T @ values[number], delta.sum(axis=0)))
            if number:
                delta = (delta @ layers[number][0]) * ACTIVATIONS[activation][1](values[number])
        for layer, (of_weights, of_biases) in zip(layers, steps):
            layer[0] = layer[0] + float(rate) * (of_weights - float(penalty) * layer[0])
            layer[1] = layer[1] + float(rate) * of_biases
    _, found = read_net(last)
    flat = lambda net: np.concatenate([part.ravel() for layer in net for part in layer])
    moved = np.abs(flat(found) - flat(read_net(first)[1])).max()
    apart = np.abs(flat(found) - flat(layers)).max()
    assert moved > 1e-3, moved
    assert apart <= 1e-5 * moved + 1e-7, (apart, moved)
    ours = np.loadtxt(scores)
    expected = forward(found, activation, x)[-1][:, 0]
    wrong = np.abs(ours - expected).max()
    assert wrong <= 1e-10 * (1 + np.abs(expected).max()), wrong
    print(f"weights moved by {moved:.3g} and differ by {apart:.2g}, scores by {wrong:.2g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
