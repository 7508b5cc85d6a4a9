"""Ranker behaves as scikit-learn expects of an estimator."""

import pickle
import unittest

import numpy as np
import pandas
import planetree
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from data import SMALL, letor, names


class GroupedRanker(planetree.Ranker):
    """A ranker for checks that know neither query ids nor grades: every ten rows are a query, and labels become grades.

    Everything else is Ranker's.
    """

    def __init__(self, preset=None, *, threads=1, memory_limit=None, verbose=False, num_trees=3, min_data_in_leaf=1):
        parameters = {"num_trees": num_trees, "min_data_in_leaf": min_data_in_leaf}
        super().__init__(preset, threads=threads, memory_limit=memory_limit, verbose=verbose, **parameters)

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, grades(y), qid=groups(X), sample_weight=sample_weight)

    def score(self, X, y):
        return super().score(X, grades(y), qid=groups(X))


def groups(X):
    rows = X.shape[0] if hasattr(X, "shape") else np.asarray(X).shape[:1]
    return np.arange(np.prod(rows, dtype=int)) // 10


def grades(y):
    values = None if y is None else np.asarray(y)
    if values is None or values.dtype.kind not in "fiub" or not values.size or not np.isfinite(values).all():
        return y
    return np.clip(np.round(values - values.min()), 0, 4)


# Checks of scikit-learn that do not apply, and why.
NOT_APPLICABLE = {
    "check_dtype_object": "columns of the type object are refused, because they may hold anything",
    "check_sample_weight_equivalence_on_dense_data": "removing or repeating rows changes queries",
    "check_sample_weight_equivalence_on_sparse_data": "removing or repeating rows changes queries",
}


class Estimator(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.X, cls.y, cls.qid = letor("train")
        cls.ranker = planetree.Ranker(**SMALL).fit(cls.X, cls.y, qid=cls.qid)

    def test_checks_of_scikit_learn_pass(self):
        results = check_estimator(GroupedRanker(), on_fail=None, on_skip=None, expected_failed_checks=NOT_APPLICABLE)
        failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
        passed = [one["check_name"] for one in results if one["status"] == "passed"]
        self.assertEqual(failed, {})
        self.assertGreater(len(passed), 35)
        expected = {one["check_name"] for one in results if one["status"] == "xfail"}
        self.assertEqual(expected, set(NOT_APPLICABLE))

    def test_parameters_are_read_and_changed(self):
        ranker = planetree.Ranker("planet", num_trees=5, learning_rate=0.3)
        self.assertEqual(
            ranker.get_params(),
            {"preset": "planet", "threads": None, "memory_limit": None, "verbose": None, "num_trees": 5, "learning_rate": 0.3},
        )
        copy = clone(ranker).set_params(num_trees=7, max_depth=3)
        self.assertEqual((copy.num_trees, copy.max_depth, ranker.num_trees), (7, 3, 5))
        self.assertEqual(repr(ranker), "Ranker(preset='planet', num_trees=5, learning_rate=0.3)")
        copy.fit(self.X, self.y, qid=self.qid)
        self.assertEqual(copy.model_.num_trees, 7)
        self.assertIn("max_depth = 3", copy.model_.configuration)

    def test_names_of_other_libraries_are_understood(self):
        one = planetree.Ranker(num_trees=5, learning_rate=0.2, seed=3).fit(self.X, self.y, qid=self.qid)
        other = planetree.Ranker(n_estimators=5, eta=0.2, random_state=3).fit(self.X, self.y, qid=self.qid)
        self.assertEqual(one.model_.to_bytes(), other.model_.to_bytes())

    def test_a_pickled_ranker_scores_alike(self):
        copy = pickle.loads(pickle.dumps(self.ranker))
        np.testing.assert_array_equal(copy.predict(self.X), self.ranker.predict(self.X))
        self.assertEqual(copy.model_.to_bytes(), self.ranker.model_.to_bytes())
        self.assertEqual(copy.get_params(), self.ranker.get_params())

    def test_models_do_not_depend_on_threads_or_memory(self):
        for arguments in ({"threads": 1}, {"threads": 3}, {"memory_limit": "512MiB"}):
            other = planetree.Ranker(**arguments, **SMALL).fit(self.X, self.y, qid=self.qid)
            self.assertEqual(other.model_.to_bytes(), self.ranker.model_.to_bytes())

    def test_importances_are_shares_of_the_gain(self):
        shares = self.ranker.feature_importances_
        self.assertEqual(shares.shape, (46,))
        self.assertAlmostEqual(shares.sum(), 1.0)
        gain, splits = self.ranker.model_.importance(), self.ranker.model_.importance("split")
        np.testing.assert_allclose(shares, gain / gain.sum())
        np.testing.assert_array_equal(gain > 0, splits > 0)

    def test_the_score_is_the_metric_of_evaluate(self):
        X, y, qid = letor("test")
        scores = self.ranker.predict(X)
        expected = []
        for query in np.unique(qid):
            gains = 2.0 ** y[qid == query] - 1
            discount = 1 / np.log2(np.arange(2, len(gains) + 2))
            ideal = np.sum((np.sort(gains)[::-1] * discount)[:10])
            if ideal > 0:
                ranked = gains[np.argsort(-scores[qid == query], kind="stable")]
                expected.append(np.sum((ranked * discount)[:10]) / ideal)
        judged = self.ranker.score(X, y, qid=qid, convention="lightgbm")
        self.assertAlmostEqual(judged, lightgbm_mean(expected, qid), places=9)
        place = np.concatenate([np.arange(np.sum(qid == query)) for query in dict.fromkeys(qid)])
        order = np.argsort(place, kind="stable")  # the first rows of all queries, then the second ones, and so on
        self.assertAlmostEqual(self.ranker.score(X[order], y[order], qid=qid[order], convention="lightgbm"), judged)
        with_column = pandas.DataFrame(X, columns=names(X)).assign(qid=qid)
        ranker = planetree.Ranker(**SMALL).fit(with_column, y)
        self.assertEqual(ranker.score(with_column, y), ranker.score(with_column.drop(columns="qid"), y, qid=qid))

    def test_rounds_are_recorded_and_stop_early(self):
        X, y, qid = letor("vali")
        ranker = planetree.Ranker(num_trees=200, learning_rate=0.5, early_stopping_rounds=5, metric="ndcg@5")
        ranker.fit(self.X, self.y, qid=self.qid, eval_set=[(X, y), (self.X, self.y)], eval_qid=[qid, self.qid], eval_names=["vali", "again"])
        values = ranker.evals_result_["vali"]["ndcg@5"]
        self.assertEqual(ranker.best_iteration_, 1 + int(np.argmax(values)))
        self.assertEqual(ranker.model_.num_trees, ranker.best_iteration_)
        self.assertLessEqual({"vali", "again"}, set(ranker.evals_result_))
        self.assertLess(len(values), 200)

    def test_it_works_in_pipelines_and_searches(self):
        pipeline = make_pipeline(StandardScaler(), planetree.Ranker(**SMALL))
        pipeline.fit(self.X, self.y, ranker__qid=self.qid)
        self.assertEqual(len(pipeline.predict(self.X)), len(self.y))
        folds = list(GroupKFold(2).split(self.X, self.y, self.qid))
        frame = pandas.DataFrame(self.X, columns=names(self.X)).assign(qid=self.qid)
        search = GridSearchCV(planetree.Ranker(**SMALL), {"num_trees": [1, 4]}, cv=folds)
        search.fit(frame, self.y)
        self.assertEqual(search.best_params_, {"num_trees": 4})


def lightgbm_mean(values, qid):
    """LightGBM gives queries without relevant documents the value 1."""
    return (sum(values) + len(np.unique(qid)) - len(values)) / len(np.unique(qid))


if __name__ == "__main__":
    unittest.main()
