#!/usr/bin/env python3
"""Training time and memory of the rankers that are not gradient boosting: prints a table.

    benches/rankers.py PLANETREE [--rows 723412] [--threads 2] [--only ranksvm,...] [--peers 5000] [--work DIR]

Data are generated, with the features and the five grades of MSLR. Times are those of the whole training, from reading to
writing the model; memory is the peak of the process, as a ratio to the values of the features as float32. With --peers, a
second table compares with scikit-learn's LinearSVC on all differences of pairs and with fastrank's coordinate ascent, on as
many rows: that needs both packages.
"""
import subprocess, sys

from harness import arguments_of, dataset, measure

FEATURES = 136
# By name: the options, and the seconds and the memory that we accept for 723,412 rows on two threads.
RANKERS = {
    "ranksvm": ("RankSVM, C given", "--preset ranksvm --set svm_c=1", 60),
    "coordinate-ascent": ("Coordinate Ascent, a restart of one sweep", "--preset coordinate-ascent --set num_trees=1 --set tolerance=1", 120),
    "adarank": ("AdaRank, 300 rounds", "--preset adarank --set num_trees=300 --set tolerance=1", 60),
    "rankboost": ("RankBoost, 300 rounds", "--preset rankboost --set num_trees=300", 60),
}
# The time of an epoch is half of what three epochs take longer than one.
NET = ("ranknet-net, an epoch", "--preset ranknet-net --set num_trees={epochs}", 5)
MEMORY = 1.5

PEER = """
import sys, time, numpy as np
sys.path.insert(0, sys.argv[1] + "/tests/suite")
from dataset import read_zero_filled
from linear import by_query, differences
x, y, _, queries = read_zero_filled(sys.argv[2])
x = by_query(x.astype(float), queries)
if sys.argv[3] == "ranksvm":
    from sklearn.svm import LinearSVC
    begun = time.perf_counter()
    rows, weights = differences(x, y, queries, np.ones(len(y)))
    sides = np.where(np.arange(len(rows)) % 2 == 0, 1.0, -1.0)
    LinearSVC(C=1.0, loss="squared_hinge", dual=False, fit_intercept=False).fit(rows * sides[:, None], sides, sample_weight=weights / (2 * len(rows)))
else:
    import fastrank
    numbers = {query: number for number, query in enumerate(dict.fromkeys(queries))}
    rows = fastrank.CDataset.from_numpy(x.astype(np.float32), y.astype(float), np.array([numbers[query] for query in queries], dtype=np.int64))
    request = fastrank.TrainRequest.coordinate_ascent()
    request.measure, request.params.seed, request.params.init_random, request.params.quiet = "ndcg@10", 1, False, True
    begun = time.perf_counter()
    rows.train_model(request)
print(time.perf_counter() - begun)
"""


def options(parser):
    parser.add_argument("--rows", type=int, default=723_412)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default=",".join([*RANKERS, "net"]))
    parser.add_argument("--peers", type=int, help="also compare with scikit-learn and fastrank on this many rows")


def trained(arguments, data, ranker):
    """Seconds and peak MiB of a training."""
    command = [arguments.planetree, "train", "--data", data, "--model", f"{arguments.work}/model.parquet"]
    return measure(command + ["--threads", str(arguments.threads)] + ranker.split())[:2]


def main():
    arguments = arguments_of(options, __doc__.splitlines()[0], "rankers")
    data = dataset(arguments.planetree, arguments.work, arguments.rows)
    values = arguments.rows * FEATURES * 4 / 2**20
    print(f"{arguments.rows:,} rows, {FEATURES} features, {arguments.threads} threads\n")
    print("| ranker | seconds | at most | memory, of the values | at most |")
    print("| --- | --- | --- | --- | --- |")
    for name in arguments.only.split(","):
        if name == "net":
            what, ranker, limit = NET
            (one, _), (three, memory) = (trained(arguments, data, ranker.format(epochs=epochs)) for epochs in (1, 3))
            seconds = (three - one) / 2
        else:
            what, ranker, limit = RANKERS[name]
            seconds, memory = trained(arguments, data, ranker)
        print(f"| {what} | {seconds:.1f} | {limit} | {memory / values:.2f} | {MEMORY} |", flush=True)
    if arguments.peers:
        compare(arguments)


def compare(arguments):
    data = dataset(arguments.planetree, arguments.work, arguments.peers)
    root = __file__.rsplit("/", 2)[0] if "/" in __file__ else ".."
    print(f"\n{arguments.peers:,} rows\n\n| ranker | seconds | peer | seconds |\n| --- | --- | --- | --- |")
    for name, peer, ranker in [
        ("ranksvm", "LinearSVC on all differences", RANKERS["ranksvm"][1]),
        ("coordinate-ascent", "fastrank", "--preset coordinate-ascent"),
    ]:
        ours, _ = trained(arguments, data, ranker)
        theirs = subprocess.run([sys.executable, "-c", PEER, root, data, name], check=True, capture_output=True, text=True)
        print(f"| {name} | {ours:.2f} | {peer} | {float(theirs.stdout.split()[-1]):.2f} |", flush=True)


if __name__ == "__main__":
    main()
