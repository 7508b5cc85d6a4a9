#!/usr/bin/env python3
"""Trains the peer of one of planetree's rankers on a dataset, and prints the seconds of the training without reading.

    ranker_peers.py ranksvm|coordinate-ascent|adarank|rankboost|net DATASET THREADS

- ranksvm: scikit-learn's LinearSVC on the differences of all pairs of documents with different labels
- coordinate-ascent: fastrank, with its defaults from equal weights
- adarank: 300 rounds in numpy
- rankboost: LightGBM's lambdarank with 300 stumps and 11 bins
- net: PyTorch, a hidden layer of 10 units and RankNet's loss; the seconds are those of the second epoch
"""
import sys, time
import numpy as np
import pyarrow.dataset

ROLES = ("query_id", "doc_id", "label", "weight", "position")


def read(path):
    """Features normalised by query, labels, and the bounds of the queries."""
    table = pyarrow.dataset.dataset(path, format="parquet").to_table()
    names = [name for name in table.column_names if name not in ROLES]
    queries = table["query_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    starts = np.flatnonzero(np.diff(queries, prepend=-1))
    sizes = np.diff(np.append(starts, len(queries)))
    x = np.empty((len(queries), len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        column = np.nan_to_num(table[name].to_numpy(), nan=0.0)
        least, most = np.minimum.reduceat(column, starts), np.maximum.reduceat(column, starts)
        spread = np.where(most > least, most - least, 1.0)
        x[:, place] = (column - np.repeat(least, sizes)) / np.repeat(spread, sizes)
    return x, table["label"].to_numpy().astype(np.float64), np.append(starts, len(queries))


def ranksvm(x, y, bounds, _threads):
    from sklearn.svm import LinearSVC

    begun = time.perf_counter()
    rows, labels = [], []
    for begin, end in zip(bounds, bounds[1:]):
        better, worse = np.nonzero(y[begin:end, None] > y[None, begin:end])
        side = np.where(np.arange(len(better)) % 2 == 0, 1.0, -1.0)
        rows.append((x[begin + better] - x[begin + worse]) * side[:, None])
        labels.append(side)
    rows, labels = np.concatenate(rows).astype(float), np.concatenate(labels)
    LinearSVC(C=0.5 / len(rows), loss="squared_hinge", dual=False, fit_intercept=False).fit(rows, labels)
    print(f"{len(rows):,} pairs", file=sys.stderr)
    return time.perf_counter() - begun


def coordinate_ascent(x, y, bounds, _threads):
    import fastrank

    queries = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    rows = fastrank.CDataset.from_numpy(x, y, queries.astype(np.int64))
    request = fastrank.TrainRequest.coordinate_ascent()
    request.measure, request.params.seed, request.params.init_random, request.params.quiet = "ndcg@10", 1, False, True
    begun = time.perf_counter()
    rows.train_model(request)
    return time.perf_counter() - begun


def adarank(x, y, bounds, _threads):
    begun = time.perf_counter()
    starts, sizes = bounds[:-1], np.diff(bounds)
    queries = np.repeat(np.arange(len(starts)), sizes)
    places = np.arange(len(y)) - np.repeat(starts, sizes)
    discounts = np.where(places < 10, 1 / np.log2(places + 2), 0.0)
    gains = 2.0**y - 1
    dcg = lambda order: np.add.reduceat(gains[order] * discounts, starts)
    ideal = dcg(np.lexsort((-y, queries)))
    ndcg = lambda scores: np.where(ideal > 0, dcg(np.lexsort((-scores, queries))) / np.maximum(ideal, 1e-300), 0.0)
    of_features = np.column_stack([ndcg(column) for column in x.T])
    weights, last, repeats = np.zeros(x.shape[1]), None, 0
    p = np.full(len(starts), 1 / len(starts))
    for _ in range(300):
        sums = p @ of_features
        if repeats >= 5:
            sums[last] = -1
        best = int(np.argmax(sums))
        repeats = repeats + 1 if best == last else 1
        last = best
        weights[best] += np.log((1 + sums[best]) / (1 - sums[best])) / 2
        p = np.exp(-ndcg(x @ weights.astype(np.float32)))
        p /= p.sum()
    return time.perf_counter() - begun


def rankboost(x, y, bounds, threads):
    import lightgbm

    begun = time.perf_counter()
    data = lightgbm.Dataset(x, y, group=np.diff(bounds), params={"max_bin": 11, "verbosity": -1})
    settings = {"objective": "lambdarank", "num_leaves": 2, "max_bin": 11, "num_threads": threads, "verbosity": -1}
    lightgbm.train(settings, data, 300)
    return time.perf_counter() - begun


def net(x, y, bounds, threads):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    x, y = torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))
    groups = [(int(begin), int(end)) for begin, end in zip(bounds, bounds[1:]) if len(y[begin:end].unique()) > 1]
    model = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 10), torch.nn.Tanh(), torch.nn.Linear(10, 1))
    adam = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(2):
        begun = time.perf_counter()
        order = torch.randperm(len(groups)).tolist()
        for batch in range(0, len(order), 32):
            chosen = [groups[number] for number in order[batch : batch + 32]]
            scores = model(torch.cat([x[begin:end] for begin, end in chosen]))[:, 0]
            labels = torch.cat([y[begin:end] for begin, end in chosen])
            sizes = [end - begin for begin, end in chosen]
            scores = torch.nn.utils.rnn.pad_sequence(scores.split(sizes), batch_first=True)
            labels = torch.nn.utils.rnn.pad_sequence(labels.split(sizes), batch_first=True, padding_value=float("nan"))
            # A comparison with NaN is false, so padding is in no pair.
            query, better, worse = torch.nonzero(labels[:, :, None] > labels[:, None, :], as_tuple=True)
            loss = torch.nn.functional.softplus(scores[query, worse] - scores[query, better]).sum() / len(chosen)
            adam.zero_grad()
            loss.backward()
            adam.step()
        seconds = time.perf_counter() - begun
    return seconds


def main(name, dataset, threads):
    train = {"ranksvm": ranksvm, "coordinate-ascent": coordinate_ascent, "adarank": adarank, "rankboost": rankboost, "net": net}[name]
    print(f"{train(*read(dataset), int(threads)):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
