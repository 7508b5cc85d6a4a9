#!/usr/bin/env python3
"""Training time of models made of several models, as ratios to one of their models: prints a table.

    benches/plans.py PLANETREE [--rows 50000] [--trees 100] [--forest 100] [--repeats 3] [--only ordinal,runs,igbrt,blend] [--work DIR]

Ordinal classes are compared with one regression, ten averaged runs with one run, and initialised boosting with its two
stages trained apart. Data are generated, with the features and the five grades of MSLR. Needs only Python. Times are
those of the whole training, from reading to writing the model: the least of several interleaved repeats.

A blend of twelve models, like that of pipelines/papers/challenge.toml, is compared with its members: the time to score
the data with it, and the sum of the times with each of them alone (`predict_s`).
"""
import json
import os

from harness import arguments_of, dataset, measure, run, train

RUNS = 10

# The members of the blend: the data, the preset and its settings, and the normalisation in the blend.
ERR, NDCG = dict(lambda_metric="err"), dict(lambda_metric="ndcg")
MEMBERS = [
    ("data", "lambdamart", ERR, "none"), ("aug50", "lambdamart", ERR, "none"), ("aug70", "lambdamart", ERR, "none"), ("scored", "lambdamart", ERR, "none"),
    ("data", "lambdamart", NDCG, "none"), ("aug50", "lambdamart", NDCG, "none"), ("aug70", "lambdamart", NDCG, "none"), ("scored", "lambdamart", NDCG, "none"),
    ("data", "lambdarank-net", ERR, "none"), ("data", "lambdarank-net", NDCG, "none"),
    ("data", "mart", {}, "none"), ("data", "mart", dict(seed=2, bagging_fraction=0.5), "unit_variance"),
]


def options(parser):
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--trees", type=int, default=100, help="boosted trees")
    parser.add_argument("--forest", type=int, default=100, help="trees of the forest of igbrt")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="ordinal,runs,igbrt,blend")


def main():
    arguments = arguments_of(options, __doc__.splitlines()[0], "plans")
    planetree, work = arguments.planetree, arguments.work
    data = dataset(planetree, work, arguments.rows)
    trees = dict(num_trees=arguments.trees, seed=1)

    def seconds(preset, settings, *more):
        return train(planetree, work, data, settings, "--preset", preset, *more)["total_s"]

    def apart():
        """Trains the forest, and then boosting on its residuals."""
        forest = seconds("rf", dict(num_trees=arguments.forest, seed=1))
        os.replace(f"{work}/model.parquet", f"{work}/forest.parquet")
        return forest + seconds("gbrt", trees, "--start-model", f"{work}/forest.parquet")

    stages = {"stage.1.num_trees": arguments.forest, "stage.2.num_trees": arguments.trees, "seed": 1}
    static = trees | dict(candidates="static", max_bin=255)
    # By name: what is trained, one of its models, and the largest ratio that we accept.
    plans = {
        "ordinal": [
            ("four classes, `planet`", lambda: seconds("planet", trees | dict(target="ordinal")), lambda: seconds("planet", trees), 3.7),
            ("four classes, `mart`", lambda: seconds("mart", trees | dict(target="ordinal")), lambda: seconds("mart", trees), 3.7),
        ],
        "runs": [
            (f"{RUNS} runs, `ksgbrt` on static bins", lambda: seconds("ksgbrt", static | dict(runs=RUNS)), lambda: seconds("ksgbrt", static), limit_of_runs(arguments.rows)),
            (f"{RUNS} runs, `planet` on half of the rows", lambda: seconds("planet", trees | dict(runs=RUNS, bagging_fraction=0.5)), lambda: seconds("planet", trees | dict(bagging_fraction=0.5)), limit_of_runs(arguments.rows)),
        ],
        "igbrt": [("`igbrt`, against its stages apart", lambda: seconds("igbrt", stages), apart, 1.05)],
        "blend": [],
    }
    names = arguments.only.split(",")
    if "blend" in names:
        plans["blend"] = [blend_plan(planetree, work, data, arguments.trees)]
    print("| training, or scoring with a blend | seconds | one model, its stages or its models | ratio | at most |")
    print("| --- | --- | --- | --- | --- |")
    for name in names:
        for what, whole, part, limit in plans[name]:
            pairs = [(whole(), part()) for _ in range(arguments.repeats)]
            whole_s, part_s = (min(times) for times in zip(*pairs))
            print(f"| {what} | {whole_s:.2f} | {part_s:.2f} | {whole_s / part_s:.2f} | {limit} |", flush=True)


def blend_plan(planetree, work, data, trees):
    """Trains the members and blends them: the time to score with the blend, and with each of them."""
    paths = {name: f"{work}/{name}" for name in ("aug50", "aug70", "scored")} | {"data": data}
    for name, share in (("aug50", "0.5"), ("aug70", "0.7")):
        run(planetree, "augment", "--data", data, "--documents", share, "--seed", "1", "--output", paths[name], "--overwrite")
    train(planetree, work, data, dict(num_trees=trees, seed=1), "--preset", "mart")
    run(planetree, "augment", "--data", data, "--model", f"mart={work}/model.parquet", "--output", paths["scored"], "--overwrite")
    models = []
    for number, (name, preset, settings, _) in enumerate(MEMBERS, 1):
        rounds = 3 if preset.endswith("-net") else trees
        train(planetree, work, paths[name], dict(seed=1, num_trees=rounds) | settings, "--preset", preset)
        models.append(f"{work}/M{number}.parquet")
        os.replace(f"{work}/model.parquet", models[-1])
    normalise = ",".join(member[-1] for member in MEMBERS)
    measure([planetree, "blend", *models, "--normalise", normalise, "--output", f"{work}/blend.parquet"])

    def scoring(model):
        # All score the same data, which have the features of every member.
        stats = f"{work}/scoring.json"
        run(planetree, "predict", "--model", model, "--data", paths["scored"], "--output", f"{work}/scores.parquet", "--stats", stats)
        with open(stats) as file:
            return json.load(file)["predict_s"]

    return (f"blend of {len(models)} models", lambda: scoring(f"{work}/blend.parquet"), lambda: sum(map(scoring, models)), 1.1)


def limit_of_runs(rows):
    """One run leaves threads idle on small data, which several runs use."""
    return 7 if rows <= 100_000 else 9.5


if __name__ == "__main__":
    main()
