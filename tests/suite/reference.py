"""Compares models trained by planetree with scikit-learn, LightGBM and DuckDB.

    reference.py CHECK ARGUMENT...

CHECK is the name of a function in this file. It prints its findings, and fails with an assertion error.
"""
import sys

import numpy as np
import pyarrow.parquet

from dataset import read_zero_filled


def course(rounds, split, metric):
    """The values of a metric in the training log, by round."""
    table = pyarrow.parquet.read_table(rounds).to_pydict()
    rows = zip(table["round"], table["split"], table["metric"], table["value"])
    return np.array([value for _, *key, value in sorted(rows) if key == [split, metric]])


def parse_settings(arguments):
    """Parses `key=number` arguments."""
    def value(text):
        return float(text) if "." in text else int(text)

    return {key: value(text) for key, text in (argument.split("=") for argument in arguments)}


def check_close(ours, theirs, tolerance, what):
    assert len(ours) == len(theirs), (what, len(ours), len(theirs))
    errors = np.abs(ours - theirs) / np.abs(theirs)
    worst = int(np.argmax(errors))
    assert errors[worst] <= float(tolerance), f"{what} {worst + 1}: {ours[worst]}, expected {theirs[worst]}"
    print(f"{what}: maximum relative error {errors[worst]:.2e}")


def tree(dataset, model, scores, *settings):
    """A single tree is that of scikit-learn: the same score for every row, and the same splits at nodes of 50 rows or more.

    In smaller nodes several features may separate the rows equally well.
    """
    from sklearn.tree import DecisionTreeRegressor

    x, y, names, _ = read_zero_filled(dataset)
    theirs = DecisionTreeRegressor(random_state=0, **parse_settings(settings)).fit(x, y)
    worst = np.abs(np.loadtxt(scores) - theirs.predict(x)).max()
    assert worst < 1e-6, worst
    nodes = pyarrow.parquet.read_table(model).to_pydict()
    ours = zip(nodes["feature"], nodes["threshold"], nodes["cover"])
    ours = sorted((f, t) for f, t, cover in ours if f is not None and cover >= 50)
    shape = theirs.tree_
    large = (shape.children_left >= 0) & (shape.n_node_samples >= 50)
    splits = sorted((names[f], t) for f, t in zip(shape.feature[large], shape.threshold[large]))
    assert [f for f, _ in ours] == [f for f, _ in splits], (ours, splits)
    assert np.allclose([t for _, t in ours], [t for _, t in splits], rtol=1e-6, atol=1e-6), (ours, splits)
    print(f"{len(splits)} splits, maximum error of scores {worst:.2e}")


def boost(dataset, rounds, tolerance, *settings):
    """The training error after every round is that of scikit-learn."""
    from sklearn.ensemble import GradientBoostingRegressor

    x, y, _, _ = read_zero_filled(dataset)
    theirs = GradientBoostingRegressor(random_state=0, **parse_settings(settings)).fit(x, y)
    errors = [np.sqrt(np.mean((y - scores) ** 2)) for scores in theirs.staged_predict(x)]
    check_close(course(rounds, "train", "rmse"), np.array(errors), tolerance, "round")


def train_lightgbm(dataset, arguments):
    """A LightGBM model and its training error after every round."""
    import lightgbm

    settings = dict(
        objective="regression", metric="rmse", boost_from_average=True, lambda_l2=0.0, min_sum_hessian_in_leaf=0.0,
        min_data_in_bin=1, feature_pre_filter=False, enable_bundle=False, use_missing=False, verbose=-1,
        num_threads=2, deterministic=True, bin_construct_sample_cnt=10_000_000,
    ) | parse_settings(arguments)
    trees = settings.pop("num_trees")
    x, y, _, _ = read_zero_filled(dataset)
    data = lightgbm.Dataset(x, y, params=settings)
    log = {}
    model = lightgbm.train(
        settings, data, trees, valid_sets=[data], valid_names=["train"], callbacks=[lightgbm.record_evaluation(log)]
    )
    return model, np.array(log["train"]["rmse"])


def lightgbm(dataset, rounds, tolerance, *settings):
    """The training error after every round is close to that of LightGBM."""
    _, errors = train_lightgbm(dataset, settings)
    check_close(course(rounds, "train", "rmse"), errors, tolerance, "round")


def ndcg(labels, scores, queries):
    """Mean NDCG@10, with planetree's conventions."""
    values = []
    for query in dict.fromkeys(queries.tolist()):
        rows = queries == query
        gains = 2.0 ** labels[rows] - 1
        discounts = 1 / np.log2(np.arange(2, min(len(gains), 10) + 2))
        best = (np.sort(gains)[::-1][:10] * discounts).sum()
        found = (gains[np.argsort(-scores[rows], kind="stable")][:10] * discounts).sum()
        values.append(found / best if best > 0 else 0.0)
    return np.mean(values)


def test_ndcg(train, test, predictions, *settings):
    """Prints NDCG@10 of a test set, of planetree and of LightGBM, for the caller to compare."""
    model, _ = train_lightgbm(train, settings)
    x, y, _, queries = read_zero_filled(test)
    queries = np.array(queries)
    x = np.pad(x, ((0, 0), (0, model.num_feature() - x.shape[1])))
    ours = pyarrow.parquet.read_table(predictions)
    assert ours["query_id"].to_pylist() == queries.tolist()
    print(ndcg(y, ours["score"].to_numpy(), queries), ndcg(y, model.predict(x), queries))


def importance(model):
    """Prints the feature importance computed in SQL: feature, gain, cover and splits, by descending gain."""
    import duckdb

    rows = duckdb.connect().execute(
        f"select feature, sum(gain) as gain, sum(cover), count(*) from read_parquet('{model}') "
        "where feature is not null group by feature order by gain desc, feature"
    ).fetchall()
    for row in rows:
        print(*row)


def sql_rmse(predictions):
    """Prints the RMSE of predictions, computed in SQL."""
    import duckdb

    query = f"select sqrt(avg((label::double - score) ** 2)) from read_parquet('{predictions}')"
    print(duckdb.connect().execute(query).fetchone()[0])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
