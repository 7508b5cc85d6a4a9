"""Rows of every kind give the same model, which is that of the program."""

import tempfile
import unittest

import duckdb
import numpy as np
import pandas
import planetree
import polars
import pyarrow
import scipy.sparse

from data import ROOT, SMALL, command, document_ids, letor, names, settings, write_letor


def fitted(X, y=None, **arguments):
    return planetree.Ranker("lambdamart", **SMALL).fit(X, y, **arguments).model_.to_bytes()


class Inputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.X, cls.y, cls.qid = letor("train")
        cls.frame = pandas.DataFrame(cls.X, columns=names(cls.X))
        cls.expected = fitted(cls.frame, cls.y, qid=cls.qid)

    def test_the_model_is_that_of_the_program(self):
        with tempfile.TemporaryDirectory() as room:
            for name in ("train", "vali"):
                write_letor(name, f"{room}/{name}.txt")
                command(room, "convert", f"{name}.txt", "--output", name)
            words = ["train", "--preset", "lambdamart", "--data", "train", *settings(SMALL)]
            command(room, *words, "--model", "a.parquet")
            command(room, *words, "--model", "b.parquet", "--valid", "vali", "--set", "early_stopping_rounds=3")
            with open(f"{room}/a.parquet", "rb") as file:
                self.assertEqual(file.read(), self.expected)
            X, y, qid = letor("vali")
            ranker = planetree.Ranker("lambdamart", early_stopping_rounds=3, **SMALL)
            ranker.fit(self.X, self.y, qid=self.qid, eval_set=[(X, y)], eval_qid=[qid])
            with open(f"{room}/b.parquet", "rb") as file:
                self.assertEqual(file.read(), ranker.model_.to_bytes())

    def test_document_ids_are_those_of_the_program(self):
        frame = self.frame.assign(doc_id=document_ids("train"), label=self.y, qid=self.qid)
        with tempfile.TemporaryDirectory() as room:
            text = planetree.convert(str(ROOT / "sample_data/train.txt"), f"{room}/text")
            self.assertEqual(planetree.convert(frame, f"{room}/frame")["fingerprint"], text["fingerprint"])
            model = planetree.train(f"{room}/text", preset="lambdamart", **SMALL).to_bytes()
        self.assertEqual(fitted(frame), model)
        self.assertNotEqual(model, self.expected, "the model records which documents it was trained on")

    def test_all_kinds_of_rows_give_one_model(self):
        table = arrow = pyarrow.Table.from_pandas(self.frame)
        kinds = {
            "NumPy": self.X,
            "NumPy, column by column": np.asfortranarray(self.X),
            "polars": polars.DataFrame(self.frame),
            "pyarrow": table,
            "pyarrow, many small batches": table.to_reader(7),
            "DuckDB": duckdb.sql("SELECT * FROM arrow"),
            "pandas with nullable numbers": self.frame.convert_dtypes(convert_string=False, infer_objects=False),
            "pandas with another index": self.frame.set_axis(np.arange(len(self.y))[::-1]),
        }
        for kind, rows in kinds.items():
            with self.subTest(kind):
                self.assertEqual(fitted(rows, self.y, qid=self.qid), self.expected)

    def test_sparse_rows_are_dense_rows_with_zeros(self):
        X = np.nan_to_num(self.X) * (np.arange(self.X.size).reshape(self.X.shape) % 3 == 0)
        expected = fitted(X, self.y, qid=self.qid)
        for kind in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.csr_array, scipy.sparse.coo_matrix):
            self.assertEqual(fitted(kind(X), self.y, qid=self.qid), expected, kind)
        ranker = planetree.Ranker(**SMALL).fit(X, self.y, qid=self.qid)
        np.testing.assert_array_equal(ranker.predict(scipy.sparse.csr_matrix(X)), ranker.predict(X))

    def test_large_ids_in_masked_arrays_stay_apart(self):
        large = 2**53 + self.qid.astype(np.int64)
        self.assertEqual(fitted(self.X, self.y, qid=np.ma.masked_array(large)), fitted(self.X, self.y, qid=large))

    def test_masked_values_are_missing(self):
        masked = np.ma.masked_invalid(self.X)
        masked.data[masked.mask] = 7.0
        self.assertEqual(fitted(masked, self.y, qid=self.qid), self.expected)
        ranker = planetree.Ranker(**SMALL).fit(self.X, self.y, qid=self.qid)
        np.testing.assert_array_equal(ranker.predict(masked), ranker.predict(self.X))

    def test_query_and_document_ids_may_be_objects(self):
        documents = document_ids("train")
        whole = self.frame.assign(doc_id=documents, label=self.y, qid=[str(query) for query in self.qid])
        objects = whole.astype({"doc_id": object, "qid": object})
        self.assertEqual(fitted(objects), fitted(whole))
        # The first chunk of rows has no document ids, and so no type that it could be told by.
        rows = 70_000
        table = pandas.DataFrame({"query_id": np.arange(rows) // 10, "label": np.arange(rows) % 3, "score": np.arange(rows) % 7})
        table["doc_id"] = pandas.Series([None] * (rows - 10) + [f"d{row}" for row in range(10)], dtype=object)
        count = planetree.sql("SELECT count(doc_id) AS n, count(*) AS rows FROM t", {"t": table}).to_pandas()
        self.assertEqual(count.iloc[0].tolist(), [10, rows])

    def test_narrow_numbers_are_not_widened(self):
        X = self.X.astype(np.float32)
        self.assertEqual(fitted(X, self.y, qid=self.qid), fitted(X.astype(np.float64), self.y, qid=self.qid))
        X = np.nan_to_num(self.X * 100).astype(np.int16)
        self.assertEqual(fitted(X, self.y, qid=self.qid), fitted(X.astype(np.float64), self.y, qid=self.qid))

    def test_query_ids_may_be_a_column_or_sizes_or_words(self):
        whole = self.frame.assign(qid=self.qid, label=self.y)
        self.assertEqual(fitted(whole.drop(columns="label"), self.y), self.expected)
        self.assertEqual(fitted(whole), self.expected)
        self.assertEqual(fitted(polars.DataFrame(whole)), self.expected)
        self.assertEqual(fitted(pyarrow.Table.from_pandas(whole)), self.expected)
        self.assertEqual(fitted(duckdb.sql("SELECT * FROM whole")), self.expected)
        self.assertEqual(fitted(self.frame, self.y, qid=[str(query) for query in self.qid]), self.expected)
        self.assertEqual(fitted(self.frame, self.y, qid=self.qid.astype(float)), self.expected)
        self.assertEqual(fitted(self.frame, self.y, qid=pandas.Series(self.qid)), self.expected)
        sizes = np.unique(self.qid, return_counts=True)[1]
        numbered = np.repeat(np.arange(1, len(sizes) + 1), sizes)
        self.assertEqual(fitted(self.X, self.y, group=sizes), fitted(self.X, self.y, qid=numbered))

    def test_rows_of_queries_may_be_scattered(self):
        order = np.random.default_rng(1).permutation(len(self.y))
        X, y, qid = self.X[order], self.y[order], self.qid[order]
        first = {query: place for place, query in reversed(list(enumerate(qid)))}
        gathered = np.argsort([first[query] for query in qid], kind="stable")
        expected = fitted(X[gathered], y[gathered], qid=qid[gathered])
        self.assertEqual(fitted(X, y, qid=qid), expected)
        frame = pandas.DataFrame(X, columns=names(X)).assign(query_id=qid)
        for rows in (frame, polars.DataFrame(frame), pyarrow.Table.from_pandas(frame).to_reader(100)):
            self.assertEqual(fitted(rows, y), expected)
        ranker = planetree.Ranker("lambdamart", **SMALL).fit(X, y, qid=qid)
        np.testing.assert_array_equal(ranker.predict(X)[np.argsort(order)], ranker.predict(self.X))
        with tempfile.TemporaryDirectory() as room:
            frame.assign(label=y).to_parquet(f"{room}/rows.parquet", index=False)
            command(room, "convert", "rows.parquet", "--output", "train", "--sort-queries")
            command(room, "train", "--preset", "lambdamart", "--data", "train", *settings(SMALL), "--model", "m.parquet")
            with open(f"{room}/m.parquet", "rb") as file:
                self.assertEqual(file.read(), expected)

    def test_weights_are_those_of_the_program(self):
        weight = 1.0 + np.arange(len(self.y)) % 3
        model = fitted(self.frame, self.y, qid=self.qid, sample_weight=weight)
        self.assertNotEqual(model, self.expected)
        with tempfile.TemporaryDirectory() as room:
            rows = self.frame.assign(query_id=self.qid, label=self.y, weight=weight)
            rows.to_parquet(f"{room}/rows.parquet", index=False)
            command(room, "convert", "rows.parquet", "--output", "train")
            command(room, "train", "--preset", "lambdamart", "--data", "train", *settings(SMALL), "--model", "m.parquet")
            with open(f"{room}/m.parquet", "rb") as file:
                self.assertEqual(file.read(), model)

    def test_categories_are_matched_by_their_text(self):
        colours = np.array(["red", "green", "blue"])[(self.y + self.qid).astype(int) % 3]
        for kind in ("category", "str"):
            frame = self.frame[["f1", "f2"]].assign(colour=pandas.Series(colours).astype(kind))
            ranker = planetree.Ranker("lambdamart", **SMALL).fit(frame, self.y, qid=self.qid)
            scores = ranker.predict(frame)
            np.testing.assert_array_equal(ranker.predict(frame.iloc[::-1]), scores[::-1])
            np.testing.assert_array_equal(ranker.predict(polars.DataFrame(frame)), scores)
            with tempfile.TemporaryDirectory() as room:
                frame.assign(query_id=self.qid, label=self.y).to_parquet(f"{room}/rows.parquet", index=False)
                command(room, "convert", "rows.parquet", "--output", "train")
                words = ["--data", "train", *settings(SMALL), "--model", "m.parquet"]
                command(room, "train", "--preset", "lambdamart", *words)
                command(room, "predict", "--model", "m.parquet", "--data", "train", "--scores", "scores.txt")
                with open(f"{room}/m.parquet", "rb") as file:
                    self.assertEqual(file.read(), ranker.model_.to_bytes())
                np.testing.assert_array_equal(np.loadtxt(f"{room}/scores.txt"), scores)

    def test_predictions_are_those_of_the_program_in_the_order_of_the_rows(self):
        X, y, qid = letor("test")
        ranker = planetree.Ranker("lambdamart", **SMALL).fit(self.X, self.y, qid=self.qid)
        scores = ranker.predict(X)
        with tempfile.TemporaryDirectory() as room:
            ranker.model_.save(f"{room}/m.parquet")
            with open(f"{room}/m.parquet", "rb") as file:
                self.assertEqual(file.read(), ranker.model_.to_bytes())
            command(room, "convert", ROOT / "sample_data/test.txt", "--output", "test")
            command(room, "predict", "--model", "m.parquet", "--data", "test", "--scores", "scores.txt")
            np.testing.assert_array_equal(np.loadtxt(f"{room}/scores.txt"), scores)
        frame = pandas.DataFrame(X, columns=names(X))
        shuffled = frame[frame.columns[::-1]]
        for rows in (frame, shuffled, polars.DataFrame(shuffled), pyarrow.Table.from_pandas(shuffled).to_reader(11)):
            self.assertTrue(np.array_equal(ranker.model_.predict(rows), scores))

    def test_few_rows_are_scored_as_in_a_frame(self):
        X = np.vstack([letor("test")[0], np.full((1, 46), np.nan)])
        ranker = planetree.Ranker("lambdamart", **SMALL).fit(self.X, self.y, qid=self.qid)
        scores = ranker.model_.predict(pandas.DataFrame(X, columns=names(X)))
        for rows in (X, X.astype(np.float32), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], np.tile(X, (9, 1))):
            found = ranker.predict(rows)
            np.testing.assert_array_equal(found, np.tile(scores, len(rows) // len(X)))
            for row in (0, 300, 600):
                self.assertEqual(ranker.predict(rows[row : row + 1]), found[row])
        self.assertEqual(ranker.model_._native.score_array(X[:1, :45]), None)
        self.assertEqual(ranker.model_._native.score_array(np.full((1, 46), np.inf)), None)
        infinite = np.where(np.isnan(X), np.inf, X)
        np.testing.assert_array_equal(ranker.predict(infinite), scores)
        used = int(ranker.feature_importances_.argmax())  # other features are not looked at
        with self.assertRaisesRegex(planetree.DataError, f"column f{used + 1}"):
            ranker.predict(np.where(np.arange(46) == used, 1e300, X))

    def test_models_that_normalise_within_queries_need_query_ids(self):
        X, y, qid = letor("test")
        ranker = planetree.Ranker("linear", normalise_features="query").fit(self.X, self.y, qid=self.qid)
        if not ranker.model_.needs_queries:
            self.skipTest("features are normalised while they are read")
        with self.assertRaisesRegex(planetree.UsageError, "depend on all documents"):
            ranker.predict(X)
        scores = ranker.predict(X, qid=qid)
        order = np.random.default_rng(2).permutation(len(qid))
        np.testing.assert_array_equal(ranker.predict(X[order], qid=qid[order]), scores[order])

    def test_a_result_is_read_by_all_libraries(self):
        table = planetree.sql("SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL ORDER BY a")
        self.assertEqual((table.num_rows, len(table), table.column_names), (2, 2, ["a", "b"]))
        self.assertEqual(pyarrow.table(table).to_pylist(), [{"a": 1, "b": "x"}, {"a": 2, "b": None}])
        self.assertEqual(polars.DataFrame(table).rows(), [(1, "x"), (2, None)])
        self.assertEqual(table.to_polars().rows(), [(1, "x"), (2, None)])
        self.assertEqual(table.to_pandas()["a"].tolist(), [1, 2])
        arrow = table.to_pyarrow()
        self.assertEqual(duckdb.sql("SELECT sum(a) FROM arrow").fetchall(), [(3,)])


if __name__ == "__main__":
    unittest.main()
