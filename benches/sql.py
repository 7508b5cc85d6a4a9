#!/usr/bin/env python3
"""Time and memory of NDCG@10 of every query in SQL: planetree sql and DuckDB on the same rows.

    benches/sql.py PLANETREE [--rows 10000000] [--documents 100] [--repeats 3] [--threads 2] [--work DIR]

Needs pyarrow and duckdb. The rows are those of benches/evaluate.py, in a Parquet file of pyarrow's, so that both read
the same bytes. DuckDB does the nearest thing by hand: window functions, as docs/models.md shows. Every run is a process of its
own; peak memory is its maximum resident set. The means are compared, so that nobody is fast at something else: DuckDB ranks
equal scores in an order of its own, so they agree to a few digits only.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import evaluate

OURS = "SELECT query_id, ndcg(label, score, 10) AS ndcg FROM '{path}' GROUP BY query_id"
BY_HAND = """
WITH documents AS (
  SELECT query_id, power(2, label) - 1 AS gain,
         row_number() OVER (PARTITION BY query_id ORDER BY score DESC) AS rank,
         row_number() OVER (PARTITION BY query_id ORDER BY label DESC) AS best
  FROM '{path}'
), queries AS (
  SELECT query_id, sum(gain / log2(rank + 1)) FILTER (rank <= 10) AS dcg,
         sum(gain / log2(best + 1)) FILTER (best <= 10) AS ideal
  FROM documents GROUP BY query_id
)
SELECT query_id, CASE WHEN ideal > 0 THEN dcg / ideal ELSE 0 END AS ndcg FROM queries
"""
DUCKDB = """
import duckdb, sys
connection = duckdb.connect(config={{"threads": {threads}}})
print(connection.execute("SELECT avg(ndcg), count(*) FROM ({query})").fetchone())
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("planetree")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--work", default=tempfile.gettempdir() + "/planetree-evaluate")
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    lines = []
    for name in ("ordered", "shuffled"):
        path = f"{arguments.work}/{name}-{arguments.rows}-{arguments.documents}.parquet"
        if not os.path.exists(path):
            script = (f"import evaluate; evaluate.generate({path!r}, {arguments.rows}, {arguments.documents}, "
                      f"shuffled={name == 'shuffled'})")
            subprocess.run([sys.executable, "-c", script], check=True, cwd=os.path.dirname(os.path.abspath(__file__)))
        query = f"SELECT avg(ndcg) AS mean, count(*) AS queries FROM ({OURS.format(path=path)})"
        ours = [os.path.abspath(arguments.planetree), "sql", "--threads", str(arguments.threads), "--format", "csv",
                "--allow-path", arguments.work, "-c", query]
        query = BY_HAND.format(path=path).replace("\n", " ")
        theirs = [sys.executable, "-c", DUCKDB.format(threads=arguments.threads, query=query)]
        # Taking turns, so that a busy moment hits both.
        runs = {"planetree": [], "DuckDB": []}
        for _ in range(arguments.repeats):
            runs["planetree"].append(evaluate.measured(ours))
            runs["DuckDB"].append(evaluate.measured(theirs))
        for tool, measured in runs.items():
            answer = measured[0][2].decode().strip().splitlines()[-1].strip("()")
            lines.append((f"{tool}, {name}", min(run[0] for run in measured), max(run[1] for run in measured), answer))
    print(f"NDCG@10 of every query of {arguments.rows:,} predictions, about {arguments.documents} documents a query, "
          f"{arguments.threads} threads, best of {arguments.repeats}\n")
    print(f"{'':<22}{'seconds':>10}{'peak MiB':>10}   mean, queries")
    for name, seconds, peak, answer in lines:
        print(f"{name:<22}{seconds:>10.2f}{peak:>10.0f}   {answer}")


if __name__ == "__main__":
    main()
