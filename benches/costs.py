#!/usr/bin/env python3
"""Time of training with costs, of scoring with early exits and of filling missing values: prints a table.

    benches/costs.py PLANETREE [--rows 50000] [--trees 1000] [--train-trees 100] [--repeats 3] [--missing TEXT...] [--work DIR]

Cost-aware training is compared with training without costs, and early exits of 20 % of the remaining documents after every
100 trees with scoring by all trees. --missing names LETOR text with missing values, which `impute` fills. Other data are
generated, with the features of MSLR. Needs only Python. Times are the least of several interleaved repeats.
"""
import json, os

from harness import arguments_of, dataset, measure, run, train


def options(parser):
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--trees", type=int, default=1000, help="trees of the model that scores")
    parser.add_argument("--train-trees", type=int, default=100, help="trees of each training")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--missing", nargs="*", default=[], help="LETOR text with missing values")


def main():
    arguments = arguments_of(options, __doc__.splitlines()[0], "costs")
    planetree, work = arguments.planetree, arguments.work
    data = dataset(planetree, work, arguments.rows)
    costs = f"{work}/costs.csv"
    with open(costs, "w") as file:
        file.write("feature,cost\n" + "".join(f"f{feature},{4 ** (feature % 5)}\n" for feature in range(1, 137)))

    def trained(preset, *more):
        return train(planetree, work, data, dict(num_trees=arguments.train_trees, seed=1), "--preset", preset, *more)["train_s"]

    def scored(*exits):
        """Seconds of scoring, without opening the model and the dataset."""
        run(planetree, "predict", "--model", f"{work}/scorer.parquet", "--data", data, "--scores", f"{work}/scores.txt", "--stats", f"{work}/stats.json", *exits)
        with open(f"{work}/stats.json") as file:
            return json.load(file)["predict_s"]

    print("| what | seconds | compared with | seconds | ratio | at most |")
    print("| --- | --- | --- | --- | --- | --- |")

    def compare(what, ours, against, theirs, limit):
        pairs = [(ours(), theirs()) for _ in range(arguments.repeats)]
        ours_s, theirs_s = (min(times) for times in zip(*pairs))
        print(f"| {what} | {ours_s:.2f} | {against} | {theirs_s:.2f} | {ours_s / theirs_s:.2f} | {limit} |", flush=True)

    for preset in "planet", "lambdamart", "rf":
        compare(f"`{preset}` with costs", lambda: trained(preset, "--costs", costs), "without", lambda: trained(preset), 1.05)
    train(planetree, work, data, dict(num_trees=arguments.trees, seed=1), "--preset", "planet")
    os.replace(f"{work}/model.parquet", f"{work}/scorer.parquet")
    exits = ["--exit-every", "100", "--exit-percent", "20", "--exit-scope"]
    for scope in "pooled", "query":
        compare(f"exits, {scope}", lambda: scored(*exits, scope), f"all {arguments.trees} trees", scored, 0.6)
    if arguments.missing:
        run(planetree, "convert", *arguments.missing, "--output", f"{work}/missing", "--overwrite")
        seconds, _, _ = measure([planetree, "impute", "--data", f"{work}/missing", "--output", f"{work}/filled", "--overwrite"])
        print(f"| `impute` | {seconds:.1f} | a minute | 60 | {seconds / 60:.2f} | 1 |", flush=True)


if __name__ == "__main__":
    main()
