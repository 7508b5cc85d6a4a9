#!/usr/bin/env python3
"""Latency of scoring: planetree, LightGBM, XGBoost, onnxruntime, Treelite, TL2cgen, lleaves and YDF with the same trees.

    make bench-serving
    benches/serving.py PLANETREE [--work DIR] [--model small|large] [--bench EXECUTABLE] [--documents N] [--quick]

Runs `cargo bench --bench serving` for planetree's library, and `planetree predict --batch`, to which queries of LETOR text are
written. Trains on generated rows with the features of MSLR, exports the models to each program and scores one document, the 100 documents of
a query, and 200,000 documents, with one thread. Prints a table of microseconds per call, the median of many calls; 200,000 documents also as
microseconds per document. The other programs, and planetree's Python package if it is installed, are called from Python with arrays in memory,
which adds a few microseconds per call. TL2cgen and lleaves compile the trees, which takes seconds to minutes and is printed. YDF gets the
trees by its API for editing models. A program that is not installed, or that has no compiler, is left out with a line that says so. --quick
makes a tenth of the calls.
"""
import os, re, subprocess, time

import lightgbm, numpy, onnxruntime, pyarrow.dataset, treelite, xgboost

from harness import arguments_of, dataset, run, train

MODELS = {
    "small": ("250 trees of 32 leaves", dict(preset="lambdamart", num_trees=250, num_leaves=32, learning_rate=0.06)),
    "large": ("1,000 trees of 64 leaves", dict(preset="lambdamart", num_trees=1000, num_leaves=64, learning_rate=0.05)),
}
# Documents, and how often they are scored.
CALLS = {1: 2000, 100: 300, 200_000: 3}
# The packages whose features are those of the program, so that both share one build of their dependencies.
LIBRARY = ["cargo", "bench", "-q", "-p", "planetree-cli", "-p", "planetree", "--bench", "serving", "--"]


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
            part = rows[call * size % (len(rows) - size + 1) :][:size]
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


def of_python(model):
    """planetree's Python package."""
    import planetree

    return planetree.Model.load(model).predict


def engines(work, model, features):
    """The functions of all programs that score arrays."""
    of_lightgbm, of_xgboost = lightgbm.Booster(model_file=f"{work}/serving.txt"), xgboost.Booster(model_file=f"{work}/serving.json")
    of_xgboost.set_param({"nthread": 1})
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(f"{work}/serving.onnx", session_options)
    of_treelite = treelite.Model.deserialize(f"{work}/serving.tl")
    found = {
        "LightGBM": lambda rows: of_lightgbm.predict(rows, num_threads=1),
        "XGBoost": lambda rows: of_xgboost.inplace_predict(rows),
        "onnxruntime": lambda rows: session.run(None, {"X": rows})[0],
        "Treelite": lambda rows: treelite.gtil.predict(of_treelite, rows, nthread=1),
    }
    others = {
        "planetree, Python": lambda: of_python(model),
        "TL2cgen": lambda: of_tl2cgen(work, features),
        "lleaves": lambda: of_lleaves(work, features),
        "YDF": lambda: of_ydf(work, features),
    }
    for program, prepare in others.items():
        begun = time.perf_counter()
        try:
            found[program] = prepare()
            print(f"{program}: prepared in {time.perf_counter() - begun:.1f} s", flush=True)
        except Exception as error:
            print(f"{program}: left out: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}", flush=True)
    return found


def print_table(name, features, sizes, results):
    """The results, the fastest at one document first."""
    print(f"\n| {name}, {features} features | " + " | ".join(f"{size:,} document{'s' if size > 1 else ''}" for size in sizes) + " | per document |")
    print("| --- |" + " --- |" * (len(sizes) + 1))
    for program, found in sorted(results.items(), key=lambda one: one[1][1]):
        most = sizes[-1]
        cells = [f"{found[size]:,.1f}" if found[size] < 100 else f"{found[size]:,.0f}" for size in sizes if size in found]
        cells += [""] * (len(sizes) - len(cells)) + [f"{found[most] / most:.2f}" if most in found else ""]
        print(f"| {program} | " + " | ".join(cells) + " |", flush=True)
    print()


def main():
    def options(parser):
        parser.add_argument("--model", choices=MODELS, action="append", help="only this model")
        parser.add_argument("--bench", help="the executable of `cargo bench --bench serving --no-run`")
        parser.add_argument("--documents", type=int, default=200_000, help="documents of the largest call, and of the training set")
        parser.add_argument("--quick", action="store_true", help="a tenth of the calls")

    arguments = arguments_of(options, __doc__.splitlines()[0], "serving")
    planetree, work = arguments.planetree, arguments.work
    data = dataset(planetree, work, arguments.documents)
    table = pyarrow.dataset.dataset(data, exclude_invalid_files=True, format="parquet").to_table()
    features = [name for name in table.column_names if name not in ("query_id", "doc_id", "label", "weight")]
    rows = numpy.ascontiguousarray(numpy.column_stack([table[name].to_numpy() for name in features]).astype("float32"))
    del table
    rows.tofile(f"{work}/rows.f32")
    calls = {min(size, len(rows)): max(1, count // 10) if arguments.quick else count for size, count in CALLS.items()}
    sizes = list(calls)
    for choice in arguments.model or MODELS:
        name, settings = MODELS[choice]
        settings = dict(settings)
        model = f"{work}/{choice}-{arguments.documents}.parquet"
        if not os.path.exists(model):
            train(planetree, work, data, settings, "--preset", settings.pop("preset"))
            os.rename(f"{work}/model.parquet", model)
        for format, file in [("lightgbm", "serving.txt"), ("xgboost", "serving.json"), ("onnx", "serving.onnx"), ("treelite", "serving.tl")]:
            run(planetree, "export", model, "--format", format, "--output", f"{work}/{file}", "--no-verify")
        print(f"{name}:", flush=True)
        programs = engines(work, model, features)
        command = [arguments.bench] if arguments.bench else LIBRARY
        output = subprocess.run([*command, model, f"{work}/rows.f32", str(len(features))], check=True, stdout=subprocess.PIPE, text=True).stdout
        results = {"planetree, library": {int(size): float(value) for size, value in re.findall(r"(\d+) documents ([\d.]+)", output)}}
        results["planetree, `predict --batch`"] = batch(planetree, model, rows, {size: calls[size] for size in sizes[:2]})
        expected = programs["LightGBM"](rows[:1000])
        for program, score in programs.items():
            difference = numpy.abs(numpy.asarray(score(rows[:1000])).ravel() - expected).max()
            assert difference < 1e-4, (program, difference)
            results[program] = {size: median(lambda: score(rows[:size]), count) for size, count in calls.items()}
        print_table(name, len(features), sizes, results)


if __name__ == "__main__":
    main()
