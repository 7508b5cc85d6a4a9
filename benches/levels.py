#!/usr/bin/env python3
"""Bytes and milliseconds per tree level on clusters of this machine: the tables of docs/scale.md.

    benches/levels.py PLANETREE [OTHER_PLANETREE ...] [--rows 50000,723412] [--trees 15] [--executors 1,2,3?merge=2]
                      [--preset planet] [--set workers=4 ...] [--runs 3] [--work DIR]

Every PLANETREE must be built with `--features cluster`. Needs only Python. Milliseconds are the least of several runs;
bytes are the same in all of them. The models of one binary must be equal on any number of executors.
"""
import argparse
import hashlib
import json
import os

from harness import letor_text, run


def numbers(text):
    return [int(number) for number in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("planetree", nargs="+", help="binaries to compare")
    parser.add_argument("--rows", type=numbers, default=[50_000, 723_412])
    parser.add_argument("--trees", type=int, default=15)
    parser.add_argument("--executors", type=lambda text: text.split(","), default=["1", "2", "3"],
                        help="numbers of executors, with options such as 3?merge=2 [default: 1,2,3]")
    parser.add_argument("--preset", action="append", help="may be repeated [default: planet and pgbrt with 4 and 8 workers]")
    parser.add_argument("--set", action="append", default=[], help="parameter, for all presets")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--work", default="/tmp/planetree-levels")
    return parser.parse_args()


def dataset(planetree, work, rows):
    """Converts generated rows once, for all binaries."""
    place = f"{work}/{rows}"
    if not os.path.exists(place):
        text = letor_text(planetree, work, rows)
        run(planetree, "convert", f"{text}/train.txt", "--output", place, "--partition-rows", "20000")
    return place


def train(planetree, work, data, preset, settings, cluster):
    """Trains once. Returns the statistics and the hash of the model."""
    model, stats = f"{work}/model", f"{work}/stats.json"
    name, *own = preset.split()
    set_all = [word for setting in own + settings for word in ("--set", setting)]
    where = ["--cluster", cluster] if cluster else []
    run(planetree, "--quiet", "train", "--preset", name, "--data", data, "--model", model, "--stats", stats,
        "--threads", "2", *set_all, *where)
    with open(stats) as file, open(model, "rb") as trained:
        return json.load(file), hashlib.sha256(trained.read()).hexdigest()


def main():
    arguments = parse()
    work, settings = arguments.work, [f"num_trees={arguments.trees}", "max_depth=5"] + arguments.set
    os.makedirs(work, exist_ok=True)
    presets = arguments.preset or ["planet", "pgbrt workers=4", "pgbrt workers=8"]
    print("| binary | rows | preset | where | train, s | ms per level, p50 / p95 | bytes per level, p50 / p95 | total, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for planetree in arguments.planetree:
        for rows in arguments.rows:
            data = dataset(arguments.planetree[0], work, rows)
            for preset in presets:
                hashes = set()
                for cluster in [None] + [f"local:{count}" for count in arguments.executors]:
                    done = [train(planetree, work, data, preset, settings, cluster) for _ in range(arguments.runs)]
                    hashes.update(digest for _, digest in done)
                    seconds = min(stats["train_s"] for stats, _ in done)
                    cells = [planetree, rows, preset, cluster or "one process", f"{seconds:.1f}"]
                    if cluster:
                        levels = [stats["cluster"] for stats, _ in done]
                        least = lambda key: min(level[key] for level in levels)
                        cells.append(f"{least('level_ms_p50'):.0f} / {least('level_ms_p95'):.0f}")
                        cells.append(f"{least('level_bytes_p50'):.0f} / {least('level_bytes_p95'):.0f}")
                        cells.append(f"{least('received_bytes') / 1e6:.1f}")
                    else:
                        cells += ["", "", ""]
                    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)
                if len(hashes) > 1:
                    raise SystemExit(f"{planetree}, {rows} rows, {preset}: the models differ")


if __name__ == "__main__":
    main()
