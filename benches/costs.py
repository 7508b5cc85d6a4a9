#!/usr/bin/env python3
"""Time of training with costs and with missing values, of scoring with early exits and of filling missing values: prints tables.

    benches/costs.py PLANETREE [--rows 50000] [--trees 1000] [--train-trees 100] [--repeats 3] [--missing TEXT...] [--work DIR]

Cost-aware training is compared with training without costs, and early exits of 20 % of the remaining documents after every
100 trees with scoring by all trees. Three-way splits (`missing=branch`) are compared with `learned`, at equal depth and at
an equal number of leaves, per tree and per split. --missing names LETOR text with missing values, which `impute` fills. Other
data are generated, with the features of MSLR. Needs only Python. Times are the least of several interleaved repeats.
"""
import json, os, subprocess

from harness import arguments_of, dataset, letor_text, measure, run, train


def options(parser):
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--trees", type=int, default=1000, help="trees of the model that scores")
    parser.add_argument("--train-trees", type=int, default=100, help="trees of each training")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--missing", nargs="*", default=[], help="LETOR text with missing values")


def main():
    arguments = arguments_of(options, __doc__.splitlines()[0], "costs")
    planetree, work, threads = arguments.planetree, arguments.work, ("--threads", str(arguments.threads))
    data = dataset(planetree, work, arguments.rows)
    costs = f"{work}/costs.csv"
    with open(costs, "w") as file:
        file.write("feature,cost\n" + "".join(f"f{feature},{4 ** (feature % 5)}\n" for feature in range(1, 137)))

    def trained(preset, *more):
        return train(planetree, work, data, dict(num_trees=arguments.train_trees, seed=1), "--preset", preset, *threads, *more)["train_s"]

    def scored(*exits):
        """Seconds of scoring, without opening the model and the dataset."""
        run(planetree, "predict", "--model", f"{work}/scorer.parquet", "--data", data, "--scores", f"{work}/scores.txt", "--stats", f"{work}/stats.json", *threads, *exits)
        with open(f"{work}/stats.json") as file:
            return json.load(file)["predict_s"]

    print("| what | seconds | compared with | seconds | ratio | at most | ratio of splits |")
    print("| --- | --- | --- | --- | --- | --- | --- |")

    def compare(what, ours, against, theirs, limit, size=lambda: 1):
        pairs = [(ours(), size(), theirs(), size()) for _ in range(arguments.repeats)]
        ours_s, our_size, theirs_s, their_size = (min(numbers) for numbers in zip(*pairs))
        splits = f"{our_size / their_size:.2f}" if their_size > 1 else ""
        print(f"| {what} | {ours_s:.3f} | {against} | {theirs_s:.3f} | {ours_s / theirs_s:.2f} | {limit} | {splits} |", flush=True)

    for preset in "planet", "lambdamart", "rf":
        compare(f"`{preset}` with costs", lambda: trained(preset, "--costs", costs), "without", lambda: trained(preset), 1.05, lambda: splits_of(planetree, work))
    train(planetree, work, data, dict(num_trees=arguments.trees, seed=1), "--preset", "planet")
    os.replace(f"{work}/model.parquet", f"{work}/scorer.parquet")
    exits = ["--exit-every", "100", "--exit-percent", "20", "--exit-scope"]
    for scope in "pooled", "query":
        compare(f"exits, {scope}", lambda: scored(*exits, scope), f"all {arguments.trees} trees", scored, 0.6)
    three_way(arguments, threads)
    if arguments.missing:
        run(planetree, "convert", *arguments.missing, "--output", f"{work}/missing", "--overwrite")
        seconds, _, _ = measure([planetree, "impute", "--data", f"{work}/missing", "--output", f"{work}/filled", "--overwrite"])
        print(f"\n`impute`: {seconds:.1f} s (at most a minute)", flush=True)


def splits_of(planetree, work):
    """Number of splits of the trained model."""
    described = subprocess.run([planetree, "describe", f"{work}/model.parquet", "--json"], check=True, capture_output=True).stdout
    return sum(feature["splits"] for feature in json.loads(described)["importance"])


def three_way(arguments, threads):
    """Trees of three children beside those of two, on data whose zeros are missing."""
    planetree, work = arguments.planetree, arguments.work
    data = f"{work}/{arguments.rows}-zeros"
    if not os.path.exists(data):
        run(planetree, "convert", f"{letor_text(planetree, work, arguments.rows)}/train.txt", "--zero-as-missing", "--output", data)
    kinds = {
        "bins, depth 5": dict(max_depth=5),
        "bins, 31 leaves": dict(max_depth=0, num_leaves=31),
        "streaming, 255 groups, depth 5": dict(candidates="streaming", value_groups=255, max_bin=25, max_depth=5),
    }

    def trained(settings, missing):
        """Milliseconds per tree and splits per tree."""
        settings = dict(settings, missing=missing, num_trees=arguments.train_trees, seed=1)
        seconds = train(planetree, work, data, settings, "--preset", "planet", *threads)["train_s"]
        return 1000 * seconds / arguments.train_trees, splits_of(planetree, work) / arguments.train_trees

    print("\n| `missing=branch` and `learned` | ms per tree | ratio | splits per tree | us per split | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind, settings in kinds.items():
        pairs = [(trained(settings, "branch"), trained(settings, "learned")) for _ in range(arguments.repeats)]
        (ours, splits), (theirs, others) = (min(times) for times in zip(*pairs))
        each, other = 1000 * ours / splits, 1000 * theirs / others
        print(f"| {kind} | {ours:.1f} / {theirs:.1f} | {ours / theirs:.2f} | {splits:.0f} / {others:.0f} | {each:.0f} / {other:.0f} | {each / other:.2f} |", flush=True)


if __name__ == "__main__":
    main()
