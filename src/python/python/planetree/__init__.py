"""Learning to rank with boosted trees, random forests, linear models and neural nets.

Ranker is an estimator in the manner of scikit-learn:

    ranker = planetree.Ranker(num_trees=500, learning_rate=0.05)
    ranker.fit(X, y, qid=qid, eval_set=[(X_valid, y_valid)], eval_qid=[qid_valid])
    scores = ranker.predict(X_test)

The functions are the commands of the program. They take paths, URLs and data frames:

    model = planetree.train("s3://bucket/train", valid="s3://bucket/vali", preset="lambdamart")
    planetree.sql("SELECT feature, sum(gain) FROM 'model.parquet' GROUP BY feature").to_pandas()
"""

from ._commands import compare, convert, cv, describe, evaluate, ir_frames, predict, sql, train
from ._errors import (
    DataError,
    InternalError,
    PlanetreeError,
    PlanetreeWarning,
    QualityError,
    UsageError,
)
from ._model import Model
from ._native import Table, presets
from ._ranker import Ranker

__all__ = [
    "DataError",
    "InternalError",
    "Model",
    "PlanetreeError",
    "PlanetreeWarning",
    "QualityError",
    "Ranker",
    "Table",
    "UsageError",
    "compare",
    "convert",
    "cv",
    "describe",
    "evaluate",
    "ir_frames",
    "predict",
    "presets",
    "sql",
    "train",
]
