#!/usr/bin/env python3
"""Time and memory of computing NDCG@10 per query in SQL: planetree sql and DuckDB on the same rows.

    benches/sql.py PLANETREE [--rows 10000000] [--documents 100] [--repeats 3] [--threads 2] [--work DIR]

Needs pyarrow and duckdb. The rows are those of benches/evaluate.py, in a Parquet file written by pyarrow, so that both
read the same bytes. DuckDB has no such function, so its query uses window functions, as docs/models.md shows. Each run is
its own process; peak memory is the maximum resident set. The means are printed to show that both compute the same. They
agree to a few digits only, because DuckDB orders equal scores differently.
"""
import os
import sys

from harness import arguments_of, measure, predictions

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


def options(parser):
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--documents", type=int, default=100, help="mean number of documents per query")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())


def main():
    arguments = arguments_of(options, __doc__.splitlines()[0], "evaluate")
    lines = []
    for name, path in predictions(arguments.work, arguments.rows, arguments.documents).items():
        query = f"SELECT avg(ndcg) AS mean, count(*) AS queries FROM ({OURS.format(path=path)})"
        ours = [os.path.abspath(arguments.planetree), "sql", "--threads", str(arguments.threads), "--format", "csv",
                "--allow-path", arguments.work, "-c", query]
        query = BY_HAND.format(path=path).replace("\n", " ")
        theirs = [sys.executable, "-c", DUCKDB.format(threads=arguments.threads, query=query)]
        # Alternately, so that other load affects both.
        runs = {"planetree": [], "DuckDB": []}
        for _ in range(arguments.repeats):
            runs["planetree"].append(measure(ours))
            runs["DuckDB"].append(measure(theirs))
        for tool, measurements in runs.items():
            answer = measurements[0][2].decode().strip().splitlines()[-1].strip("()")
            seconds, peak = min(run[0] for run in measurements), max(run[1] for run in measurements)
            lines.append((f"{tool}, {name}", seconds, peak, answer))
    print(f"NDCG@10 per query of {arguments.rows:,} predictions, about {arguments.documents} documents per query, "
          f"{arguments.threads} threads, best of {arguments.repeats}\n")
    print(f"{'':<22}{'seconds':>10}{'peak MiB':>10}   mean, queries")
    for name, seconds, peak, answer in lines:
        print(f"{name:<22}{seconds:>10.2f}{peak:>10.0f}   {answer}")


if __name__ == "__main__":
    main()
