#!/usr/bin/env python3
"""Latency of scoring: planetree, LightGBM, XGBoost, onnxruntime and Treelite with the same trees.

    benches/serving.py PLANETREE [--work DIR]

Runs `cargo bench -p planetree --bench serving` for planetree's library. Trains on generated rows with the features of MSLR, exports the models to each program and scores one
document, the 100 documents of a query, and 200,000 documents, with one thread. Prints microseconds per call, the median of many calls;
200,000 documents also as microseconds per document. The other programs are called from Python with arrays in memory, which adds a few
microseconds per call. TL2cgen compiles the trees with a C compiler; without one it is left out.
"""
import os, subprocess, time

import lightgbm, numpy, onnxruntime, pyarrow.dataset, treelite, xgboost

from harness import arguments_of, dataset, run, train

MODELS = {
    "250 trees of 32 leaves": dict(preset="planet", num_trees=250, max_depth=5, learning_rate=0.06),
    "1,000 trees of 64 leaves": dict(preset="lambdamart", num_trees=1000, num_leaves=64, learning_rate=0.05),
}
SIZES = {1: 2000, 100: 300, 200_000: 3}


def median(score, calls):
    times = []
    for _ in range(calls):
        begun = time.perf_counter()
        score()
        times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 2] * 1e6


def compiled(model, work):
    """A function of the trees, compiled by TL2cgen, or `None`."""
    try:
        import tl2cgen
        library = f"{work}/trees.so"
        tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={"parallel_comp": 8})
        predictor = tl2cgen.Predictor(library, nthread=1)
        return lambda rows: predictor.predict(tl2cgen.DMatrix(rows))
    except Exception as error:
        print(f"TL2cgen: {str(error).splitlines()[0]}")
        return None


def main():
    arguments = arguments_of(lambda parser: None, __doc__.splitlines()[0], "serving")
    planetree, work = arguments.planetree, arguments.work
    data = dataset(planetree, work, 200_000)
    table = pyarrow.dataset.dataset(data, exclude_invalid_files=True, format="parquet").to_table()
    features = [name for name in table.column_names if name not in ("query_id", "doc_id", "label", "weight")]
    rows = numpy.ascontiguousarray(numpy.column_stack([table[name].to_numpy() for name in features]).astype("float32"))
    rows.tofile(f"{work}/rows.f32")
    for name, settings in MODELS.items():
        settings = dict(settings)
        train(planetree, work, data, settings, "--preset", settings.pop("preset"))
        model = f"{work}/model.parquet"
        for format, file in [("lightgbm", "serving.txt"), ("xgboost", "serving.json"), ("onnx", "serving.onnx"), ("treelite", "serving.tl")]:
            run(planetree, "export", model, "--format", format, "--output", f"{work}/{file}", "--no-verify")
        of_lightgbm, of_xgboost = lightgbm.Booster(model_file=f"{work}/serving.txt"), xgboost.Booster(model_file=f"{work}/serving.json")
        of_xgboost.set_param({"nthread": 1})
        session_options = onnxruntime.SessionOptions()
        session_options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(f"{work}/serving.onnx", session_options)
        of_treelite = treelite.Model.deserialize(f"{work}/serving.tl")
        programs = {
            "LightGBM": lambda rows: of_lightgbm.predict(rows, num_threads=1),
            "XGBoost": lambda rows: of_xgboost.inplace_predict(rows),
            "onnxruntime": lambda rows: session.run(None, {"X": rows}),
            "Treelite": lambda rows: treelite.gtil.predict(of_treelite, rows, nthread=1),
        }
        if fast := compiled(of_treelite, work):
            programs["TL2cgen"] = fast
        print(f"{name}, microseconds per call:")
        command = ["cargo", "bench", "-q", "-p", "planetree", "--bench", "serving", "--", model, f"{work}/rows.f32", str(len(features))]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print("\n".join(f"  {line}" for line in output.splitlines()))
        for program, score in programs.items():
            found = {size: median(lambda: score(rows[:size]), calls) for size, calls in SIZES.items()}
            shown = "  ".join(f"{size:,} documents {value:,.1f}" for size, value in found.items())
            print(f"  {program:<12} {shown}  ({found[200_000] / 200_000:.3f} per document)")


if __name__ == "__main__":
    main()
