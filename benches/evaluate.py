#!/usr/bin/env python3
"""Time and memory of evaluating predictions: planetree, pytrec_eval and ranx on the same rows.

    benches/evaluate.py PLANETREE [--rows 10000000] [--documents 100] [--repeats 3] [--work DIR] [--only NAME]

Needs pyarrow, pytrec_eval and ranx. Every tool runs in a process of its own and reads the same Parquet file; the
others' time is told with and without the reading and the dictionaries they are fed with. Peak memory is the
process's maximum resident set. Means are compared, so that nobody is fast at something else: pytrec_eval and ranx
take linear gains, so planetree is also asked for their conventions.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

METRICS = "ndcg@1,ndcg@3,ndcg@5,ndcg@10,err,map"


def generate(path, rows, documents, seed=7, shuffled=False):
    """Predictions of queries of about so many documents, labels 0 to 4, some scores tied."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(seed)
    sizes = []
    while sum(sizes) < rows:
        sizes.append(int(draw.integers(1, 2 * documents)))
    sizes[-1] -= sum(sizes) - rows
    queries = np.repeat(np.arange(len(sizes)), sizes)
    labels = draw.choice(5, rows, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(np.float32)
    scores = np.round(labels * 0.4 + draw.normal(size=rows), 6)
    order = draw.permutation(rows) if shuffled else slice(None)
    table = pa.table({
        "query_id": pa.array(np.char.add("query-", queries.astype(str))[order]),
        "doc_id": pa.array(np.char.add("doc-", np.arange(rows).astype(str))[order]),
        "label": pa.array(labels[order]),
        "score": pa.array(scores[order]),
    })
    pq.write_table(table, path, row_group_size=1 << 20, compression="zstd")


def dictionaries(path):
    """What the others want: {query: {document: value}}."""
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
    ranx.evaluate(ranx.Qrels(small[0]), ranx.Run(small[1]), names)  # compiled here, not in the time
    qrels, run = dictionaries(path)
    begun = time.perf_counter()
    found = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), names)
    return time.perf_counter() - begun, {name: float(found[name]) for name in ("ndcg@10", "map")}


def measured(command):
    """Seconds, peak MiB and output of a process."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    if status:
        sys.exit(f"{command} failed")
    return seconds, usage.ru_maxrss / 1024, output


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("planetree")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--work", default=tempfile.gettempdir() + "/planetree-evaluate")
    parser.add_argument("--only", help="one of ours, shuffled, pytrec_eval, ranx")
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    paths = {}
    for name in ("ordered", "shuffled"):
        paths[name] = f"{arguments.work}/{name}-{arguments.rows}-{arguments.documents}.parquet"
        if not os.path.exists(paths[name]):
            script = f"import evaluate; evaluate.generate({paths[name]!r}, {arguments.rows}, {arguments.documents}, shuffled={name == 'shuffled'})"
            subprocess.run([sys.executable, "-c", script], check=True, cwd=os.path.dirname(os.path.abspath(__file__)))

    lines = []

    def wanted(name):
        return arguments.only in (None, name)

    def ours(name, path, *options):
        command = [arguments.planetree, "--quiet", "evaluate", "--predictions", path, "--metrics", METRICS, "--json", *options]
        runs = [measured(command) for _ in range(arguments.repeats)]
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
            environment = [sys.executable, "-c", script]
            os.chdir(os.path.dirname(os.path.abspath(__file__)))
            seconds, peak, output = measured(environment)
            inner, means = json.loads(output)
            lines.append((name, seconds, inner, peak, means))

    print(f"{arguments.rows:,} predictions, about {arguments.documents} documents a query; {METRICS} (others: without err)\n")
    print(f"{'':<22}{'seconds':>10}{'judging':>10}{'peak MiB':>10}{'ndcg@10':>12}{'map':>12}")
    for name, seconds, inner, peak, means in lines:
        judging = f"{inner:>10.2f}" if inner is not None else f"{'':>10}"
        print(f"{name:<22}{seconds:>10.2f}{judging}{peak:>10.0f}{means['ndcg@10']:>12.6f}{means['map']:>12.6f}")


if __name__ == "__main__":
    main()
