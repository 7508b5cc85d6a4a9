#!/usr/bin/env python3
"""Latency of scoring: planetree, LightGBM, XGBoost, onnxruntime, Treelite, TL2cgen, lleaves and YDF with the same trees.

    benches/serving.py PLANETREE [--work DIR] [--model small|large] [--bench EXECUTABLE]

Runs `cargo bench -p planetree --bench serving` for planetree's library, and `planetree predict --batch`, to which queries of LETOR text are
written. Trains on generated rows with the features of MSLR, exports the models to each program and scores one document, the 100 documents of
a query, and 200,000 documents, with one thread. Prints microseconds per call, the median of many calls; 200,000 documents also as
microseconds per document. The other programs are called from Python with arrays in memory, which adds a few microseconds per call. TL2cgen
and lleaves compile the trees, which takes seconds to minutes and is printed. YDF gets the trees by its API for editing models. A program
that is not installed, or that has no compiler, is left out with a line that says so.
"""
import os, subprocess, time

import lightgbm, numpy, onnxruntime, pyarrow.dataset, treelite, xgboost

from harness import arguments_of, dataset, run, train

MODELS = {
    "small": ("250 trees of 32 leaves", dict(preset="lambdamart", num_trees=250, num_leaves=32, learning_rate=0.06)),
    "large": ("1,000 trees of 64 leaves", dict(preset="lambdamart", num_trees=1000, num_leaves=64, learning_rate=0.05)),
}
SIZES = {1: 2000, 100: 300, 200_000: 3}


def median(score, calls):
    times = []
    for _ in range(calls):
        begun = time.perf_counter()
        score()
        times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 2] * 1e6


def of_tl2cgen(work, features):
    """The trees as C, compiled."""
    import tl2cgen

    library = f"{work}/trees.so"
    tl2cgen.export_lib(treelite.Model.deserialize(f"{work}/serving.tl"), toolchain="gcc", libpath=library, params={"parallel_comp": 16})
    predictor = tl2cgen.Predictor(library, nthread=1)
    return lambda rows: predictor.predict(tl2cgen.DMatrix(rows))


def of_lleaves(work, features):
    """The trees as machine code, by LLVM."""
    import lleaves

    model = lleaves.Model(model_file=f"{work}/serving.txt")
    model.compile()
    return lambda rows: model.predict(rows, n_jobs=1)


def of_ydf(work, features):
    """A model of YDF whose trees are replaced by those of the exported LightGBM model."""
    import ydf

    booster = lightgbm.Booster(model_file=f"{work}/serving.txt")
    draw = numpy.random.default_rng(1)
    rows = {name: draw.random(100, dtype=numpy.float32) for name in features}
    learner = ydf.GradientBoostedTreesLearner(label="label", task=ydf.Task.REGRESSION, num_trees=1, validation_ratio=0.0, features=features)
    model = learner.train(rows | {"label": draw.random(100)}, verbose=0)
    places = {name: place for place, name in enumerate(model.data_spec().columns) for name in [name.name]}

    def node(given):
        if "leaf_value" in given:
            return ydf.tree.Leaf(value=ydf.tree.RegressionValue(num_examples=1.0, value=given["leaf_value"]))
        # Values from the threshold on are positive in YDF, values above it go right in LightGBM.
        threshold = float(numpy.nextafter(numpy.float32(given["threshold"]), numpy.float32("inf")))
        condition = ydf.tree.NumericalHigherThanCondition(
            missing=not given["default_left"], score=0.0, attribute=places[features[given["split_feature"]]], threshold=threshold
        )
        return ydf.tree.NonLeaf(condition=condition, pos_child=node(given["right_child"]), neg_child=node(given["left_child"]))

    model.set_initial_predictions([0.0])
    model.remove_tree(0)
    for tree in booster.dump_model()["tree_info"]:
        model.add_tree(ydf.tree.Tree(root=node(tree["tree_structure"])))
    names = list(features)
    return lambda rows: model.predict({name: rows[:, place] for place, name in enumerate(names)}, num_threads=1)


def batch(planetree, model, rows, queries):
    """Microseconds from the last line of a query to its last score, of `predict --batch`."""
    program = subprocess.Popen([planetree, "--quiet", "predict", "--model", model, "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    found = {}
    for size, calls in queries.items():
        times = []
        for call in range(calls):
            part = rows[call * size % (len(rows) - size) :][:size]
            lines = [" ".join([f"qid:{call}", *(f"{place + 1}:{value:.6g}" for place, value in enumerate(row))]) for row in part]
            text = ("\n".join(lines) + "\n\n").encode()
            begun = time.perf_counter()
            program.stdin.write(text)
            program.stdin.flush()
            for _ in range(size):
                if not program.stdout.readline():
                    raise RuntimeError(f"{planetree} predict --batch ended")
            times.append(time.perf_counter() - begun)
        found[size] = sorted(times)[len(times) // 2] * 1e6
    program.stdin.close()
    program.wait()
    return found


def main():
    def options(parser):
        parser.add_argument("--model", choices=MODELS, action="append", help="only this model")
        parser.add_argument("--bench", help="the executable of `cargo bench -p planetree --bench serving --no-run`")

    arguments = arguments_of(options, __doc__.splitlines()[0], "serving")
    planetree, work = arguments.planetree, arguments.work
    data = dataset(planetree, work, 200_000)
    table = pyarrow.dataset.dataset(data, exclude_invalid_files=True, format="parquet").to_table()
    features = [name for name in table.column_names if name not in ("query_id", "doc_id", "label", "weight")]
    rows = numpy.ascontiguousarray(numpy.column_stack([table[name].to_numpy() for name in features]).astype("float32"))
    del table
    rows.tofile(f"{work}/rows.f32")
    for choice in arguments.model or MODELS:
        name, settings = MODELS[choice]
        settings = dict(settings)
        model = f"{work}/{choice}.parquet"
        if not os.path.exists(model):
            train(planetree, work, data, settings, "--preset", settings.pop("preset"))
            os.rename(f"{work}/model.parquet", model)
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
            "onnxruntime": lambda rows: session.run(None, {"X": rows})[0],
            "Treelite": lambda rows: treelite.gtil.predict(of_treelite, rows, nthread=1),
        }
        print(f"{name}, microseconds per call:")
        for program, prepare in {"TL2cgen": of_tl2cgen, "lleaves": of_lleaves, "YDF": of_ydf}.items():
            begun = time.perf_counter()
            try:
                programs[program] = prepare(work, features)
                print(f"  {program}: prepared in {time.perf_counter() - begun:.1f} s", flush=True)
            except Exception as error:
                print(f"  {program}: left out: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}", flush=True)
        command = [arguments.bench] if arguments.bench else ["cargo", "bench", "-q", "-p", "planetree", "--bench", "serving", "--"]
        command += [model, f"{work}/rows.f32", str(len(features))]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        print("\n".join(f"  {line}" for line in output.splitlines()), flush=True)
        shown = "  ".join(f"{size:,} documents {value:,.1f}" for size, value in batch(planetree, model, rows, {1: 2000, 100: 300}).items())
        print(f"  predict --batch {shown}", flush=True)
        expected = programs["LightGBM"](rows[:1000])
        for program, score in programs.items():
            difference = numpy.abs(numpy.asarray(score(rows[:1000])).ravel() - expected).max()
            assert difference < 1e-4, (program, difference)
            found = {size: median(lambda: score(rows[:size]), calls) for size, calls in SIZES.items()}
            shown = "  ".join(f"{size:,} documents {value:,.1f}" for size, value in found.items())
            print(f"  {program:<12} {shown}  ({found[200_000] / 200_000:.3f} per document)", flush=True)


if __name__ == "__main__":
    main()
