"""Models that go to LightGBM and XGBoost and come from them, by the word of these packages.

    exchange.py CHECK ARGUMENT...

A check fails by an assertion, and prints what it found.
"""
import re
import sys

import numpy as np
import pyarrow.dataset

OTHERS = ("query_id", "doc_id", "label", "weight", "position")


def read(path):
    """Features (NaN where they are missing), labels, feature names, sizes of queries."""
    table = pyarrow.dataset.dataset(path, format="parquet").to_table()
    names = [name for name in table.column_names if name not in OTHERS]
    columns = [table[name].to_numpy(zero_copy_only=False).astype(np.float32) for name in names]
    queries = table["query_id"].to_pylist()
    starts = [row for row in range(len(queries)) if row == 0 or queries[row] != queries[row - 1]]
    sizes = np.diff(starts + [len(queries)])
    return np.column_stack(columns), table["label"].to_numpy().astype(float), names, sizes


def apart(ours, theirs, tolerance, what):
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    worst = np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())
    assert worst <= tolerance, f"{what}: {worst} apart"
    return f"{what} {worst:.1e} apart"


def contributions_of(path, rows):
    """Contributions as planetree has them: a row of the expected value, then the features'."""
    numbers = np.fromfile(path, dtype=np.float64)
    return numbers[0], numbers[1:].reshape(rows, -1)


def loads_lightgbm(dataset, model, scores, contributions):
    """LightGBM loads a model that was written for it: scores to the last bits, contributions to many digits."""
    import lightgbm

    x, _, _, _ = read(dataset)
    booster = lightgbm.Booster(model_file=model)
    found = [apart(np.loadtxt(scores), booster.predict(x), 1e-14, "scores")]
    expected, ours = contributions_of(contributions, len(x))
    theirs = booster.predict(x, pred_contrib=True)
    found.append(apart(ours, theirs[:, :-1], 1e-8, "contributions"))
    found.append(apart(np.array([expected]), theirs[:1, -1], 1e-8, "expected value"))
    # It says the same after LightGBM has written it.
    again = lightgbm.Booster(model_str=booster.model_to_string())
    apart(booster.predict(x), again.predict(x), 0, "written again")
    print(", ".join(found))


def words_lightgbm(table, model, scores):
    """LightGBM maps the words of a DataFrame's categories as planetree does, in whatever order they are."""
    import lightgbm
    import pandas

    booster = lightgbm.Booster(model_file=model)
    x = pandas.read_csv(table)[booster.feature_name()]
    words = [name for name in x.columns if not pandas.api.types.is_numeric_dtype(x[name])]
    assert words == ["colour", "size"]
    for order in (False, True):
        for name in words:
            x[name] = pandas.Categorical(x[name].astype(str), sorted(set(x[name].astype(str)), reverse=order))
        print(apart(np.loadtxt(scores), booster.predict(x), 1e-14, "scores"))


def words_xgboost(table, model, scores):
    """XGBoost takes codes, which are the places in the lists that come with the model."""
    import json
    import pandas
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(model)
    x = pandas.read_csv(table)[booster.feature_names]
    for name, words in zip(booster.feature_names, json.loads(booster.attr("planetree_words"))):
        if words is not None:
            x[name] = x[name].map({word: code for code, word in enumerate(words)})
    theirs = booster.predict(xgboost.DMatrix(x), output_margin=True)
    print(apart(np.loadtxt(scores), theirs.astype(float), 1e-6, "scores"))


def loads_xgboost(dataset, model, scores, contributions):
    """XGBoost loads a model that was written for it."""
    import xgboost

    x, _, names, _ = read(dataset)
    booster = xgboost.Booster(model_file=model)
    # Its dumps call features as we do, also f1 ... fN, which it would count from 0.
    assert booster.feature_names == names, (booster.feature_names, names)
    used = {name for tree in booster.get_dump() for name in re.findall(r":\[(.*)<", tree)}
    assert used <= set(names), used - set(names)
    data = xgboost.DMatrix(x, feature_names=names)
    found = [apart(np.loadtxt(scores), booster.predict(data).astype(float), 1e-6, "scores")]
    expected, ours = contributions_of(contributions, len(x))
    theirs = booster.predict(data, pred_contribs=True).astype(float)
    found.append(apart(ours, theirs[:, :-1], 2e-5, "contributions"))
    found.append(apart(np.array([expected]), theirs[:1, -1], 1e-5, "expected value"))
    booster.save_model("again.json")
    again = xgboost.Booster(model_file="again.json")
    apart(booster.predict(data), again.predict(data), 0, "written again")
    print(", ".join(found))


def settings_of(words):
    def value(text):
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text

    return {key: value(text) for key, text in (word.split("=", 1) for word in words)}


def makes_lightgbm(dataset, model, *words):
    """Trains with LightGBM and writes its model, scores and contributions beside it."""
    import lightgbm

    x, y, names, sizes = read(dataset)
    settings = dict(verbose=-1, num_threads=2, num_leaves=15, min_data_in_leaf=5, seed=3) | settings_of(words)
    trees = settings.pop("num_trees", 30)
    if settings.get("objective") == "binary":
        y = (y > 1).astype(float)
    named = {"feature_name": names} if settings.pop("named", 0) else {}
    data = lightgbm.Dataset(x, y, group=sizes, params=settings, **named)
    booster = lightgbm.train(settings, data, trees)
    booster.save_model(model)
    # LightGBM means a forest's trees in its predictions only; raw scores and contributions are sums.
    trees = booster.num_trees() if settings.get("boosting") == "rf" else 1
    booster.predict(x, raw_score=trees == 1).tofile(model + ".scores")
    (booster.predict(x, pred_contrib=True) / trees).tofile(model + ".contributions")


def makes_xgboost(dataset, model, *words):
    """The same with XGBoost."""
    import xgboost

    x, y, names, sizes = read(dataset)
    settings = dict(nthread=2, max_depth=5, eta=0.1, seed=3) | settings_of(words)
    trees = settings.pop("num_trees", 30)
    if settings.get("objective", "").startswith("binary"):
        y = (y > 1).astype(float)
    named = dict(feature_names=names) if settings.pop("named", 0) else {}
    data = xgboost.DMatrix(x, y, **named)
    if settings.get("objective", "").startswith("rank"):
        data.set_group(sizes)
    booster = xgboost.train(settings, data, trees)
    booster.save_model(model)
    booster.predict(data, output_margin=True).astype(float).tofile(model + ".scores")
    booster.predict(data, pred_contribs=True).astype(float).tofile(model + ".contributions")


def compares(model, scores, contributions, tolerance):
    """What planetree makes of a model of theirs is what they made of it."""
    theirs = np.fromfile(model + ".scores")
    found = [apart(np.loadtxt(scores), theirs, float(tolerance), "scores")]
    expected, ours = contributions_of(contributions, len(theirs))
    theirs = np.fromfile(model + ".contributions").reshape(len(theirs), -1)
    found.append(apart(ours, theirs[:, :-1], 30 * float(tolerance), "contributions"))
    found.append(apart(np.array([expected]), theirs[:1, -1], 30 * float(tolerance), "expected value"))
    print(", ".join(found))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
