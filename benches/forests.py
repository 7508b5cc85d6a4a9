#!/usr/bin/env python3
"""What a forest costs by its criterion, and how the cost of listwise trees grows: docs/forests.svg.

    benches/forests.py PLANETREE [--data DATASET] [--rows 723412] [--trees 4] [--work DIR]

Without --data, a dataset of so many rows is generated. Needs nothing but Python. Times are of all cores, in seconds a tree, the
trees of a run growing side by side.
"""
import argparse, json, os, subprocess, tempfile

# Ibrahim & Carman, Table IX: minutes a tree on MSLR-WEB10K, 63 % of its 6,000 queries. They could not run RF-list.
PAPER = {"rf-point": None, "rf-hybrid": 672 * 60, "rf-list": None}
TREES = 500


def run(*command):
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("planetree")
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int, default=723_412)
    parser.add_argument("--trees", type=int, default=4)
    parser.add_argument("--work", default=tempfile.gettempdir() + "/planetree-forests")
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    data = arguments.data or f"{arguments.work}/{arguments.rows}"
    if not os.path.exists(data):
        text = f"{arguments.work}/text-{arguments.rows}"
        run(arguments.planetree, "sample", "--shape", "mslr", "--rows", str(arguments.rows * 5 // 3), "--seed", "7", "--output", text)
        run(arguments.planetree, "convert", f"{text}/train.txt", "--output", data)

    def grown(preset, trees=arguments.trees, **parameters):
        """Seconds a tree, and its leaves."""
        stats, model = f"{arguments.work}/stats.json", f"{arguments.work}/model.parquet"
        settings = dict(num_trees=trees, seed=1) | parameters
        pairs = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        run(arguments.planetree, "train", "--preset", preset, "--data", data, "--model", model, "--stats", stats, *pairs)
        described = subprocess.run([arguments.planetree, "describe", model, "--json"], check=True, stdout=subprocess.PIPE)
        with open(stats) as file:
            return json.load(file)["train_s"] / trees, json.loads(described.stdout)["leaves"]["mean"]

    print("| preset | seconds a tree | leaves a tree | 500 trees | the paper, 500 trees |")
    print("| --- | --- | --- | --- | --- |")
    for preset, paper in PAPER.items():
        seconds, leaves = grown(preset)
        theirs = f"{paper * TREES / 86400:.0f} days" if paper else "-"
        print(f"| `{preset}` | {seconds:.2f} | {leaves:,.0f} | {duration(seconds * TREES)} | {theirs} |", flush=True)
    queries = [500, 1000, 2000, 4000]
    depths = [2, 4, 6, 8, 10, 12, 16, 24]
    by_leaves = [grown("rf-list", 2, max_depth=depth)[::-1] for depth in depths]
    series = {
        "queries of a tree": [(count, grown("rf-list", 2, queries_per_tree=count)[0]) for count in queries],
        "levels": [(depth, seconds) for depth, (_, seconds) in zip(depths, by_leaves)],
        "leaves": by_leaves,
    }
    for name, points in series.items():
        print(name, "  ".join(f"{x:.0f}: {y:.2f}" for x, y in points))
    with open(os.path.join(os.path.dirname(__file__), "../docs/forests.svg"), "w") as file:
        file.write(drawing(series))


def duration(seconds):
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def drawing(series):
    width, height, edge = 250, 200, 45
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {len(series) * width} {height + 20}" font-family="sans-serif" font-size="11">',
             '<rect width="100%" height="100%" fill="white"/>']
    for place, (name, points) in enumerate(series.items()):
        left, most_x, most_y = place * width + edge, max(x for x, _ in points), max(y for _, y in points) * 1.1
        across = lambda x: left + x / most_x * (width - edge - 20)
        up = lambda y: height - edge / 2 - y / most_y * (height - edge - 10)
        parts.append(f'<path d="M{left} {up(most_y):.0f}V{up(0):.0f}H{across(most_x):.0f}" fill="none" stroke="#888"/>')
        line = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="#2a6" stroke-width="2"/>')
        parts += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="2.5" fill="#2a6"/>' for x, y in points]
        parts.append(f'<text x="{left}" y="{height + 8}">0</text>')
        parts.append(f'<text x="{across(most_x):.0f}" y="{height + 8}" text-anchor="end">{most_x:,.0f} {name}</text>')
        parts.append(f'<text x="{left + 4}" y="14">seconds a tree, up to {max(y for _, y in points):.1f}</text>')
    return "\n".join(parts + ["</svg>", ""])


if __name__ == "__main__":
    main()
