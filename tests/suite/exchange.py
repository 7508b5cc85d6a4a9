"""Compares exported and imported models with LightGBM and XGBoost.

    exchange.py CHECK ARGUMENT...

CHECK is the name of a function in this file. It prints its findings, and fails with an assertion error.
"""
import re
import sys

import numpy as np

from dataset import query_sizes, read_dataset


def check_close(ours, theirs, tolerance, what):
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    worst = np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())
    assert worst <= tolerance, f"{what}: maximum error {worst}"
    return f"{what}: maximum error {worst:.1e}"


def read_contributions(path, rows):
    """The expected value and the contributions, as `write_explanations` in exchange.rs writes them."""
    numbers = np.fromfile(path, dtype=np.float64)
    return numbers[0], numbers[1:].reshape(rows, -1)


def loads_lightgbm(dataset, model, scores, contributions, tolerance):
    """LightGBM loads an exported model and computes the same scores and contributions."""
    import lightgbm

    x, _, _, _ = read_dataset(dataset)
    booster = lightgbm.Booster(model_file=model)
    found = [check_close(np.loadtxt(scores), booster.predict(x), 1e-14, "scores")]
    expected, ours = read_contributions(contributions, len(x))
    theirs = booster.predict(x, pred_contrib=True)
    found.append(check_close(ours, theirs[:, :-1], float(tolerance), "contributions"))
    found.append(check_close(np.array([expected]), theirs[:1, -1], float(tolerance), "expected value"))
    # The model is unchanged after LightGBM has saved it.
    again = lightgbm.Booster(model_str=booster.model_to_string())
    check_close(booster.predict(x), again.predict(x), 0, "saved again")
    print(", ".join(found))


def words_lightgbm(table, model, scores):
    """LightGBM maps the categories of a DataFrame as planetree does, whatever their order."""
    import lightgbm
    import pandas

    booster = lightgbm.Booster(model_file=model)
    x = pandas.read_csv(table)[booster.feature_name()]
    words = [name for name in x.columns if not pandas.api.types.is_numeric_dtype(x[name])]
    assert words == ["colour", "size"]
    for order in (False, True):
        for name in words:
            x[name] = pandas.Categorical(x[name].astype(str), sorted(set(x[name].astype(str)), reverse=order))
        print(check_close(np.loadtxt(scores), booster.predict(x), 1e-14, "scores"))


def words_xgboost(table, model, scores):
    """XGBoost needs codes, which are the indices in the lists that are stored with the model."""
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
    print(check_close(np.loadtxt(scores), theirs.astype(float), 1e-6, "scores"))


def loads_xgboost(dataset, model, scores, contributions):
    """XGBoost loads an exported model and computes the same scores and contributions."""
    import xgboost

    x, _, names, _ = read_dataset(dataset)
    booster = xgboost.Booster(model_file=model)
    # Dumps use planetree's feature names, even for f1 ... fN, which XGBoost would otherwise count from 0.
    assert booster.feature_names == names, (booster.feature_names, names)
    used = {name for tree in booster.get_dump() for name in re.findall(r":\[(.*)<", tree)}
    assert used <= set(names), used - set(names)
    data = xgboost.DMatrix(x, feature_names=names)
    found = [check_close(np.loadtxt(scores), booster.predict(data).astype(float), 1e-6, "scores")]
    expected, ours = read_contributions(contributions, len(x))
    theirs = booster.predict(data, pred_contribs=True).astype(float)
    found.append(check_close(ours, theirs[:, :-1], 2e-5, "contributions"))
    found.append(check_close(np.array([expected]), theirs[:1, -1], 1e-5, "expected value"))
    booster.save_model("again.json")
    again = xgboost.Booster(model_file="again.json")
    check_close(booster.predict(data), again.predict(data), 0, "saved again")
    print(", ".join(found))


def parse_settings(arguments):
    """Parses `key=value` arguments."""
    def value(text):
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text

    return {key: value(text) for key, text in (argument.split("=", 1) for argument in arguments)}


def trains_lightgbm(dataset, model, *arguments):
    """Trains with LightGBM and writes the model, its scores and its contributions."""
    import lightgbm

    x, y, names, queries = read_dataset(dataset)
    settings = dict(verbose=-1, num_threads=2, num_leaves=15, min_data_in_leaf=5, seed=3) | parse_settings(arguments)
    trees = settings.pop("num_trees", 30)
    if settings.get("objective") == "binary":
        y = (y > 1).astype(float)
    named = {"feature_name": names} if settings.pop("named", 0) else {}
    data = lightgbm.Dataset(x, y, group=query_sizes(queries), params=settings, **named)
    booster = lightgbm.train(settings, data, trees)
    booster.save_model(model)
    # LightGBM averages the trees of a forest only in predictions; raw scores and contributions are sums.
    trees = booster.num_trees() if settings.get("boosting") == "rf" else 1
    booster.predict(x, raw_score=trees == 1).tofile(model + ".scores")
    (booster.predict(x, pred_contrib=True) / trees).tofile(model + ".contributions")


def trains_xgboost(dataset, model, *arguments):
    """Trains with XGBoost and writes the model, its scores and its contributions."""
    import xgboost

    x, y, names, queries = read_dataset(dataset)
    settings = dict(nthread=2, max_depth=5, eta=0.1, seed=3) | parse_settings(arguments)
    trees = settings.pop("num_trees", 30)
    if settings.get("objective", "").startswith("binary"):
        y = (y > 1).astype(float)
    named = dict(feature_names=names) if settings.pop("named", 0) else {}
    data = xgboost.DMatrix(x, y, **named)
    if settings.get("objective", "").startswith("rank"):
        data.set_group(query_sizes(queries))
    booster = xgboost.train(settings, data, trees)
    booster.save_model(model)
    booster.predict(data, output_margin=True).astype(float).tofile(model + ".scores")
    booster.predict(data, pred_contribs=True).astype(float).tofile(model + ".contributions")


def compares(model, scores, contributions, tolerance):
    """The scores and contributions of an imported model are those of the program that trained it."""
    theirs = np.fromfile(model + ".scores")
    found = [check_close(np.loadtxt(scores), theirs, float(tolerance), "scores")]
    expected, ours = read_contributions(contributions, len(theirs))
    theirs = np.fromfile(model + ".contributions").reshape(len(theirs), -1)
    found.append(check_close(ours, theirs[:, :-1], 30 * float(tolerance), "contributions"))
    found.append(check_close(np.array([expected]), theirs[:1, -1], 30 * float(tolerance), "expected value"))
    print(", ".join(found))


def trains_categories(engine, kind, model, table):
    """Trains on categories. Writes the model, a table of rows as CSV, and their scores by the program that trained it.

    The rows are those of a data frame with texts and numbers as categories, or codes, among them values that are no codes.
    """
    import pandas

    random = np.random.default_rng(11)
    rows = 1500
    words = np.array([f"word {place}" for place in range(23)])
    codes = {"x": random.random(rows), "colour": random.integers(0, 23, rows), "size": random.integers(0, 9, rows)}
    y = np.isin(codes["colour"], random.permutation(23)[:9]) * 1.0 + (codes["size"] % 3 == 1) * codes["x"]
    y += np.isin(codes["colour"], random.permutation(23)[:11]) * (codes["size"] > 4) + random.normal(0, 0.1, rows)
    if kind == "frame":
        numbers = 10 * np.arange(9) - 20
        given = pandas.DataFrame(codes)
        given["colour"] = pandas.Categorical(words[given["colour"]], words)
        given["size"] = pandas.Categorical(numbers[given["size"]], numbers)
        for column, share in (("x", 9), ("colour", 11), ("size", 13)):
            given.loc[given.index % share == 0, column] = None
        scored = given
    else:
        given = pandas.DataFrame(codes).astype("float32")
        for column, share in (("colour", 11), ("size", 13)):
            given.loc[given.index % share == 0, column] = None
        edges = [-1e9, -2, -1, -0.999, -1e-45, -0.0, 0, 0.5, 0.999, 1, 1.5, 5, 8, 9, 22, 22.9, 23, 31.5, 32, 64, 1e7, np.nan]
        scored = pandas.DataFrame([(x, colour, size) for x in (0.2, 0.7) for colour in edges for size in edges], columns=list(codes))
        scored = scored.astype("float32")
    if engine == "lightgbm":
        import lightgbm

        settings = dict(verbose=-1, num_threads=2, num_leaves=15, min_data_in_leaf=3, min_data_per_group=3, cat_smooth=1, max_cat_to_onehot=2)
        chosen = "auto" if kind == "frame" else ["colour", "size"]
        booster = lightgbm.train(settings, lightgbm.Dataset(given, y, categorical_feature=chosen), 12)
        scores = booster.predict(scored)
    else:
        import xgboost

        settings = dict(nthread=2, max_depth=4, max_cat_to_onehot=1, min_child_weight=1)
        types = {} if kind == "frame" else {"feature_types": ["float", "c", "c"]}
        booster = xgboost.train(settings, xgboost.DMatrix(given, y, enable_categorical=True, **types), 12)
        scores = booster.predict(xgboost.DMatrix(scored, enable_categorical=True, **types), output_margin=True)
    booster.save_model(model)
    np.asarray(scores, dtype=float).tofile(model + ".scores")
    out = scored.astype(object).where(scored.notna(), None)
    out.insert(0, "qid", np.arange(len(out)) // 20)
    out.insert(1, "label", np.arange(len(out)) % 3)
    out.to_csv(table, index=False)


def compares_scores(model, scores, tolerance):
    """The scores of an imported model are those of the program that trained it."""
    print(check_close(np.loadtxt(scores), np.fromfile(model + ".scores"), float(tolerance), "scores"))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
