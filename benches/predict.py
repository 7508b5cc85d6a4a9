#!/usr/bin/env python3
"""Rows scored per second: planetree, LightGBM and XGBoost with the same trees.

    benches/predict.py PLANETREE [--rows 200000] [--work DIR]

Trains on generated MSLR-shaped rows, exports the models, and scores as many rows with each program, taking turns, the best of
five. LightGBM and XGBoost have their rows in memory; of planetree the scoring alone is counted, and the whole command (Parquet
read and written) beside it. Needs lightgbm, xgboost, pyarrow and numpy.
"""
import argparse, json, os, tempfile, time

import lightgbm, numpy, pyarrow.dataset, xgboost

from measured import generated, run, trained

MODELS = {
    "250 trees of 32 leaves": dict(preset="planet", num_trees=250, max_depth=5, learning_rate=0.06),
    "500 trees of 31 leaves": dict(preset="lambdamart", num_trees=500, num_leaves=31, learning_rate=0.08),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("planetree")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--work", default=tempfile.gettempdir() + "/planetree-predict")
    arguments = parser.parse_args()
    planetree, work = arguments.planetree, arguments.work
    os.makedirs(work, exist_ok=True)
    data = f"{work}/{arguments.rows}"
    if not os.path.exists(data):
        run(planetree, "convert", f"{generated(planetree, work, arguments.rows)}/train.txt", "--output", data)
    table = pyarrow.dataset.dataset(data, exclude_invalid_files=True, format="parquet").to_table()
    features = [name for name in table.column_names if name not in ("query_id", "doc_id", "label", "weight")]
    rows = numpy.ascontiguousarray(numpy.column_stack([table[name].to_numpy() for name in features]).astype("float32"))
    for name, settings in MODELS.items():
        settings = dict(settings)
        trained(planetree, work, data, settings, "--preset", settings.pop("preset"))
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
