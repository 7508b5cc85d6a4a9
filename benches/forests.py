#!/usr/bin/env python3
"""What a forest costs by its criterion, and how the cost of listwise trees grows: docs/forests.svg.

    benches/forests.py PLANETREE [--data DATASET] [--rows 723412] [--trees 4] [--queries 500,1000,2000,4000] [--work DIR]

Without --data, a dataset of so many rows is generated. Needs nothing but Python. Times are of all cores, in seconds a tree, the
trees of a run growing side by side.
"""
import argparse, json, os, subprocess, tempfile

from measured import draw, generated, run, trained

# Ibrahim & Carman, Table IX: minutes a tree on MSLR-WEB10K, 63 % of its 6,000 queries. They could not run RF-list.
PAPER = {"rf-point": None, "rf-hybrid": 672 * 60, "rf-list": None}
TREES = 500
DEPTHS = [2, 4, 6, 8, 10, 12, 16, 24]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("planetree")
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int, default=723_412)
    parser.add_argument("--trees", type=int, default=4)
    parser.add_argument("--queries", default="500,1000,2000,4000", help="of a tree; no more than the data have")
    parser.add_argument("--work", default=tempfile.gettempdir() + "/planetree-forests")
    arguments = parser.parse_args()
    planetree, work = arguments.planetree, arguments.work
    os.makedirs(work, exist_ok=True)
    data = arguments.data or f"{work}/{arguments.rows}"
    if not os.path.exists(data):
        run(planetree, "convert", f"{generated(planetree, work, arguments.rows)}/train.txt", "--output", data)

    def described(path):
        printed = subprocess.run([planetree, "describe", path, "--json"], check=True, stdout=subprocess.PIPE)
        return json.loads(printed.stdout)

    def grown(preset, trees=arguments.trees, **parameters):
        """Seconds a tree, and its leaves."""
        figures = trained(planetree, work, data, dict(num_trees=trees, seed=1) | parameters, "--preset", preset)
        return figures["train_s"] / trees, described(f"{work}/model.parquet")["leaves"]["mean"]

    queries = [int(count) for count in arguments.queries.split(",")]
    there = described(data)["queries"]
    assert max(queries) <= there, f"a tree cannot see {max(queries)} of {there} queries; name fewer: --queries"
    print("| preset | seconds a tree | leaves a tree | 500 trees | the paper, 500 trees |")
    print("| --- | --- | --- | --- | --- |")
    for preset, paper in PAPER.items():
        seconds, leaves = grown(preset)
        theirs = f"{paper * TREES / 86400:.0f} days" if paper else "-"
        print(f"| `{preset}` | {seconds:.2f} | {leaves:,.0f} | {duration(seconds * TREES)} | {theirs} |", flush=True)
    by_depth = [grown("rf-list", 2, max_depth=depth) for depth in DEPTHS]
    series = {
        "queries of a tree": [(count, grown("rf-list", 2, queries_per_tree=count)[0]) for count in queries],
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
