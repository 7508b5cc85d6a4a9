#!/usr/bin/env python3
"""Compare `fit` of planetree.Ranker with LGBMRanker and XGBRanker on the same pandas frame: time and peak memory, end to end.

    benches/python_fit.py [--rows 723412] [--features 136] [--trees 100] [--threads N] [--libraries planetree,lightgbm,xgboost]

Every library trains in a process of its own, which makes the frame (float64, one query per 120 rows, labels 0 to 4) and then calls `fit`.
The memory is the peak of the process during `fit` minus what it held before, so the frame itself does not count. All grow LambdaMART trees
of 31 leaves on 255 bins with a learning rate of 0.1. The wheel must be installed: pip install target/wheels/*.whl lightgbm xgboost pandas.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time


def frame(rows, features):
    """Rows whose labels depend on some features."""
    import numpy as np
    import pandas

    random = np.random.default_rng(1)
    values = random.random((rows, features), dtype=np.float32).astype(np.float64)
    values[:, ::3] = np.round(values[:, ::3] * 20)  # a third of the features has few values
    utility = values[:, 1] + values[:, 2] * values[:, 4] + random.normal(0, 0.4, rows)
    labels = np.digitize(utility, np.quantile(utility, [0.5, 0.8, 0.93, 0.98]))
    return pandas.DataFrame(values, columns=[f"f{place + 1}" for place in range(features)]), labels, np.arange(rows) // 120


def ranker(library, trees, threads):
    """The estimator of a library, and the name of its argument for queries."""
    if library == "planetree":
        import planetree

        return planetree.Ranker("lambdamart", num_trees=trees, num_leaves=31, max_bin=255, learning_rate=0.1, threads=threads)
    if library == "lightgbm":
        import lightgbm

        return lightgbm.LGBMRanker(n_estimators=trees, num_leaves=31, max_bin=255, learning_rate=0.1, n_jobs=threads, verbose=-1)
    import xgboost

    return xgboost.XGBRanker(
        objective="rank:ndcg", n_estimators=trees, max_leaves=31, grow_policy="lossguide", max_depth=0, max_bin=255, learning_rate=0.1,
        n_jobs=threads,
    )


def resident():
    """Resident memory of this process, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(library, rows, features, trees, threads):
    """Time and memory of one fit."""
    import numpy as np

    X, y, qid = frame(rows, features)
    estimator = ranker(library, trees, threads)
    queries = {"group": np.unique(qid, return_counts=True)[1]} if library == "lightgbm" else {"qid": qid}
    before, peak, done = resident(), [0], threading.Event()

    def watch():
        while not done.wait(0.01):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begun = time.perf_counter()
    estimator.fit(X, y, **queries)
    seconds = time.perf_counter() - begun
    done.set()
    watcher.join()
    begun = time.perf_counter()
    scores = np.asarray(estimator.predict(X))
    predicting = time.perf_counter() - begun
    first = scores[: 120 * (rows // 120)].reshape(-1, 120)
    gains = (2.0 ** y[: first.size] - 1).reshape(-1, 120)
    discount = 1 / np.log2(np.arange(2, 12))
    ranked = np.take_along_axis(gains, np.argsort(-first, axis=1, kind="stable"), 1)[:, :10] @ discount
    ideal = -np.sort(-gains, axis=1)[:, :10] @ discount
    return {
        "library": library, "fit_s": round(seconds, 2), "fit_MiB": (peak[0] - before) >> 20, "frame_MiB": X.memory_usage().sum() >> 20,
        "predict_s": round(predicting, 2), "ndcg@10": round(float((ranked / np.maximum(ideal, 1e-9)).mean()), 4),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=723_412)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--libraries", default="planetree,lightgbm,xgboost")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, given.rows, given.features, given.trees, given.threads), default=int))
        return
    print(f"{given.rows} rows, {given.features} features, {given.trees} trees, {given.threads} threads")
    for library in given.libraries.split(","):
        words = [sys.executable, __file__, "--one", library]
        words += [f"--{name}={getattr(given, name)}" for name in ("rows", "features", "trees", "threads")]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        print(done.stdout.strip().splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
