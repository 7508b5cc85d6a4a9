#!/usr/bin/env python3
"""Training time and memory of the rankers that are not gradient boosting: prints a table.

    benches/rankers.py PLANETREE [--rows 723412] [--threads 2] [--only ranksvm,...] [--peers 10000] [--work DIR]

Data are generated, with the features and the five grades of MSLR. Times are those of the whole training, from reading to
writing the model; memory is the peak of the process, as a ratio to the values of the features as float32. With --peers, a
second table compares with the peers of ranker_peers.py, whose packages it needs: with scikit-learn and fastrank on as many
rows, with the others on all rows.
"""
import subprocess, sys

from harness import arguments_of, dataset, measure

FEATURES = 136
# By name: the options, and the seconds that we accept for 723,412 rows on two threads.
RANKERS = {
    "ranksvm": ("RankSVM, C given", "--preset ranksvm --set svm_c=1", 60),
    "coordinate-ascent": ("Coordinate Ascent, a restart of one sweep", "--preset coordinate-ascent --set num_trees=1 --set tolerance=1", 120),
    "adarank": ("AdaRank, 300 rounds", "--preset adarank --set num_trees=300 --set tolerance=1", 60),
    "rankboost": ("RankBoost, 300 rounds", "--preset rankboost --set num_trees=300", 60),
}
# The time of an epoch is half of what three epochs take longer than one.
NET = ("ranknet-net, an epoch", "--preset ranknet-net --set num_trees={epochs}", 5)
# Of the values of the features.
MEMORY = 1.5
# By name: the peer, whether it can take all rows, and our options if they are not those of the first table.
PEERS = {
    "ranksvm": ("scikit-learn's LinearSVC on all differences", False, None),
    "coordinate-ascent": ("fastrank, 5 restarts", False, "--preset coordinate-ascent"),
    "adarank": ("AdaRank in numpy", True, None),
    "rankboost": ("LightGBM's lambdarank, 300 stumps", True, None),
    "net": ("PyTorch, an epoch", True, None),
}


def options(parser):
    parser.add_argument("--rows", type=int, default=723_412)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default=",".join([*RANKERS, "net"]))
    parser.add_argument("--peers", type=int, help="also compare with other programs, slow ones on this many rows")
    parser.add_argument("--peers-python", default=sys.executable, help="the Python that has the packages of the peers")


def trained(arguments, data, ranker):
    """Seconds and peak MiB of a training."""
    command = [arguments.planetree, "train", "--data", data, "--model", f"{arguments.work}/model.parquet"]
    return measure(command + ["--threads", str(arguments.threads)] + ranker.split())[:2]


def ours(arguments, data, name, ranker=None):
    """Seconds and peak MiB of a ranker; for nets, the seconds of an epoch."""
    if name == "net":
        (one, _), (three, memory) = (trained(arguments, data, NET[1].format(epochs=epochs)) for epochs in (1, 3))
        return (three - one) / 2, memory
    return trained(arguments, data, ranker or RANKERS[name][1])


def main():
    arguments = arguments_of(options, __doc__.splitlines()[0], "rankers")
    data = dataset(arguments.planetree, arguments.work, arguments.rows)
    values = arguments.rows * FEATURES * 4 / 2**20
    print(f"{arguments.rows:,} rows, {FEATURES} features, {arguments.threads} threads\n")
    print("| ranker | seconds | at most | memory, of the values | at most |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    found = {}
    for name in arguments.only.split(","):
        what, _, limit = NET if name == "net" else RANKERS[name]
        found[name] = seconds, memory = ours(arguments, data, name)
        print(f"| {what} | {seconds:.2f} | {limit} | {memory / values:.2f} | {MEMORY} |", flush=True)
    if arguments.peers:
        compare(arguments, found)


def compare(arguments, found):
    print("\n| ranker | rows | seconds | MiB | peer | seconds | MiB |\n| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    script = __file__.replace("rankers.py", "ranker_peers.py")
    for name, (seconds, memory) in found.items():
        peer, is_whole, ranker = PEERS[name]
        rows = arguments.rows if is_whole else arguments.peers
        data = dataset(arguments.planetree, arguments.work, rows)
        if not is_whole:
            seconds, memory = ours(arguments, data, name, ranker)
        _, theirs, output = measure([arguments.peers_python, script, name, data, str(arguments.threads)])
        print(f"| {name} | {rows:,} | {seconds:.2f} | {memory:.0f} | {peer} | {float(output):.2f} | {theirs:.0f} |", flush=True)


if __name__ == "__main__":
    main()
