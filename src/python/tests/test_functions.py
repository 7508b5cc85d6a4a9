"""Functions give the results of the commands, on paths and on data frames."""

import json
import subprocess
import sys
import tempfile
import unittest

import ir_measures
import numpy as np
import pandas
import planetree
import polars
from ir_measures import nDCG

from data import ROOT, SMALL, command, letor, names


class Functions(unittest.TestCase):
    @classmethod
    def at(cls, name):
        return f"{cls.room.name}/{name}"

    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.TemporaryDirectory()
        cls.frames = {}
        for name in ("train", "vali", "test"):
            X, y, qid = letor(name)
            cls.frames[name] = pandas.DataFrame(X, columns=names(X)).assign(label=y, qid=qid)
            planetree.convert(str(ROOT / f"sample_data/{name}.txt"), cls.at(name))
        cls.model = planetree.train(cls.at("train"), model=cls.at("m.parquet"), **SMALL)

    @classmethod
    def tearDownClass(cls):
        cls.room.cleanup()

    def test_train_takes_paths_and_frames(self):
        model = planetree.train(self.frames["train"], valid={"vali": polars.DataFrame(self.frames["vali"])}, preset="planet", num_trees=5)
        self.assertEqual((model.num_trees, len(model.feature_names)), (5, 46))
        again = planetree.train([self.at("train"), self.at("vali")], valid=self.at("test"), preset="planet", num_trees=5, learning_rate=0.5)
        self.assertIn("learning_rate = 0.5", again.configuration)
        self.assertEqual(planetree.Model.load(self.at("m.parquet")).to_bytes(), self.model.to_bytes())

    def test_monotone_constraints_are_a_dictionary_or_a_list(self):
        settings = dict(preset="planet", num_trees=3)
        by_name = planetree.train(self.at("train"), monotone_constraints={"f1": 1, "f2": -1}, **settings)
        self.assertIn('monotone_constraints = "f1=1,f2=-1"', by_name.configuration)
        in_order = planetree.train(self.at("train"), monotone_constraints=[1, -1] + [0] * 44, **settings)
        self.assertIn('monotone_constraints = "1,-1,0,', in_order.configuration)

    def test_predict_and_evaluate_and_compare(self):
        table = planetree.predict(self.model, self.at("test"))
        self.assertEqual(table.column_names, ["query_id", "doc_id", "label", "score", "rank"])
        command(self.room.name, "predict", "--model", "m.parquet", "--data", "test", "--output", "p.parquet")
        expected = planetree.sql("SELECT * FROM p", {"p": self.at("p.parquet")}).to_pandas()
        pandas.testing.assert_frame_equal(table.to_pandas(), expected)
        kept = planetree.predict(self.at("m.parquet"), self.at("test"), output=self.at("kept.csv"))
        self.assertEqual(kept.num_rows, table.num_rows)
        framed = planetree.predict(self.model, self.frames["test"]).to_pandas()
        np.testing.assert_array_equal(framed["score"], expected["score"])
        result = planetree.evaluate(table, metrics=["ndcg@10", "err"])
        printed = json.loads(command(self.room.name, "evaluate", "--predictions", "p.parquet", "--metrics", "ndcg@10,err", "--json"))
        self.assertEqual(without_times(result), without_times(printed))
        named = planetree.evaluate({"a": table, "b": self.at("p.parquet")}, metrics="ndcg@10")
        self.assertIn('"a"', json.dumps(named))
        worse = expected.assign(score=-expected["score"])
        difference = planetree.compare({"worse": worse, "model": table}, metric="ndcg@10", permutations=1000)
        self.assertIn("pairs", difference)
        numbers = expected.assign(query_id=expected["query_id"].astype(int)).drop(columns="doc_id")
        self.assertIn(numbers["query_id"].astype(str)[0], str(planetree.evaluate(numbers, worst=100)))
        same = planetree.compare(self.at("p.parquet"), table, permutations=1000)
        self.assertEqual(same["pairs"][0]["randomisation"]["p"], 1.0)

    def test_cross_validation(self):
        result = planetree.cv(self.frames["train"], folds=3, preset="planet", num_trees=3)
        kept = planetree.cv(self.at("train"), folds=3, preset="planet", num_trees=3, output=self.at("cv"))
        self.assertEqual(len(result["folds"]), len(kept["folds"]))
        self.assertTrue(planetree.sql("SELECT * FROM f", {"f": self.at("cv/folds.parquet")}).num_rows > 0)

    def test_sql_joins_files_and_frames(self):
        weights = pandas.DataFrame({"query_id": ["1", "2"], "market": ["de", "fr"]})
        query = "SELECT market, count(*) AS n FROM d JOIN markets USING (query_id) GROUP BY market ORDER BY market"
        rows = planetree.sql(query, {"d": self.at("train"), "markets": weights}).to_pandas()
        qid = self.frames["train"]["qid"]
        self.assertEqual(rows["n"].tolist(), [(qid == 1).sum(), (qid == 2).sum()])
        numbers = pandas.DataFrame({"a": [1, 2], "b": [0.5, None]})
        kinds = planetree.sql("SELECT * FROM n", {"n": numbers}).to_pandas().dtypes
        self.assertEqual([str(kind) for kind in kinds], ["int64", "float64"])
        gains = planetree.sql("SELECT feature, sum(gain) AS gain FROM m WHERE gain > 0 GROUP BY feature", {"m": self.at("m.parquet")})
        gains = dict(zip(*(gains.to_pandas()[name] for name in ("feature", "gain"))))
        importance = dict(zip(self.model.feature_names, self.model.importance()))
        for feature, gain in gains.items():
            self.assertAlmostEqual(gain, importance[feature], delta=1e-6 * gain)

    def test_frames_for_ir_measures(self):
        table = planetree.predict(self.model, self.at("test"))
        qrels, run = planetree.ir_frames(table)
        value = ir_measures.calc_aggregate([nDCG(dcg="exp-log2") @ 10], qrels, run)
        result = planetree.evaluate(table, metrics="ndcg@10", convention="trec,gain=exp2")
        self.assertAlmostEqual(next(iter(value.values())), mean(result), places=6)

    def test_describe_and_convert(self):
        described = planetree.describe(self.at("train"))
        model = planetree.Model.load(self.at("m.parquet"))
        self.assertEqual(planetree.describe(model)["configuration"], planetree.describe(self.at("m.parquet"))["configuration"])
        self.assertIn("1800", json.dumps(described))
        done = planetree.convert(self.frames["test"], self.at("again"))
        self.assertEqual((done["rows"], done["features"]), (600, 46))
        with self.assertRaises(planetree.PlanetreeError):
            planetree.convert(self.frames["test"], self.at("again"))
        planetree.convert(self.frames["test"], self.at("again"), overwrite=True)

    def test_the_command_is_the_program(self):
        run = lambda *words: subprocess.run([sys.executable, "-m", "planetree", *words], capture_output=True, text=True)
        done = run("describe", self.at("m.parquet"), "--json")
        self.assertEqual(done.stdout, command(self.room.name, "describe", self.at("m.parquet"), "--json"))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(run("describe", self.at("absent")).returncode, 1)
        wrong = run("train", "--dat", "x")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("--data", wrong.stderr)
        self.assertEqual(run("--version").stdout, command(self.room.name, "--version"))


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if "second" not in key and key not in ("name", "system", "file", "ranking")}
    if isinstance(value, list):
        return [without_times(each) for each in value]
    return value


def mean(result):
    system = result["systems"][0] if "systems" in result else result
    return system["metrics"][0]["mean"]


if __name__ == "__main__":
    unittest.main()
