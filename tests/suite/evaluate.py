"""Naive reference implementations for tests of evaluations.

    evaluate.py CHECK ARGUMENT...

A check fails with an assertion error, or prints its result.
"""
import json
import math
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq


def queries_of(path):
    """Labels, scores and documents of every query, in the order of the input."""
    queries = {}
    for row in pq.read_table(path).to_pylist():
        queries.setdefault(str(row["query_id"]), []).append((row["label"], row["score"], row.get("doc_id")))
    return queries


def ndcg(labels, depth):
    gains = [2.0**label - 1 for label in labels]
    dcg = lambda gains: math.fsum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains[:depth]))
    best = dcg(sorted(gains, reverse=True))
    return dcg(gains) / best if best > 0 else 0.0


def err(labels):
    value, unsatisfied = 0.0, 1.0
    for rank, label in enumerate(labels):
        satisfied = (2.0**label - 1) / 16
        value += unsatisfied * satisfied / (rank + 1)
        unsatisfied *= 1 - satisfied
    return value


def average_precision(labels):
    hits = [rank for rank, label in enumerate(labels) if label >= 1]
    return math.fsum((found + 1) / (rank + 1) for found, rank in enumerate(hits)) / len(hits) if hits else 0.0


METRICS = {
    "ndcg@10": lambda labels: ndcg(labels, 10),
    "ndcg@1": lambda labels: ndcg(labels, 1),
    "ndcg@3": lambda labels: ndcg(labels, 3),
    "ndcg@5": lambda labels: ndcg(labels, 5),
    "err": err,
    "map": average_precision,
}


def values_of(path):
    """The metrics of every query, ties in the order of the input."""
    found = {}
    for query, rows in queries_of(path).items():
        labels = [label for label, _, _ in sorted(rows, key=lambda row: -row[1])]
        relevant = sum(label >= 1 for label in labels)
        values = {name: metric(labels) for name, metric in METRICS.items()}
        found[query] = dict(documents=len(rows), relevant=relevant, **values)
    return found


def truth_of(predictions, metrics):
    """Checks some columns of a metrics table."""
    expected = values_of(predictions)
    for row in pq.read_table(metrics).to_pylist():
        for name in ("documents", "relevant", "ndcg@10", "err", "map"):
            assert abs(row[name] - expected[row["query_id"]][name]) < 1e-12, (row["query_id"], name)
    print(len(expected))


def truth(predictions, metrics, report):
    """Checks the metrics table, means, empty queries, percentiles and worst queries."""
    expected = values_of(predictions)
    table = pq.read_table(metrics)
    rows = table.to_pylist()
    assert [row["query_id"] for row in rows] == list(expected), "the order of the queries"
    for row in rows:
        for name, value in expected[row["query_id"]].items():
            assert abs(row[name] - value) < 1e-12, (row["query_id"], name, row[name], value)
    assert table.schema.metadata[b"planetree.convention"] == b"planetree"
    assert table.column_names[:3] == ["query_id", "documents", "relevant"], table.column_names
    assert table.column_names[-2:] == ["dcg", "idcg"], table.column_names
    with open(report) as file:
        system = json.load(file)["systems"][0]
    assert system["queries"] == len(expected)
    assert system["rows"] == sum(values["documents"] for values in expected.values())
    filled = [values for values in expected.values() if values["relevant"]]
    assert system["empty_queries"] == len(expected) - len(filled)
    for metric in system["metrics"]:
        name = metric["metric"]
        values = [query[name] for query in expected.values()]
        assert abs(metric["mean"] - math.fsum(values) / len(values)) < 1e-12
        assert abs(system["means"][name] - metric["mean"]) == 0
        assert abs(metric["mean_without_empty"] - math.fsum(query[name] for query in filled) / len(filled)) < 1e-12
        for percent, value in metric["percentiles"].items():
            assert abs(value - np.percentile(values, float(percent))) < 1e-12, (name, percent)
    ranked = sorted((values["ndcg@10"], place, query) for place, (query, values) in enumerate(expected.items()) if values["relevant"])
    assert [query["query_id"] for query in system["worst"]] == [query for _, _, query in ranked[:5]]
    print(f"{len(expected)} queries, NDCG@10 {system['means']['ndcg@10']:.6f}")


def foreign(predictions, output, order):
    """Writes the same rows with other column types, other columns and in another order."""
    table = pq.read_table(predictions)
    if order == "shuffled":
        table = table.take(pa.array(np.random.default_rng(5).permutation(table.num_rows)))
    length = pa.compute.utf8_length(table["query_id"])
    pq.write_table(
        pa.table({
            "score": table["score"],
            "market": pa.array([["de", "at", None][hash_of(query) % 3] for query in table["query_id"].to_pylist()]),
            "label": table["label"].cast(pa.int64()),
            "doc_id": table["doc_id"].cast(pa.large_string()),
            "length": length,
            "query_id": table["query_id"].dictionary_encode(),
        }),
        output,
        row_group_size=700,
    )


def hash_of(text):
    return sum(text.encode())


def same(left, right):
    """Two metrics tables have the same rows, in any order."""
    left, right = (
        {row["query_id"]: row for row in pq.read_table(path).to_pylist()} for path in (left, right)
    )
    assert left == right
    print(len(left))


def segments(predictions, report):
    """Means by the column `market` of a foreign table."""
    market = {str(row["query_id"]): row["market"] for row in pq.read_table(predictions).to_pylist()}
    expected = values_of(predictions)
    with open(report) as file:
        found = json.load(file)["systems"][0]["segments"]
    assert [segment["segment"] for segment in found] == ["at", "de", None]
    for segment in found:
        chosen = [values for query, values in expected.items() if market[query] == segment["segment"]]
        assert segment["queries"] == len(chosen) > 0
        assert segment["rows"] == sum(values["documents"] for values in chosen)
        for name, mean in segment["means"].items():
            assert abs(mean - math.fsum(values[name] for values in chosen) / len(chosen)) < 1e-12, name
    print(len(found))


def join_table(predictions, output):
    """Writes a table of the markets of queries."""
    queries = list(dict.fromkeys(str(row["query_id"]) for row in pq.read_table(predictions).to_pylist()))
    pq.write_table(pa.table({"id": queries, "market": [["de", "at", None][hash_of(query) % 3] for query in queries]}), output)


def qrels(predictions, output):
    """Writes judgments of every other document, and of some that are not ranked."""
    with open(output, "w") as file:
        for query, rows in queries_of(predictions).items():
            for place, (label, _, document) in enumerate(rows):
                if place % 2 == 0:
                    print(query, 0, document, int(label), file=file)
            print(query, 0, f"unranked-{query}", 1, file=file)


def trec(run, judgments, report):
    """Every query's NDCG@5 (linear gains, ideal from judgments), MAP and P@5 as trec_eval defines them."""
    labels, scores = {}, {}
    for line in open(judgments):
        query, _, document, label = line.split()
        labels.setdefault(query, {})[document] = int(label)
    for line in open(run):
        query, _, document, _, score, _ = line.split()
        scores.setdefault(query, []).append((np.float32(score), document))
    ndcg, ap, precision = [], [], []
    for query, ranked in scores.items():
        order = [labels[query].get(document, 0) for _, document in sorted(ranked, reverse=True)]
        dcg = lambda gains: math.fsum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains[:5]))
        best = dcg(sorted(labels[query].values(), reverse=True))
        ndcg.append(dcg(order) / best if best else 0.0)
        relevant = sum(label > 0 for label in labels[query].values())
        hits = [rank for rank, label in enumerate(order) if label > 0]
        ap.append(math.fsum((n + 1) / (rank + 1) for n, rank in enumerate(hits)) / relevant if relevant else 0.0)
        precision.append(sum(label > 0 for label in order[:5]) / 5)
    with open(report) as file:
        found = json.load(file)
    assert found["convention"] == "trec"
    means = found["systems"][0]["means"]
    for name, values in (("ndcg@5", ndcg), ("map", ap), ("p@5", precision)):
        assert abs(means[name] - math.fsum(values) / len(values)) < 1e-9, (name, means[name])
    print(len(ndcg))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
