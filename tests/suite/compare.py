"""Checks of `planetree compare --json` against scipy.

    compare.py [COMPARED.json DIFFERENCES.parquet]...

checks the differences against the compared files, and repeats all tests. A check fails with an assertion error, or prints
its result.
"""
import itertools
import json
import sys
import warnings

import numpy as np
import pyarrow.parquet
from scipy import stats

CLOSE = 1e-9


def ndcg_at_10(labels, scores):
    gains = 2.0 ** labels - 1
    discounts = 1 / np.log2(np.arange(2, min(len(gains), 10) + 2))
    best = (np.sort(gains)[::-1][:10] * discounts).sum()
    found = (gains[np.argsort(-scores, kind="stable")][:10] * discounts).sum()
    return found / best if best > 0 else 0.0


def values_of(path, metric):
    """The values by query, computed here for predictions."""
    table = pyarrow.parquet.read_table(path)
    queries = np.array(table["query_id"].to_pylist())
    if "score" in table.column_names:
        assert metric == "ndcg@10"
        labels, scores = table["label"].to_numpy().astype(float), table["score"].to_numpy()
        values = {query: ndcg_at_10(labels[queries == query], scores[queries == query]) for query in set(queries)}
    else:
        values = dict(zip(queries.tolist(), table[metric].to_pylist()))
    return {str(query): value for query, value in values.items() if value is not None}


def near(ours, theirs, what):
    # The absolute tolerance covers means that are rounding errors only.
    assert abs(ours - theirs) <= CLOSE * abs(theirs) + 1e-15, f"{what}: {ours!r}, expected {theirs!r}"


def check_t_test(pair, differences, alternative):
    if len(differences) < 2 or differences.std() == 0:
        assert pair["t_test"] is None
        return
    theirs = stats.ttest_1samp(differences, 0, alternative=alternative)
    near(pair["t_test"]["t"], theirs.statistic, "t")
    near(pair["t_test"]["p"], theirs.pvalue, "p of t")
    assert pair["t_test"]["degrees_of_freedom"] == theirs.df


def check_wilcoxon(pair, differences, alternative):
    ours = pair["wilcoxon"]
    assert ours["queries"] == np.count_nonzero(differences)
    if not differences.any():
        assert (ours["p"], ours["statistic"]) == (1.0, 0.0)
        return
    theirs = stats.wilcoxon(differences, alternative=alternative)
    # In a one-sided test, scipy's statistic is the positive rank sum.
    statistic = ours["statistic" if alternative == "two-sided" else "positive"]
    near(statistic, theirs.statistic, "statistic of signed ranks")
    near(ours["p"], theirs.pvalue, "p of signed ranks")
    assert ours["exact"] == (ours["z"] is None)
    assert ours["positive"] + ours["negative"] == ours["queries"] * (ours["queries"] + 1) / 2
    if not ours["exact"]:
        theirs = stats.wilcoxon(differences, method="asymptotic")
        near(abs(ours["z"]), abs(theirs.zstatistic), "z")
        assert np.sign(ours["z"]) == np.sign(ours["positive"] - ours["negative"])


def check_randomisation(pair, differences, alternative):
    ours = pair["randomisation"]
    changed = differences[differences != 0]
    assert ours["exact"] == (len(changed) <= 20)
    if len(changed) < 2 and alternative == "two-sided":
        assert ours["p"] == 1.0
        return
    if len(changed) < 2:
        side = 1 if alternative == "greater" else -1
        assert ours["p"] == (0.5 if len(changed) and side * changed[0] > 0 else 1.0)
        return
    if len(changed) <= 13:
        theirs = stats.permutation_test(
            (changed,), np.sum, permutation_type="samples", vectorized=False, n_resamples=np.inf,
            alternative=alternative,
        )
        near(ours["p"], theirs.pvalue, "p of all permutations")
        return
    size = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
    draw = np.random.default_rng(1)
    tries, found = 20_000, 0
    for _ in range(tries // 1000):
        signs = draw.integers(0, 2, (1000, len(changed))) * 2.0 - 1
        found += np.count_nonzero(size(signs @ changed) >= size(changed.sum()) - 1e-9)
    theirs = (found + 1) / (tries + 1)
    error = np.sqrt(max(theirs * (1 - theirs), 1 / tries) * (1 / tries + (not ours["exact"]) / ours["permutations"]))
    assert abs(ours["p"] - theirs) < 4.5 * error, (ours, theirs, error)


def check_interval(pair, differences):
    ours = pair["interval"]
    error = differences.std() / np.sqrt(len(differences))
    if error == 0:
        assert ours["low"] == ours["high"]
        near(ours["low"], differences.mean(), "interval")
        return
    theirs = stats.bootstrap(
        (differences,), np.mean, n_resamples=9999, confidence_level=ours["level"], method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval
    # Both ends vary randomly, and in steps where the means are sparse.
    steps = np.diff(np.unique(np.round(differences, 9)))
    most = 0.15 * error + 1.01 * steps.min() / len(differences)
    assert abs(ours["low"] - theirs.low) < most, (ours, theirs, error)
    assert abs(ours["high"] - theirs.high) < most, (ours, theirs, error)


def check_counts(compared, pair, differences):
    gains = differences if compared["higher_is_better"] else -differences
    counts = [np.count_nonzero(gains > 0), np.count_nonzero(gains == 0), np.count_nonzero(gains < 0)]
    assert [pair["wins"], pair["ties"], pair["losses"]] == counts, (pair, counts)
    sign = 1 if compared["higher_is_better"] else -1
    for key, most in [("improved", np.sort(gains)[::-1]), ("worsened", np.sort(gains))]:
        moved = [query["difference"] * sign for query in pair[key]]
        assert np.allclose(moved, most[: len(moved)], rtol=CLOSE), key
        assert all(np.isclose(query["b"] - query["a"], query["difference"]) for query in pair[key])


def check_holm(compared):
    """In ascending order, each p is multiplied by the number of remaining ones."""
    least, left = 0.0, len(compared["pairs"])
    for pair in sorted(compared["pairs"], key=lambda pair: pair["p"]):
        least = max(least, min(1.0, pair["p"] * left))
        left -= 1
        near(pair["p_holm"], least, "corrected p")
        assert pair["differs"] == (pair["p_holm"] <= compared["alpha"])


def rows_of(compared, path):
    """The rows of the differences by pair, checked against the values in the compared files."""
    systems = {system["name"]: values_of(system["file"], compared["metric"]) for system in compared["systems"]}
    pairs = {}
    for row in pyarrow.parquet.read_table(path).to_pylist():
        pairs.setdefault((row["system_a"], row["system_b"]), []).append(row)
    for names, rows in pairs.items():
        queries = [row["query_id"] for row in rows]
        assert queries == sorted(queries, key=str.encode)
        for name, key in zip(names, ["value_a", "value_b"]):
            assert set(queries) == set(systems[name])
            assert all(abs(row[key] - systems[name][row["query_id"]]) < 1e-12 for row in rows), name
        assert all(row["difference"] == row["value_b"] - row["value_a"] for row in rows)
    assert list(pairs) == list(itertools.combinations(systems, 2)), list(pairs)
    return pairs


def check(path, differences):
    compared = json.load(open(path))
    pairs = rows_of(compared, differences)
    assert [(pair["a"], pair["b"]) for pair in compared["pairs"]] == list(pairs)
    means = {system["name"]: system["mean"] for system in compared["systems"]}
    for pair, rows in zip(compared["pairs"], pairs.values()):
        assert len(rows) == compared["queries"]
        for side in ["a", "b"]:
            mean = np.mean([row[f"value_{side}"] for row in rows])
            near(pair[f"mean_{side}"], mean, "mean")
            near(means[pair[side]], mean, "mean")
        differences = np.array([row["difference"] for row in rows])
        near(pair["difference"], differences.mean(), "difference")
        if len(differences) > 1 and differences.std() > 0:
            near(pair["standard_deviation"], differences.std(ddof=1), "standard deviation")
            near(pair["effect_size"], differences.mean() / differences.std(ddof=1), "effect size")
        else:
            assert pair["effect_size"] is None
        check_counts(compared, pair, differences)
        check_t_test(pair, differences, compared["alternative"])
        check_wilcoxon(pair, differences, compared["alternative"])
        check_randomisation(pair, differences, compared["alternative"])
        check_interval(pair, differences)
    check_holm(compared)
    shown = [f"{pair['b']} - {pair['a']}: p {pair['p']:.4g}" for pair in compared["pairs"][:3]]
    print(f"{compared['queries']} queries, {len(compared['pairs'])} pairs; {', '.join(shown)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for path, differences in zip(sys.argv[1::2], sys.argv[2::2]):
        check(path, differences)
