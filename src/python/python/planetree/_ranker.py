"""An estimator in the manner of scikit-learn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._commands import Workplace, checked_name, releasing, score_rows, write_frame
from ._errors import DataError, UsageError
from ._frames import Rows, check_lengths, group_ids, labels, queries, weights
from ._model import Model
from ._options import check_parameters, settings
from ._progress import Progress

if TYPE_CHECKING:
    from typing import Unpack

    from ._parameters import Parameters

# Arguments of Ranker that are not training parameters.
_OTHERS = ("preset", "threads", "memory_limit", "verbose")


class Ranker:
    """Learns to rank from rows with labels and query ids.

    Args:
        preset: Name of a preset, such as "lambdamart" (the default); planetree.presets() lists them.
        threads: Number of threads; all cores by default. Models do not depend on it.
        memory_limit: Memory limit of the training, such as "2GiB"; more data are kept on disk.
        verbose: Whether to show progress; by default in notebooks and on terminals.
        parameters: Training parameters, such as num_trees, learning_rate or metric (docs/train.md). LightGBM's,
            XGBoost's and scikit-learn's names of many of them are understood, too.

    Attributes:
        model_: The trained Model.
        feature_importances_: Share of each feature in the total gain.
        n_features_in_, feature_names_in_: Number and names of the features.
        best_iteration_: The best round on the first validation set; None without early stopping.
        evals_result_: Metrics of all rounds: {validation set: {metric: [values]}}.
    """

    def __init__(
        self,
        preset: str | None = None,
        *,
        threads: int | None = None,
        memory_limit: str | int | None = None,
        verbose: bool | None = None,
        **parameters: Unpack[Parameters],
    ) -> None:
        check_parameters(parameters)
        self._names = tuple(parameters)
        self.preset = preset
        self.threads = threads
        self.memory_limit = memory_limit
        self.verbose = verbose
        for name, value in parameters.items():
            setattr(self, name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the arguments of the estimator."""
        return {name: getattr(self, name) for name in (*_OTHERS, *self._names)}

    def set_params(self, **parameters: Any) -> Ranker:
        """Changes arguments of the estimator."""
        check_parameters(parameters, _OTHERS)
        self._names += tuple(name for name in parameters if name not in (*_OTHERS, *self._names))
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_names: list[str] | None = None,
        categorical: list[str] | None = None,
    ) -> Ranker:
        """Trains a model.

        Args:
            X: Rows: a data frame (pandas, polars, pyarrow, DuckDB), any Arrow stream, a NumPy array or a sparse
                matrix. NaN and null are missing values. Strings and categories are categorical features.
            y: Labels from 0, one per row.
            qid: Query ids, one per row, in any order. A column qid or query_id of X serves as well.
            group: Instead of qid: sizes of the queries of rows that are grouped by query.
            sample_weight: Weights of the rows.
            eval_set: Validation data: a list of (X, y).
            eval_qid: Their query ids: a list with one array for each; or eval_group.
            eval_names: Their names.
            categorical: Names of numeric columns that are categories.
        """
        evals = _pairs(eval_set)
        names = _names_of(evals, eval_names)
        parameters = {name: getattr(self, name) for name in self._names}
        words = settings(parameters)
        if self.preset is not None:
            words += ["--preset", self.preset]
        with Progress(self.verbose) as report, Workplace(report) as place:
            rows = _given("X", X, y, qid, group, sample_weight)
            if rows.length == 1:
                raise DataError("found 1 sample, expected at least 2 rows", "X", "pass rows of different labels")
            train = place.path("train", "X")
            options = {"categorical": categorical, "threads": self.threads}
            features, names_in = self._write(rows, train, report, **options), rows.names
            del rows  # with the copies of labels and query ids
            for number, (name, (X_valid, y_valid)) in enumerate(zip(names, evals)):
                given = (_item(each, number, len(evals), of) for each, of in ((eval_qid, "eval_qid"), (eval_group, "eval_group")))
                valid = place.path(f"valid{number}", f"eval_set[{number}]")
                self._write(_given(f"eval_set[{number}]", X_valid, y_valid, *given, None), valid, report, **options)
                words += ["--valid", f"{name}={valid}"]
            model, stats, rounds = place.path("model.parquet"), place.path("stats.json"), place.path("rounds.json")
            words += ["--data", train, "--model", model, "--stats", stats]
            words += ["--compact"]  # the frame is in memory, too
            words += ["--rounds", rounds] if evals else []
            words += [] if self.threads is None else ["--threads", str(self.threads)]
            words += [] if self.memory_limit is None else ["--memory-limit", str(self.memory_limit)]
            _native.run(["train", *words], releasing(report))
            self.model_ = Model.load(model)
            with open(stats, encoding="utf-8") as file:
                self.best_iteration_ = json.load(file)["best_round"]
            self.evals_result_ = _rounds(rounds) if evals else {}
        self.n_features_in_ = features
        if names_in is not None:
            self.feature_names_in_ = np.array(self.model_.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _write(self, rows: Rows, output: str, report: Any, **options: Any) -> int:
        return write_frame(rows, output, report, **options)["features"]

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> np.ndarray:
        """Scores rows, in their order. Only models that normalise scores within queries need qid or group."""
        model = self._fitted()
        if not hasattr(self, "feature_names_in_"):
            _check_width(X, self.n_features_in_)
        return model.predict(X, qid=qid, group=group)

    def score(
        self, X: Any, y: Any, *, qid: Any = None, group: Any = None, metric: str = "ndcg@10", convention: str | None = None
    ) -> float:
        """Returns the mean of a metric over the queries."""
        rows = _given("X", X, y, qid, group, None)
        query, column = rows.query, rows.query_column()
        if query is None and column is not None:
            values = rows.column(column)
            query = None if values is None else queries(values)
        if query is None:
            raise _no_queries("X")
        scores = self.predict(X, qid=query)
        return score_rows(y, scores, query, metric, convention)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each feature in the total gain."""
        gain = self._fitted().importance()
        return gain / gain.sum() if gain.sum() > 0 else gain

    def _fitted(self) -> Model:
        model = getattr(self, "model_", None)
        if model is not None:
            return model
        problem = "This Ranker instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
        try:
            from sklearn.exceptions import NotFittedError
        except ImportError:
            raise UsageError(problem, None, None) from None
        raise NotFittedError(problem)

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "model_", None) is not None

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(sparse=True, allow_nan=True, categorical=True, string=True),
        )

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params().items() if value is not None}
        return f"Ranker({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def _pairs(eval_set: Any) -> list[tuple[Any, Any]]:
    if eval_set is None:
        return []
    if isinstance(eval_set, tuple) and len(eval_set) == 2:
        eval_set = [eval_set]
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in eval_set):
        raise UsageError("expected a list of (X, y)", "eval_set", "pass eval_set=[(X_valid, y_valid)]")
    return [tuple(pair) for pair in eval_set]


def _names_of(evals: list[Any], given: list[str] | None) -> list[str]:
    if given is not None:
        if len(given) != len(evals):
            raise UsageError(f"found {len(given)} names of {len(evals)} validation sets", "eval_names", "pass one each")
        return [checked_name(name) for name in given]
    return ["valid"] if len(evals) == 1 else [f"valid_{number}" for number in range(len(evals))]


def _item(values: Any, number: int, count: int, name: str) -> Any:
    if values is None:
        return None
    if count == 1 and not (isinstance(values, (list, tuple)) and len(values) == 1):
        return values
    if len(values) != count:
        raise UsageError(f"found {len(values)} arrays for {count} validation sets", name, "pass one array each")
    return values[number]


def _one(qid: Any, group: Any) -> Any:
    """Returns the query ids from qid or group; None without both."""
    if qid is not None and group is not None:
        raise UsageError("qid and group are both given", None, "pass one of them")
    if group is not None:
        return group_ids(group)
    return None if qid is None else queries(qid)


def _given(name: str, X: Any, y: Any, qid: Any, group: Any, weight: Any) -> Rows:
    """Returns rows with their labels, query ids and weights."""
    query = _one(qid, group)
    rows = Rows(X, name=name, query=None if query is None else False)
    if rows.width == 0:
        shape = f"(shape=({rows.length}, 0))"
        raise DataError(f"Found array with 0 feature(s) {shape} while a minimum of 1 is required.", name, "pass features")
    if rows.length == 0:
        shape = f"(shape=(0, {rows.width}))"
        raise DataError(f"Found array with 0 sample(s) {shape} while a minimum of 1 is required.", name, "pass rows")
    columns = {column.lower() for column in rows.names or []}
    if y is not None or not columns & {"label", "relevance", "rel", "grade", "target", "y"}:
        rows.label = labels(y)
        _check_absent("label", "y", rows)
    if query is None and rows.names is not None and rows.query_column() is None:
        raise _no_queries(name)
    if query is None and rows.names is None and rows.columns is not None:
        raise _no_queries(name)
    if query is not None:
        rows.query = query
        for column in ("query_id", "qid"):
            _check_absent(column, "qid", rows)
    if weight is not None:
        rows.weight = weights(weight)
        _check_absent("weight", "sample_weight", rows)
    check_lengths(rows, [("y", rows.label), ("qid" if group is None else "group", rows.query), ("sample_weight", rows.weight)])
    return rows


def _check_absent(column: str, argument: str, rows: Rows) -> None:
    if column in (rows.names or []):
        raise UsageError(f"{rows.name} has a column {column}, and {argument} is given", None, "pass one of them")


def _no_queries(name: str) -> UsageError:
    return UsageError("the query ids are missing", name, "pass qid, group, or a column qid")


def _check_width(X: Any, expected: int) -> None:
    width = X.shape[1] if type(X) is np.ndarray and X.ndim == 2 else Rows(X).width
    if width is not None and width != expected:
        problem = f"X has {width} features, but Ranker is expecting {expected} features as input"
        raise DataError(problem, None, "pass the features that the model was trained on")


def _rounds(path: str) -> dict[str, dict[str, list[float]]]:
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    result: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        values = result.setdefault(row["split"], {}).setdefault(row["metric"], [])
        values.append(float("nan") if row["value"] is None else row["value"])
    return result
