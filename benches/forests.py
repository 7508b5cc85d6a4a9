#!/usr/bin/env python3
"""Training time of forests by preset, and how that of listwise trees grows: prints a table, draws docs/forests.svg.

    benches/forests.py PLANETREE [--data DATASET] [--rows 723412] [--trees 4] [--queries 500,1000,2000,4000] [--work DIR]

Without --data, a dataset of --rows rows is generated. Needs only Python. Times are seconds per tree on all cores, which
grow the trees of a run in parallel.
"""
import json, subprocess

from harness import arguments_of, dataset, draw, train

# Ibrahim & Carman, Table IX: minutes per tree on MSLR-WEB10K, 63 % of its 6,000 queries. They could not run RF-list.
PAPER = {"rf-point": None, "rf-hybrid": 672 * 60, "rf-list": None}
TREES = 500
DEPTHS = [2, 4, 6, 8, 10, 12, 16, 24]


def options(parser):
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int, default=723_412)
    parser.add_argument("--trees", type=int, default=4)
    parser.add_argument("--queries", default="500,1000,2000,4000", help="numbers of queries per tree, at most those of the data")


def main():
    arguments = arguments_of(options, __doc__.splitlines()[0], "forests")
    planetree, work = arguments.planetree, arguments.work
    data = arguments.data or dataset(planetree, work, arguments.rows)

    def described(path):
        printed = subprocess.run([planetree, "describe", path, "--json"], check=True, stdout=subprocess.PIPE)
        return json.loads(printed.stdout)

    def grown(preset, trees=arguments.trees, **parameters):
        """Seconds and leaves per tree."""
        figures = train(planetree, work, data, dict(num_trees=trees, seed=1) | parameters, "--preset", preset)
        return figures["train_s"] / trees, described(f"{work}/model.parquet")["leaves"]["mean"]

    queries = [int(count) for count in arguments.queries.split(",")]
    available = described(data)["queries"]
    assert max(queries) <= available, f"the data have only {available} queries, {max(queries)} were requested: lower --queries"
    print("| preset | seconds per tree | leaves per tree | 500 trees | the paper, 500 trees |")
    print("| --- | --- | --- | --- | --- |")
    for preset, paper in PAPER.items():
        seconds, leaves = grown(preset)
        theirs = f"{paper * TREES / 86400:.0f} days" if paper else "-"
        print(f"| `{preset}` | {seconds:.2f} | {leaves:,.0f} | {duration(seconds * TREES)} | {theirs} |", flush=True)
    by_depth = [grown("rf-list", 2, max_depth=depth) for depth in DEPTHS]
    series = {
        "queries per tree": [(count, grown("rf-list", 2, queries_per_tree=count)[0]) for count in queries],
        "levels": [(depth, seconds) for depth, (seconds, _) in zip(DEPTHS, by_depth)],
        "leaves": [(leaves, seconds) for seconds, leaves in by_depth],
    }
    for name, points in series.items():
        print(name, "  ".join(f"{x:.0f}: {y:.2f}" for x, y in points))
    draw("forests.svg", series, "s")


def duration(seconds):
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


if __name__ == "__main__":
    main()
