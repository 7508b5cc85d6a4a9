#!/usr/bin/env python3
"""How training time grows with rows, features, bins and depth: runs planetree, draws docs/scaling.svg.

    benches/scaling.py PLANETREE [--rows 400000] [--trees 20] [--work DIR]

Needs nothing but Python. Every point is the best of three runs with two threads, in milliseconds a tree.
"""
import argparse, json, os, subprocess, tempfile


def run(*command):
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def narrowed(text, features, output):
    """A copy of LETOR text with the first features only."""
    with open(text) as lines, open(output, "w") as out:
        for line in lines:
            fields = line.split("#")[0].split()
            kept = [field for field in fields[2:] if int(field.split(":")[0]) <= features]
            out.write(" ".join(fields[:2] + kept) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("planetree")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--work", default=tempfile.gettempdir() + "/planetree-scaling")
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)

    def dataset(rows, features=136):
        place = f"{arguments.work}/{rows}-{features}"
        if not os.path.exists(place):
            text = f"{arguments.work}/text-{rows}"
            if not os.path.exists(text):
                run(arguments.planetree, "sample", "--shape", "mslr", "--rows", str(rows * 5 // 3), "--seed", "7", "--output", text)
            source = f"{text}/train.txt"
            if features < 136:
                narrowed(source, features, f"{text}/{features}.txt")
                source = f"{text}/{features}.txt"
            run(arguments.planetree, "convert", source, "--output", place)
        return place

    def milliseconds(data, **parameters):
        settings = dict(num_trees=arguments.trees, max_depth=5, max_bin=255) | parameters
        pairs = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        best = float("inf")
        for _ in range(3):
            stats = f"{arguments.work}/stats.json"
            run(arguments.planetree, "train", "--data", data, "--model", f"{arguments.work}/model.parquet", "--threads", "2", "--stats", stats, *pairs)
            with open(stats) as file:
                figures = json.load(file)
            best = min(best, figures["train_s"] / figures["trees"] * 1000)
        return best

    rows = arguments.rows
    series = {
        "rows": [(n, milliseconds(dataset(n))) for n in (rows // 8, rows // 4, rows // 2, rows)],
        "features": [(f, milliseconds(dataset(rows, f))) for f in (17, 34, 68, 136)],
        "bins": [(b, milliseconds(dataset(rows), max_bin=b)) for b in (15, 31, 63, 127, 255)],
        "depth": [(d, milliseconds(dataset(rows), max_depth=d)) for d in (2, 4, 6, 8, 10)],
    }
    for name, points in series.items():
        print(name, "  ".join(f"{x}: {y:.1f}" for x, y in points))
    with open(os.path.join(os.path.dirname(__file__), "../docs/scaling.svg"), "w") as file:
        file.write(drawing(series))


def drawing(series):
    width, height, edge = 230, 200, 40
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {len(series) * width} {height + 20}" font-family="sans-serif" font-size="11">',
             '<rect width="100%" height="100%" fill="white"/>']
    for place, (name, points) in enumerate(series.items()):
        left, most_x, most_y = place * width + edge, max(x for x, _ in points), max(y for _, y in points) * 1.1
        across = lambda x: left + x / most_x * (width - edge - 20)
        up = lambda y: height - edge / 2 - y / most_y * (height - edge - 10)
        parts.append(f'<path d="M{left} {up(most_y):.0f}V{up(0):.0f}H{across(most_x):.0f}" fill="none" stroke="#888"/>')
        line = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="#1668a8" stroke-width="2"/>')
        for x, y in points:
            parts.append(f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="#1668a8"><title>{name} {x}: {y:.1f} ms a tree</title></circle>')
        x, y = points[-1]
        parts.append(f'<text x="{across(x):.0f}" y="{up(y) - 8:.0f}" text-anchor="end">{y:.0f} ms</text>')
        parts.append(f'<text x="{across(most_x):.0f}" y="{height - 4}" text-anchor="end">{most_x:,}</text>')
        parts.append(f'<text x="{left + (width - edge - 20) / 2:.0f}" y="{height + 14}" text-anchor="middle" font-weight="bold">{name}</text>')
    return "\n".join(parts + ["</svg>", ""])


if __name__ == "__main__":
    main()
