#!/usr/bin/env python3
"""Training time by number of rows, features, bins and levels: runs planetree, draws docs/scaling.svg.

    benches/scaling.py PLANETREE [--rows 400000] [--trees 20] [--work DIR]

Needs only Python. Each point is the best of three runs with two threads, in milliseconds per tree.
"""
import os

from harness import arguments_of, draw, letor_text, run, train


def narrowed(text, features, output):
    """Copies LETOR text with only its first features."""
    with open(text) as lines, open(output, "w") as out:
        for line in lines:
            fields = line.split("#")[0].split()
            kept = [field for field in fields[2:] if int(field.split(":")[0]) <= features]
            out.write(" ".join(fields[:2] + kept) + "\n")


def options(parser):
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--trees", type=int, default=20)


def main():
    arguments = arguments_of(options, __doc__.splitlines()[0], "scaling")
    planetree, work = arguments.planetree, arguments.work

    def dataset(rows, features=136):
        place = f"{work}/{rows}-{features}"
        if not os.path.exists(place):
            text = letor_text(planetree, work, rows)
            source = f"{text}/train.txt"
            if features < 136:
                narrowed(source, features, f"{text}/{features}.txt")
                source = f"{text}/{features}.txt"
            run(planetree, "convert", source, "--output", place)
        return place

    def milliseconds(data, **parameters):
        settings = dict(num_trees=arguments.trees, max_depth=5, max_bin=255) | parameters
        figures = [train(planetree, work, data, settings, "--threads", "2") for _ in range(3)]
        return min(each["train_s"] / each["trees"] * 1000 for each in figures)

    rows = arguments.rows
    series = {
        "rows": [(n, milliseconds(dataset(n))) for n in (rows // 8, rows // 4, rows // 2, rows)],
        "features": [(f, milliseconds(dataset(rows, f))) for f in (17, 34, 68, 136)],
        "bins": [(b, milliseconds(dataset(rows), max_bin=b)) for b in (15, 31, 63, 127, 255)],
        "depth": [(d, milliseconds(dataset(rows), max_depth=d)) for d in (2, 4, 6, 8, 10)],
    }
    for name, points in series.items():
        print(name, "  ".join(f"{x}: {y:.1f}" for x, y in points))
    draw("scaling.svg", series, "ms")


if __name__ == "__main__":
    main()
