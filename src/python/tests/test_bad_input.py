"""Rows and arguments that cannot be used give exceptions that say where, what and what to do."""

import pickle
import tempfile
import unittest

import numpy as np
import pandas
import planetree
import polars
import pyarrow
from planetree._errors import from_command

from data import SMALL, letor, names


class Stream:
    """An Arrow stream of anything."""

    def __init__(self, values):
        self.values = pyarrow.chunked_array([values])

    def __arrow_c_stream__(self, requested_schema=None):
        return self.values.__arrow_c_stream__(requested_schema)


class BadInput(unittest.TestCase):
    def setUp(self):
        self.X, self.y, self.qid = (part[:200] for part in letor("train"))
        self.frame = pandas.DataFrame(self.X, columns=names(self.X))
        self.ranker = planetree.Ranker(**SMALL)

    def refused(self, error, text, call, *arguments, **options):
        with self.assertRaises(error) as caught:
            call(*arguments, **options)
        self.assertIn(text, str(caught.exception))
        self.assertTrue(caught.exception.remedy, "there is a remedy")
        self.assertIsInstance(caught.exception, planetree.PlanetreeError)
        self.assertIsInstance(caught.exception, ValueError)
        return caught.exception

    def test_query_ids_are_needed(self):
        fit = self.ranker.fit
        self.refused(planetree.UsageError, "the query ids are missing", fit, self.X, self.y)
        self.refused(planetree.UsageError, "the query ids are missing", fit, self.frame, self.y)
        self.refused(planetree.UsageError, "the query ids are missing", fit, polars.DataFrame(self.frame), self.y)
        error = self.refused(
            planetree.DataError, "missing", fit, self.X, self.y, qid=np.where(self.qid == self.qid[5], np.nan, self.qid)
        )
        self.assertEqual(error.place, f"qid: row {np.flatnonzero(self.qid == self.qid[5])[0] + 1}")
        words = [str(query) for query in self.qid]
        self.refused(planetree.DataError, "qid: row 3: the query id is missing", fit, self.X, self.y, qid=words[:2] + [None] + words[3:])
        self.refused(planetree.DataError, "qid: row 1: the query id is missing", fit, self.X, self.y, qid=[""] + words[1:])
        for kind in ("string", "Int64", "object"):
            absent = pandas.Series(self.qid).astype(kind).mask(np.arange(200) == 6)
            self.refused(planetree.DataError, "qid: row 7: the query id is missing", fit, self.X, self.y, qid=absent)
        masked = np.ma.masked_array(self.qid, np.arange(200) == 6)
        self.refused(planetree.DataError, "qid: row 7: the query id is missing", fit, self.X, self.y, qid=masked)
        self.refused(planetree.DataError, "not UTF-8", fit, self.X, self.y, qid=[b"\xff"] * 200)
        self.refused(planetree.DataError, "expected a whole number", fit, self.X, self.y, qid=self.qid + 0.5)
        self.refused(planetree.UsageError, "qid and group", fit, self.X, self.y, qid=self.qid, group=[200])
        self.refused(planetree.DataError, "number of rows of each query", fit, self.X, self.y, group=[0, 200])
        self.refused(planetree.UsageError, "X has a column qid, and qid is given", fit, self.frame.assign(qid=1), self.y, qid=self.qid)
        missing = self.frame.assign(qid=np.where(self.qid == self.qid[5], np.nan, self.qid))
        self.refused(planetree.DataError, "query id is missing", fit, missing, self.y)

    def test_lengths_must_agree(self):
        fit = self.ranker.fit
        self.refused(planetree.DataError, "X has 200 rows, but y has 199", fit, self.X, self.y[:-1], qid=self.qid)
        self.refused(planetree.DataError, "X has 200 rows, but qid has 199", fit, self.X, self.y, qid=self.qid[:-1])
        self.refused(planetree.DataError, "X has 200 rows, but the sizes in group add up to 150", fit, self.X, self.y, group=[100, 50])
        self.refused(planetree.DataError, "X has 200 rows, but sample_weight has 1", fit, self.X, self.y, qid=self.qid, sample_weight=[1.0])
        reader = pyarrow.Table.from_pandas(self.frame).to_reader(50)
        self.refused(planetree.UsageError, "X has 200 rows, but y has 201", fit, reader, np.append(self.y, 0), qid=self.qid)
        reader = pyarrow.Table.from_pandas(self.frame).to_reader(50)
        self.refused(planetree.UsageError, "X has at least 100 rows, but y has 99", fit, reader, self.y[:99], qid=self.qid)

    def test_labels_must_be_numbers_from_0(self):
        fit = self.ranker.fit
        wrong = self.y.copy()
        wrong[[4, 9]] = np.nan
        error = self.refused(planetree.DataError, "found NaN, expected a label (2 such rows)", fit, self.X, wrong, qid=self.qid)
        self.assertEqual((error.place, error.problem), ("y: row 5", "found NaN, expected a label (2 such rows)"))
        wrong[4] = np.inf
        self.refused(planetree.DataError, "y: row 5: found infinity", fit, self.X, wrong, qid=self.qid)
        self.refused(planetree.DataError, "y: row 1: found -1", fit, self.X, self.y * 0 - 1, qid=self.qid)
        self.refused(planetree.DataError, "y: row 1: found 1e+300", fit, self.X, self.y * 0 + 1e300, qid=self.qid)
        masked = np.ma.masked_array(self.y, np.arange(200) == 6)
        self.refused(planetree.DataError, "y: row 7: found NaN", fit, self.X, masked, qid=self.qid)
        self.refused(planetree.DataError, "labels must be numbers", fit, self.X, ["good"] * 200, qid=self.qid)
        self.refused(planetree.UsageError, "y is None", fit, self.X, None, qid=self.qid)
        self.refused(planetree.DataError, "dimensions", fit, self.X, np.zeros((200, 2)), qid=self.qid)

    def test_columns_must_be_numbers_or_categories(self):
        fit = self.ranker.fit
        rows = self.frame.assign(x=pandas.Series(["a", 1] * 100, dtype=object))
        error = self.refused(planetree.DataError, "column x has the type object", fit, rows, self.y, qid=self.qid)
        self.assertIn("astype('category')", error.remedy)
        self.refused(planetree.DataError, "object, expected numbers", fit, self.X.astype(object), self.y, qid=self.qid)
        self.refused(planetree.DataError, "Complex data not supported", fit, self.X + 1j, self.y, qid=self.qid)
        self.refused(planetree.DataError, "Expected 2D array", fit, self.X[:, 0], self.y, qid=self.qid)
        dates = pyarrow.Table.from_pandas(self.frame).append_column("day", pyarrow.array([0] * 200, pyarrow.date32()))
        error = self.refused(planetree.DataError, "column day: found Date32", fit, dates, self.y, qid=self.qid)
        large = self.frame.assign(f1=1e300)
        self.refused(planetree.DataError, "found 1e300", fit, large, self.y, qid=self.qid)
        ranker = self.ranker.fit(self.frame, self.y, qid=self.qid)
        self.refused(planetree.DataError, "lacks 1 of 46 features: f7", ranker.predict, self.frame.drop(columns="f7"))
        self.refused(planetree.DataError, "expected numbers as in training", ranker.predict, self.frame.assign(**{name: "a" for name in names(self.X)}))
        mixed = self.frame.set_axis([1, *names(self.X)[1:]], axis=1)
        self.refused(planetree.DataError, "some column names are strings", fit, mixed, self.y, qid=self.qid)

    def test_rows_must_be_a_table(self):
        fit = self.ranker.fit
        for series in (self.frame["f1"], polars.Series(self.y), pyarrow.chunked_array([self.y])):
            self.refused(planetree.DataError, "got 1D array", fit, series, self.y, qid=self.qid)
        error = self.refused(planetree.DataError, "got 0D array", fit, {"f1": self.y}, self.y, qid=self.qid)
        self.assertIn("data frame", error.remedy)
        error = self.refused(planetree.DataError, "LazyFrame", fit, polars.DataFrame(self.frame).lazy(), self.y, qid=self.qid)
        self.assertEqual(error.remedy, "pass X.collect()")
        array = pyarrow.array(self.y)  # has no columns
        self.refused(planetree.DataError, "not a stream of rows", planetree.sql, "SELECT 1", {"a": Stream(array)})
        mixed = self.frame.assign(x=pandas.Series([1, "a"] * 100, dtype=object))
        self.refused(planetree.DataError, "column x", planetree.sql, "SELECT 1", {"a": mixed})

    def test_options_have_types(self):
        def fit(**arguments):
            return planetree.Ranker(**SMALL, **arguments).fit(self.X, self.y, qid=self.qid)

        for threads in (-1, 0, "2", 1.5, True):
            error = self.refused(planetree.UsageError, "threads: found", fit, threads=threads)
            self.assertIn("all cores", error.remedy)
        error = self.refused(planetree.UsageError, "unknown parameter 'n_jobs'", fit, n_jobs=-1)
        self.assertEqual(error.remedy, "did you mean threads?")
        whole = self.frame.assign(qid=self.qid, label=self.y)
        with tempfile.TemporaryDirectory() as room:
            for name, value in {"overwrite": "yes", "categorical": [0], "query_column": 1, "memory_limit": "much"}.items():
                self.refused(planetree.UsageError, name, planetree.convert, whole, f"{room}/data", **{name: value})
            self.refused(planetree.UsageError, "did you mean categorical?", planetree.convert, whole, f"{room}/data", categoricals="f1")
            planetree.convert(whole, f"{room}/data", categorical="f1", memory_limit="256MiB", threads=np.int64(1))
        evals = dict(eval_set=[(self.X, self.y)], eval_qid=[self.qid])
        named = dict(evals, eval_names=["a=b"])
        self.refused(planetree.UsageError, "'a=b'", self.ranker.fit, self.X, self.y, qid=self.qid, **named)
        self.refused(planetree.UsageError, "'a=b'", planetree.train, whole, valid={"a=b": whole})
        self.refused(planetree.UsageError, "expected a model", planetree.describe, self.frame)
        self.refused(planetree.UsageError, "no result", planetree.sql, "CREATE TABLE a AS SELECT 1")

    def test_messages_are_about_what_was_passed(self):
        evals = dict(eval_set=[(self.frame.drop(columns="f7"), self.y)], eval_qid=[self.qid])
        error = self.refused(planetree.DataError, "lacks 1 of 46 features: f7", self.ranker.fit, self.frame, self.y, qid=self.qid, **evals)
        self.assertEqual(error.place, "eval_set[0]")
        self.assertEqual(pickle.loads(pickle.dumps(error)).place, "eval_set[0]")
        error = self.refused(planetree.DataError, "weight is negative", self.ranker.fit, self.frame.assign(weight=-1.0), self.y, qid=self.qid)
        self.assertEqual(error.place, "X")
        error = self.refused(planetree.DataError, "no column query_id", planetree.evaluate, self.frame)
        self.assertEqual(error.place, "data")
        error = self.refused(planetree.UsageError, "no query column", planetree.train, self.frame.assign(label=self.y))
        self.assertIn("query_column", error.remedy)
        self.assertNotIn("--", str(error))

    def test_unknown_names_have_suggestions(self):
        error = self.refused(planetree.UsageError, "unknown parameter 'learnin_rate'", planetree.Ranker, learnin_rate=0.1)
        self.assertEqual(error.remedy, "did you mean learning_rate?")
        self.refused(planetree.UsageError, "did you mean max_depth?", self.ranker.set_params, max_dept=3)
        self.refused(planetree.UsageError, "did you mean memory_limit?", planetree.train, "x", memory_limits="2GiB")
        self.refused(planetree.UsageError, "unknown option 'colour'", planetree.evaluate, "x", colour="red")
        self.refused(planetree.UsageError, "lambdamart", planetree.Ranker("lambdamartt").fit, self.X, self.y, qid=self.qid)
        error = self.refused(planetree.UsageError, "learning_rate", planetree.Ranker(learning_rate=-1).fit, self.X, self.y, qid=self.qid)
        self.refused(planetree.UsageError, "type dict", planetree.Ranker(seed={}).fit, self.X, self.y, qid=self.qid)

    def test_files_that_are_absent_are_named(self):
        with tempfile.TemporaryDirectory() as room:
            error = self.refused(planetree.DataError, "absent", planetree.train, f"{room}/absent")
            self.assertIn("absent", error.place)
            self.refused(planetree.DataError, "absent", planetree.Model.load, f"{room}/absent")
            with open(f"{room}/text", "w") as file:
                file.write("not a model")
            self.refused(planetree.DataError, "", planetree.Model.load, f"{room}/text")
        self.refused(planetree.DataError, "", planetree.Model.from_bytes, b"not a model")
        self.refused(planetree.DataError, "syntax error", planetree.sql, "SELEC 1")

    def test_options_are_named_as_in_python(self):
        for text, expected in [
            ("pass --sort-queries to sort it", "pass sort_queries to sort it"),
            ("name it with --label-column NAME", "name it with label_column=NAME"),
            ("raise --set num_trees=5 (--memory-limit)", "raise num_trees=5 (memory_limit)"),
            ("`planetree train --help` lists them", "`planetree train --help` lists them"),
            # Names of the user, and commands of the shell, which are of neither language without their options.
            ("column price--usd: expected numbers", "column price--usd: expected numbers"),
            ("data/2024--run/x.csv: no such file", "data/2024--run/x.csv: no such file"),
            ("convert it: planetree convert data.csv --output DATASET", "convert it: planetree convert data.csv --output DATASET"),
            ("planetree convert --categorical NAMES; or --lenient", "planetree convert --categorical NAMES; or lenient"),
        ]:
            with self.subTest(text):
                error = from_command("DataError", text, "place", text)
                self.assertEqual((error.problem, error.remedy), (expected, expected))

    def test_temporary_files_are_renamed_everywhere(self):
        error = from_command("DataError", "/tmp/p/data is empty", "/tmp/p/data1", "pass it with --run /tmp/p/data1")
        error.rename({"/tmp/p/data": "X", "/tmp/p/data1": "y"})
        self.assertEqual((error.problem, error.place, error.remedy), ("X is empty", "y", "pass it with run y"))
        self.assertEqual(str(error), "y: X is empty (pass it with run y)")

    def test_exceptions_can_be_pickled(self):
        error = planetree.DataError("too short", "x.txt", "add rows")
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((copy.place, copy.problem, copy.remedy, str(copy)), ("x.txt", "too short", "add rows", "x.txt: too short (add rows)"))

    def test_an_exception_of_the_producer_is_raised(self):
        def batches():
            table = pyarrow.Table.from_pandas(self.frame)
            yield table.to_batches()[0]
            raise KeyError("no more rows")

        schema = pyarrow.Table.from_pandas(self.frame).schema
        reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
        self.refused(planetree.DataError, "no more rows", self.ranker.fit, reader, self.y, qid=self.qid)

    def test_an_estimator_that_failed_works_again(self):
        wrong = self.y.copy()
        wrong[0] = np.nan
        with self.assertRaises(planetree.DataError):
            self.ranker.fit(self.X, wrong, qid=self.qid)
        self.ranker.fit(self.X, self.y, qid=self.qid)
        self.assertEqual(len(self.ranker.predict(self.X)), 200)


if __name__ == "__main__":
    unittest.main()
