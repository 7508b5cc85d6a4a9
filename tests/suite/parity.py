"""Compares exported models with the programs that they are exported to, on random models and on rows at their thresholds.

    parity.py generate DIRECTORY
    parity.py check DIRECTORY

`generate` writes random models in planetree's JSON. `check` reads what planetree exported from them, NAME.FORMAT.KIND, and
scores rows with the real program. A row for every split has its feature at the threshold, one 32-bit float below and above
it, missing, 0, -0 and infinite. Scores must be those of the trees, added up in the arithmetic of the program, to the last bit.
It prints one line per format and kind: models, rows, rows that differ.
"""
import base64
import gzip
import json
import os
import sys

import numpy as np

EDGES = [0.0, -0.0, 1e-45, -1e-45, 1.1754944e-38, 1e-20, 1e-6, -1e-6, 1e30, -1e30, 16777216.0, 0.1, 0.3, 1 / 3]
ENGINES = {}


def f32(number):
    return float(np.float32(number))


def random_tree(random, features, leaves, scale):
    """A tree in the nodes of planetree's JSON: random leaves are split, so that some trees are deep."""
    nodes = [dict(depth=0, value=float(random.normal()) * scale, cover=float(random.integers(1, 100)))]
    open_leaves = [0]
    while len(open_leaves) < leaves:
        at = open_leaves.pop(-1 if random.random() < 0.5 else int(random.integers(len(open_leaves))))
        threshold = EDGES[random.integers(len(EDGES))] if random.random() < 0.3 else random.normal()
        if random.random() < 0.3:
            threshold = round(threshold)  # ties with other splits
        nodes[at]["split"] = dict(
            feature=int(random.integers(features)), threshold=f32(threshold), missing=str(random.choice(["left", "right"])),
            left=len(nodes), right=len(nodes) + 1, gain=1.0)
        for _ in range(2):
            open_leaves.append(len(nodes))
            nodes.append(dict(depth=nodes[at]["depth"] + 1, value=float(random.normal()) * scale, cover=1.0))
    return dict(nodes=nodes)


SHAPES = [  # trees, leaves, features, mean, missing values are zero
    (1, 1, 1, False, False), (1, 2, 1, False, False), (3, 8, 3, False, False), (20, 31, 7, True, False),
    (50, 16, 5, False, True), (7, 200, 4, True, True), (300, 32, 20, False, False), (2000, 4, 6, False, False),
    (2000, 3, 6, True, True), (0, 1, 2, False, False), (5, 40, 1, False, False), (0, 1, 2, True, False),
]


def generate(directory):
    for number, (trees, leaves, features, mean, zero) in enumerate(SHAPES):
        random = np.random.default_rng(number)
        scale = float(random.choice([0.01, 1.0, 1000.0]))
        part = dict(
            name="trees", kind="trees", weight=1.0, normalisation="none", combine="mean" if mean else "sum",
            base_score=float(random.normal()) if number % 2 else 0.0,
            trees=[random_tree(random, features, leaves, scale) for _ in range(trees)])
        model = dict(
            planetree_model=2, intercept=0.0, parts=[part], configuration="", data=[], rounds=trees,
            features=[dict(name=f"x{index}", fill=0.0 if zero else None) for index in range(features)])
        with open(f"{directory}/model{number}.json", "w") as file:
            json.dump(model, file)


class Trees:
    """A model, walked row by row in Python: the slow and obviously right twin of everything."""

    def __init__(self, path):
        with open(path) as file:
            model = json.load(file)
        part = model["parts"][0]
        self.trees = [tree["nodes"] for tree in part["trees"]]
        # Without trees, a mean is its base score, as a sum is.
        self.mean, self.base = part["combine"] == "mean" and bool(self.trees), part["base_score"]
        self.fills = [feature["fill"] for feature in model["features"]]
        self.width = len(self.fills)

    def leaf(self, nodes, row, reads):
        node = nodes[0]
        while "split" in node:
            split = node["split"]
            value = reads(row[split["feature"]])
            fill = self.fills[split["feature"]]
            if np.isnan(value) and fill is not None:
                value = fill
            left = split["missing"] == "left" if np.isnan(value) else value <= split["threshold"]
            node = nodes[split["left"] if left else split["right"]]
        return node["value"]

    def leaves(self, rows, reads=float):
        return np.array([[self.leaf(nodes, row, reads) for nodes in self.trees] for row in rows]).reshape(len(rows), len(self.trees))

    def rows(self, most):
        """For every split a row that reaches it, with its feature at and around the threshold."""
        random = np.random.default_rng(7)
        found = []
        for nodes in self.trees:
            parent = {}
            for index, node in enumerate(nodes):
                for side in ("left", "right"):
                    if "split" in node:
                        parent[node["split"][side]] = (index, side)
            for index, node in enumerate(nodes):
                if "split" not in node:
                    continue
                row = random.normal(size=self.width).astype(np.float32)
                place = index
                while place in parent:
                    place, side = parent[place]
                    above = nodes[place]["split"]
                    edge = np.float32(above["threshold"])
                    row[above["feature"]] = edge if side == "left" else np.nextafter(edge, np.float32(np.inf))
                split = node["split"]
                threshold = np.float32(split["threshold"])
                for value in (threshold, np.nextafter(threshold, np.float32(-np.inf)), np.nextafter(threshold, np.float32(np.inf)),
                              np.nan, 0.0, -0.0, np.inf, -np.inf):
                    row[split["feature"]] = value
                    found.append(row.copy())
        found.append(np.zeros(self.width, dtype=np.float32))
        found = np.array(found, dtype=np.float32)
        if len(found) > most:
            found = found[np.sort(random.choice(len(found), most, replace=False))]
        return np.ascontiguousarray(found)

    def double(self, leaves):
        """The score in 64-bit floats, added up in order."""
        total = np.full(len(leaves), 0.0 if self.mean else self.base)
        for column in leaves.T:
            total = total + column
        return self.base + total / max(1, len(self.trees)) if self.mean else total

    def single(self, leaves, base_last=False):
        """The score in 32-bit floats: leaves are rounded, and so is the sum after every tree."""
        scale = 1.0 / max(1, len(self.trees)) if self.mean else 1.0
        base = np.float32(self.base)
        total = np.full(len(leaves), np.float32(0) if base_last else base, dtype=np.float32)
        for column in leaves.T:
            total = total + (column * scale).astype(np.float32)
        return total + base if base_last else total

    def single_mean(self, leaves):
        """The same for a mean whose base score is part of every leaf."""
        total = np.zeros(len(leaves), dtype=np.float32)
        for column in leaves.T:
            total = total + (column + self.base).astype(np.float32)
        return total / np.float32(max(1, len(self.trees)))


def engine(name, most=2000):
    def register(function):
        ENGINES[name] = (function, most)
        return function
    return register


def differing(found, *expected):
    """The number of rows that have none of the expected scores, to the bit."""
    found = np.asarray(found).reshape(-1)
    equal = np.zeros(len(found), dtype=bool)
    for scores in expected:
        equal |= (found == scores) | (np.isnan(found) & np.isnan(scores))
    return int((~equal).sum())


@engine("lightgbm.trees")
def lightgbm(path, model, rows):
    import lightgbm
    found = lightgbm.Booster(model_file=path).predict(rows, num_threads=1)
    # LightGBM reads values closer to 0 than 1e-35 as 0.
    leaves = model.leaves(rows, lambda value: 0.0 if abs(value) <= 1e-35 else float(value))
    if model.mean:
        total = np.zeros(len(rows))
        for column in leaves.T:
            total = total + (column + model.base)
        return differing(found, total / max(1, len(model.trees)))
    return differing(found, model.double(leaves))


@engine("xgboost.trees")
def xgboost(path, model, rows):
    import xgboost
    with open(path, "rb") as file:
        booster = xgboost.Booster(model_file=bytearray(file.read()))
    booster.set_param({"nthread": 1})
    rows = rows[~np.isinf(rows).any(axis=1)]  # XGBoost refuses infinite values
    found = booster.predict(xgboost.DMatrix(rows, feature_names=booster.feature_names))
    leaves = model.leaves(rows)
    return differing(found, model.single(leaves), model.single(leaves, base_last=True))


def onnx_scores(path, rows):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": rows})[0]


def onnx_expected(model, leaves):
    return model.single_mean(leaves) if model.mean else model.single(leaves)


@engine("onnx.float")
def onnx_float(path, model, rows):
    import onnx
    onnx.checker.check_model(onnx.load(path))
    return differing(onnx_scores(path, rows), onnx_expected(model, model.leaves(rows)))


@engine("onnx.float.3")
def onnx_regressor(path, model, rows):
    return onnx_float(path, model, rows)


@engine("onnx.double")
def onnx_double(path, model, rows):
    leaves = model.leaves(rows)
    if model.mean:
        total = np.zeros(len(rows))
        for column in leaves.T:
            total = total + (column + model.base)
        return differing(onnx_scores(path, rows.astype(np.float64)), total / max(1, len(model.trees)))
    return differing(onnx_scores(path, rows.astype(np.float64)), model.double(leaves))


def treelite_scores(path, rows):
    import treelite
    return treelite.gtil.predict(treelite.Model.deserialize(path), rows, nthread=1)


@engine("treelite.float")
def treelite_float(path, model, rows):
    leaves = model.leaves(rows)
    found = treelite_scores(path, rows)
    if model.mean:
        total = np.zeros(len(rows), dtype=np.float32)
        for column in leaves.T:
            total = total + column.astype(np.float32)
        mean = total / np.float32(max(1, len(model.trees)))
        return differing(found, mean + np.float32(model.base), (mean.astype(float) + model.base).astype(np.float32))
    last = model.single(leaves, base_last=True)
    without = model.single(leaves) if model.base == 0 else last
    total = np.zeros(len(rows), dtype=np.float32)
    for column in leaves.T:
        total = total + column.astype(np.float32)
    return differing(found, last, without, (total.astype(float) + model.base).astype(np.float32))


@engine("treelite.double")
def treelite_double(path, model, rows):
    leaves = model.leaves(rows)
    total = np.zeros(len(rows))
    for column in leaves.T:
        total = total + column
    total = total / max(1, len(model.trees)) if model.mean else total
    return differing(treelite_scores(path, rows.astype(np.float64)), total + model.base)


@engine("pmml.trees", most=200)
def pmml(path, model, rows):
    import pandas
    from jpmml_evaluator import make_evaluator
    rows = rows[~np.isinf(rows).any(axis=1)]
    names = [f"x{index}" for index in range(model.width)]
    frame = pandas.DataFrame(rows.astype(float), columns=names).astype(object)
    frame = frame.where(frame.notna(), None)
    found = make_evaluator(path).evaluateAll(frame)["score"].astype(float).to_numpy()
    leaves = model.leaves(rows)
    total = np.zeros(len(rows)) if model.mean else np.full(len(rows), model.base)
    for column in leaves.T:
        total = total + (column + model.base if model.mean else column)
    return differing(found, total / max(1, len(model.trees)) if model.mean else total)


@engine("elastic.trees")
def elastic(path, model, rows):
    """eland's serialiser writes the same definition; its trees are walked as Elasticsearch walks them."""
    from eland.ml._model_serializer import Tree, TreeNode
    with open(path) as file:
        body = json.load(file)
    definition = json.loads(gzip.decompress(base64.b64decode(body["compressed_definition"])))
    ensemble = definition["trained_model"]["ensemble"]
    trees = []
    for entry in ensemble["trained_models"]:
        nodes = [TreeNode(
            node_idx=node["node_index"], default_left=node.get("default_left"), decision_type=node.get("decision_type"),
            left_child=node.get("left_child"), right_child=node.get("right_child"), split_feature=node.get("split_feature"),
            threshold=node.get("threshold"), leaf_value=[node["leaf_value"]] if "leaf_value" in node else None,
            number_samples=node["number_samples"]) for node in entry["tree"]["tree_structure"]]
        trees.append(Tree(ensemble["feature_names"], target_type="regression", tree_structure=nodes))
    for entry, tree in zip(ensemble["trained_models"], trees):
        wanted = tree.to_dict()["tree"]
        for ours, their in zip(entry["tree"]["tree_structure"], wanted["tree_structure"]):
            for key, value in their.items():
                value = value[0] if key == "leaf_value" and isinstance(value, list) else value
                assert ours.get(key) == value, (key, ours, their)
    total = np.zeros(len(rows))
    for entry in ensemble["trained_models"]:
        nodes = entry["tree"]["tree_structure"]
        for place, row in enumerate(rows):
            node = nodes[0]
            while "leaf_value" not in node:
                value = row[node["split_feature"]]
                left = value <= node["threshold"] if np.isfinite(value) else node["default_left"]
                node = nodes[node["left_child"] if left else node["right_child"]]
            total[place] += node["leaf_value"]
    finite = ~np.isinf(rows).any(axis=1)
    expected = model.double(model.leaves(rows[finite]))
    worst = np.abs(total[finite] - expected) / np.maximum(1.0, np.abs(expected))
    return int((worst > 1e-12).sum())


def check(directory):
    failed = False
    for name, (score, most) in ENGINES.items():
        models, tried, differ, where = 0, 0, 0, []
        for number in range(len(SHAPES)):
            path = f"{directory}/model{number}.{name}"
            if not os.path.exists(path):
                continue
            model = Trees(f"{directory}/model{number}.json")
            rows = model.rows(max(50, min(most, 400_000 // max(1, len(model.trees)))))
            found = score(path, model, rows)
            models, tried, differ = models + 1, tried + len(rows), differ + found
            if found:
                where.append(f"model{number}: {found}")
        print(f"{name}: {models} models, {tried} rows, {differ} differ {' '.join(where)}".rstrip())
        failed |= differ > 0 or models == 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
