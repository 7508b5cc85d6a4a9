#!/usr/bin/env python3
"""Findings of Mohan's thesis on models made of models, tested on real data: prints one table per finding.

    benches/findings.py PLANETREE DATA [--sets MQ2008,OHSUMED/QueryLevelNorm,...] [--trees 200] [--metric ndcg@10] [--work DIR]

DATA is a directory of datasets, each with the parts S1.txt.gz, S2.txt.gz and so on. Every system is cross-validated on
the parts, and the number of trees is chosen on the validation part of a fold. Differences are over all queries, with the
two-sided p of the randomisation test, without a correction for several tests. Trees are grown on static bins and are
fewer than in the thesis, so that all tables take about a quarter of an hour on two cores. Needs only Python.
"""
import glob, json, os, shutil, subprocess

from harness import arguments_of, run

SETS = "MSLR-sample,MQ2007-85pct,MQ2008,OHSUMED/QueryLevelNorm"


def options(parser):
    parser.add_argument("data", help="directory of the datasets")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--trees", type=int, default=200, help="trees of every forest and boosted model")
    parser.add_argument("--metric", default="ndcg@10")


def systems(trees):
    """Settings by name."""
    static = dict(candidates="static", max_bin=255)
    boosted = dict(preset="gbrt", num_trees=trees) | static
    stages = {"preset": "igbrt", "stage.1.num_trees": trees, "stage.2.num_trees": trees // 2, "stage.2.candidates": "static", "stage.2.max_bin": 255}
    regressions = {"gbrt": boosted, "rf": dict(preset="rf", num_trees=trees), "igbrt": stages}
    classes = {f"{name} classes": settings | dict(target="ordinal") for name, settings in regressions.items()}
    runs = {f"{count} runs": dict(preset="ksgbrt", num_trees=trees, runs=count) | static for count in (2, 5, 10)}
    return regressions | classes | {"1 run": dict(preset="ksgbrt", num_trees=trees) | static} | runs


# By finding: pairs of systems, the one that should be worse first.
FINDINGS = {
    "The average of five or more runs of kSGBRT is better than one run and than two": [("1 run", "5 runs"), ("1 run", "10 runs"), ("2 runs", "5 runs"), ("2 runs", "10 runs")],
    "IGBRT is at least as good as RF, and RF as GBRT": [("rf", "igbrt"), ("gbrt", "rf"), ("gbrt", "igbrt")],
    "Classification is at least as good as regression": [(name, f"{name} classes") for name in ("gbrt", "rf", "igbrt")],
}


def main():
    arguments = arguments_of(options, __doc__.splitlines()[0], "findings")
    planetree, metric = arguments.planetree, arguments.metric
    sets = arguments.sets.split(",")
    for name in sets:
        folder = f"{arguments.work}/{name}"
        os.makedirs(folder, exist_ok=True)
        parts = [part_of(planetree, text, folder) for text in sorted(glob.glob(f"{arguments.data}/{name}/S*.txt.gz"))]
        assert len(parts) >= 3, f"{arguments.data}/{name}: expected at least three parts S1.txt.gz, S2.txt.gz, ..."
        for system, settings in systems(arguments.trees).items():
            cross_validate(planetree, f"{folder}/{system}", parts, settings, metric)
    for finding, pairs in FINDINGS.items():
        print(f"\n{finding} ({metric}):\n")
        print("| data | worse? | | better? | | difference | p | |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for name in sets:
            for one, other in pairs:
                pair = compared(planetree, f"{arguments.work}/{name}", one, other, metric)
                holds = "better" if pair["difference"] > 0 else "worse" if pair["difference"] < 0 else "equal"
                verdict = f"significantly {holds}" if pair["differs"] else f"{holds}, not significant"
                print(f"| {name} | {one} | {pair['mean_a']:.4f} | {other} | {pair['mean_b']:.4f} | {pair['difference']:+.4f} | {pair['p']:.4f} | {verdict} |", flush=True)


def part_of(planetree, text, folder):
    """The dataset of a part, converted once."""
    dataset = f"{folder}/{os.path.basename(text).split('.')[0]}"
    if not os.path.exists(dataset):
        run(planetree, "convert", text, "--output", dataset)
    return dataset


def cross_validate(planetree, output, parts, settings, metric):
    shutil.rmtree(output, ignore_errors=True)
    settings = dict(settings)
    preset = settings.pop("preset")
    pairs = [part for key, value in (settings | dict(metric=metric, seed=1)).items() for part in ("--set", f"{key}={value}")]
    run(planetree, "--quiet", "cv", "--data", *parts, "--preset", preset, "--output", output, *pairs)


def compared(planetree, folder, one, other, metric):
    """The difference between two systems, query by query."""
    files = [f"{name.replace(' ', '-')}={folder}/{name}/metrics.parquet" for name in (one, other)]
    printed = subprocess.run([planetree, "compare", *files, "--metric", metric, "--json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(printed.stdout)["pairs"][0]


if __name__ == "__main__":
    main()
