"""Checks of what planetree trained against scikit-learn, LightGBM and DuckDB.

    reference.py CHECK ARGUMENT...

A check fails by an assertion, and prints what it found.
"""
import sys

import numpy as np
import pyarrow.dataset
import pyarrow.parquet

OTHERS = ("query_id", "doc_id", "label", "weight", "position")


def read(path):
    """Features, labels, feature names and query ids of a dataset; what is missing counts as 0."""
    table = pyarrow.dataset.dataset(path, format="parquet").to_table()
    names = [name for name in table.column_names if name not in OTHERS]
    columns = [table[name].to_numpy(zero_copy_only=False).astype(np.float32) for name in names]
    features = np.nan_to_num(np.column_stack(columns), nan=0.0)
    return features, table["label"].to_numpy().astype(float), names, table["query_id"].to_pylist()


def course(rounds, split, metric):
    table = pyarrow.parquet.read_table(rounds).to_pydict()
    rows = zip(table["round"], table["split"], table["metric"], table["value"])
    return np.array([value for _, *key, value in sorted(rows) if key == [split, metric]])


def settings_of(words):
    def value(text):
        return float(text) if "." in text else int(text)

    return {key: value(text) for key, text in (word.split("=") for word in words)}


def agree(ours, theirs, tolerance, what):
    assert len(ours) == len(theirs), (what, len(ours), len(theirs))
    apart = np.abs(ours - theirs) / np.abs(theirs)
    worst = int(np.argmax(apart))
    assert apart[worst] <= float(tolerance), f"{what} {worst + 1}: {ours[worst]}, expected {theirs[worst]}"
    print(f"{what}: {apart[worst]:.2e} apart at most")


def tree(dataset, model, scores, *words):
    """One tree is scikit-learn's: the same value for every row, the same cuts where the choice is not open.

    In a node of few rows several features may separate them equally well.
    """
    from sklearn.tree import DecisionTreeRegressor

    x, y, names, _ = read(dataset)
    theirs = DecisionTreeRegressor(random_state=0, **settings_of(words)).fit(x, y)
    worst = np.abs(np.loadtxt(scores) - theirs.predict(x)).max()
    assert worst < 1e-6, worst
    nodes = pyarrow.parquet.read_table(model).to_pydict()
    ours = zip(nodes["feature"], nodes["threshold"], nodes["cover"])
    ours = sorted((f, t) for f, t, cover in ours if f is not None and cover >= 50)
    shape = theirs.tree_
    large = (shape.children_left >= 0) & (shape.n_node_samples >= 50)
    cuts = sorted((names[f], t) for f, t in zip(shape.feature[large], shape.threshold[large]))
    assert [f for f, _ in ours] == [f for f, _ in cuts], (ours, cuts)
    assert np.allclose([t for _, t in ours], [t for _, t in cuts], rtol=1e-6, atol=1e-6), (ours, cuts)
    print(f"{len(cuts)} cuts, scores {worst:.2e} apart at most")


def boost(dataset, rounds, tolerance, *words):
    """The training error is scikit-learn's after every round."""
    from sklearn.ensemble import GradientBoostingRegressor

    x, y, _, _ = read(dataset)
    theirs = GradientBoostingRegressor(random_state=0, **settings_of(words)).fit(x, y)
    errors = [np.sqrt(np.mean((y - scores) ** 2)) for scores in theirs.staged_predict(x)]
    agree(course(rounds, "train", "rmse"), np.array(errors), tolerance, "round")


def lightgbm_trained(dataset, words):
    import lightgbm

    settings = dict(
        objective="regression", metric="rmse", boost_from_average=True, lambda_l2=0.0, min_sum_hessian_in_leaf=0.0,
        min_data_in_bin=1, feature_pre_filter=False, enable_bundle=False, use_missing=False, verbose=-1,
        num_threads=2, deterministic=True, bin_construct_sample_cnt=10_000_000,
    ) | settings_of(words)
    trees = settings.pop("num_trees")
    x, y, _, _ = read(dataset)
    data = lightgbm.Dataset(x, y, params=settings)
    log = {}
    model = lightgbm.train(
        settings, data, trees, valid_sets=[data], valid_names=["train"], callbacks=[lightgbm.record_evaluation(log)]
    )
    return model, np.array(log["train"]["rmse"])


def lightgbm(dataset, rounds, tolerance, *words):
    """The training error is near LightGBM's after every round."""
    _, errors = lightgbm_trained(dataset, words)
    agree(course(rounds, "train", "rmse"), errors, tolerance, "round")


def ndcg(labels, scores, queries):
    values = []
    for query in dict.fromkeys(queries.tolist()):
        rows = queries == query
        gains = 2.0 ** labels[rows] - 1
        discounts = 1 / np.log2(np.arange(2, min(len(gains), 10) + 2))
        best = (np.sort(gains)[::-1][:10] * discounts).sum()
        found = (gains[np.argsort(-scores[rows], kind="stable")][:10] * discounts).sum()
        values.append(found / best if best > 0 else 0.0)
    return np.mean(values)


def test_ndcg(train, test, predictions, *words):
    """NDCG@10 of a test set, ours and LightGBM's, for the caller to compare."""
    model, _ = lightgbm_trained(train, words)
    x, y, _, queries = read(test)
    queries = np.array(queries)
    x = np.pad(x, ((0, 0), (0, model.num_feature() - x.shape[1])))
    ours = pyarrow.parquet.read_table(predictions)
    assert ours["query_id"].to_pylist() == queries.tolist()
    print(ndcg(y, ours["score"].to_numpy(), queries), ndcg(y, model.predict(x), queries))


def importance(model):
    """What SQL says of a model: feature, gain, cover and splits, the most important first."""
    import duckdb

    rows = duckdb.connect().execute(
        f"select feature, sum(gain) as gain, sum(cover), count(*) from read_parquet('{model}') "
        "where feature is not null group by feature order by gain desc, feature"
    ).fetchall()
    for row in rows:
        print(*row)


def sql_rmse(predictions):
    """The error of predictions, by SQL."""
    import duckdb

    query = f"select sqrt(avg((label::double - score) ** 2)) from read_parquet('{predictions}')"
    print(duckdb.connect().execute(query).fetchone()[0])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
