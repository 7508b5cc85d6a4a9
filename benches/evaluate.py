#!/usr/bin/env python3
"""Time and memory of evaluating predictions: planetree, pytrec_eval and ranx on the same rows.

    benches/evaluate.py PLANETREE [--rows 10000000] [--documents 100] [--repeats 3] [--work DIR] [--only NAME]

Needs pyarrow, pytrec_eval and ranx. Each tool runs in its own process and reads the same Parquet file. For pytrec_eval
and ranx, the time without reading the file and building their dictionaries is printed too. Peak memory is the maximum
resident set. The means are printed to show that all tools compute the same: pytrec_eval and ranx use linear gains, so
planetree also runs with their conventions.
"""
import json
import time

from harness import arguments_of, call, measure, predictions

METRICS = "ndcg@1,ndcg@3,ndcg@5,ndcg@10,err,map"


def dictionaries(path):
    """The input of pytrec_eval and ranx: {query: {document: value}} for labels and scores."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = [table[name].to_pylist() for name in ("query_id", "doc_id", "label", "score")]
    qrels, run = {}, {}
    for query, document, label, score in zip(*columns):
        qrels.setdefault(query, {})[document] = int(label)
        run.setdefault(query, {})[document] = score
    return qrels, run


def with_pytrec_eval(path):
    import pytrec_eval

    qrels, run = dictionaries(path)
    begun = time.perf_counter()
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.1,3,5,10", "map"})
    found = evaluator.evaluate(run)
    seconds = time.perf_counter() - begun
    mean = lambda name: sum(values[name] for values in found.values()) / len(found)
    return seconds, {"ndcg@10": mean("ndcg_cut_10"), "map": mean("map")}


def with_ranx(path):
    import ranx

    small = {"q": {"d": 1}}, {"q": {"d": 1.0}}
    names = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map"]
    ranx.evaluate(ranx.Qrels(small[0]), ranx.Run(small[1]), names)  # compile outside the measured time
    qrels, run = dictionaries(path)
    begun = time.perf_counter()
    found = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), names)
    return time.perf_counter() - begun, {name: float(found[name]) for name in ("ndcg@10", "map")}


def options(parser):
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--documents", type=int, default=100, help="mean number of documents per query")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["ours", "shuffled", "pytrec_eval", "ranx"])


def main():
    arguments = arguments_of(options, __doc__.splitlines()[0], "evaluate")
    paths = predictions(arguments.work, arguments.rows, arguments.documents)
    lines = []

    def wanted(name):
        return arguments.only in (None, name)

    def ours(name, path, *options):
        command = [arguments.planetree, "--quiet", "evaluate", "--predictions", path, "--metrics", METRICS, "--json", *options]
        runs = [measure(command) for _ in range(arguments.repeats)]
        means = json.loads(runs[0][2])["systems"][0]["means"]
        lines.append((name, min(run[0] for run in runs), None, max(run[1] for run in runs), means))

    if wanted("ours"):
        ours("planetree", paths["ordered"])
        ours("planetree, trec", paths["ordered"], "--convention", "trec")
        ours("planetree, ranx", paths["ordered"], "--convention", "ranx")
    if wanted("shuffled"):
        ours("planetree, shuffled", paths["shuffled"])
    for name in ("pytrec_eval", "ranx"):
        if wanted(name):
            script = f"import evaluate, json; print(json.dumps(evaluate.with_{name}({paths['ordered']!r})))"
            seconds, peak, output = measure(call(script))
            inner, means = json.loads(output)
            lines.append((name, seconds, inner, peak, means))

    print(f"{arguments.rows:,} predictions, about {arguments.documents} documents per query; {METRICS} (other tools: without err)\n")
    print(f"{'':<22}{'seconds':>10}{'metrics':>10}{'peak MiB':>10}{'ndcg@10':>12}{'map':>12}")
    for name, seconds, inner, peak, means in lines:
        metrics_only = f"{inner:>10.2f}" if inner is not None else f"{'':>10}"
        print(f"{name:<22}{seconds:>10.2f}{metrics_only}{peak:>10.0f}{means['ndcg@10']:>12.6f}{means['map']:>12.6f}")


if __name__ == "__main__":
    main()
