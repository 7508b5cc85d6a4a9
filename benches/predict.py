#!/usr/bin/env python3
"""Rows scored per second: planetree, LightGBM and XGBoost with the same trees.

    benches/predict.py PLANETREE [--rows 200000] [--work DIR]

Trains on generated rows with the features of MSLR, exports the models, and scores the same rows with each program in turn,
best of five. LightGBM and XGBoost have their rows in memory. For planetree the scoring alone is counted; the rate of the
whole command, which reads and writes Parquet, is printed too. Needs lightgbm, xgboost, pyarrow and numpy.
"""
import json, time

import lightgbm, numpy, pyarrow.dataset, xgboost

from harness import arguments_of, dataset, run, train

MODELS = {
    "250 trees of 32 leaves": dict(preset="planet", num_trees=250, max_depth=5, learning_rate=0.06),
    "500 trees of 31 leaves": dict(preset="lambdamart", num_trees=500, num_leaves=31, learning_rate=0.08),
}


def main():
    options = lambda parser: parser.add_argument("--rows", type=int, default=200_000)
    arguments = arguments_of(options, __doc__.splitlines()[0], "predict")
    planetree, work = arguments.planetree, arguments.work
    data = dataset(planetree, work, arguments.rows)
    table = pyarrow.dataset.dataset(data, exclude_invalid_files=True, format="parquet").to_table()
    features = [name for name in table.column_names if name not in ("query_id", "doc_id", "label", "weight")]
    rows = numpy.ascontiguousarray(numpy.column_stack([table[name].to_numpy() for name in features]).astype("float32"))
    for name, settings in MODELS.items():
        settings = dict(settings)
        train(planetree, work, data, settings, "--preset", settings.pop("preset"))
        model = f"{work}/model.parquet"
        run(planetree, "export", model, "--format", "lightgbm", "--output", f"{work}/lightgbm.txt")
        run(planetree, "export", model, "--format", "xgboost", "--output", f"{work}/xgboost.json")
        of_lightgbm, of_xgboost = lightgbm.Booster(model_file=f"{work}/lightgbm.txt"), xgboost.Booster(model_file=f"{work}/xgboost.json")
        for threads in (1, 2):
            of_xgboost.set_param({"nthread": threads})

            def ours():
                begun = time.perf_counter()
                run(planetree, "predict", "--model", model, "--data", data, "--output", f"{work}/scores.parquet",
                    "--stats", f"{work}/stats.json", "--threads", str(threads))
                whole = time.perf_counter() - begun
                with open(f"{work}/stats.json") as file:
                    return json.load(file)["predict_s"], whole

            def timed(score):
                begun = time.perf_counter()
                score()
                return time.perf_counter() - begun, 0

            programs = {
                "planetree": ours,
                "LightGBM": lambda: timed(lambda: of_lightgbm.predict(rows, num_threads=threads)),
                "XGBoost": lambda: timed(lambda: of_xgboost.inplace_predict(rows)),
            }
            best = {program: (1e9, 1e9) for program in programs}
            for _ in range(5):
                for program, score in programs.items():
                    best[program] = tuple(map(min, best[program], score()))
            for program, (scoring, whole) in best.items():
                ratio = f", planetree is {scoring / best['planetree'][0]:.2f} times as fast" if program != "planetree" else ""
                command = f" ({len(rows) / whole:,.0f} as a command)" if whole else ""
                print(f"{name}, {threads} threads: {program} {len(rows) / scoring:,.0f} rows/s{command}{ratio}", flush=True)


if __name__ == "__main__":
    main()
