"""Models."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _native
from ._errors import DataError
from ._frames import Rows, check_lengths, group_ids, queries


class Model:
    """A trained model. It scores rows of any kind and can be pickled.

    Read one with Model.load("model.parquet"); planetree.train returns one.
    """

    def __init__(self, native: _native.NativeModel) -> None:
        self._native = native

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Model:
        """Reads a model from a file or a URL."""
        return Model(_native.NativeModel.read(os.fspath(path)))

    @staticmethod
    def from_bytes(file: bytes) -> Model:
        """Reads the content of a model file."""
        return Model(_native.NativeModel(file))

    def to_bytes(self) -> bytes:
        """Returns the content of the model file."""
        return self._native.to_bytes()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to a file or a URL. A file that is not a model is not replaced."""
        self._native.write(os.fspath(path))

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the order of the columns."""
        return self._native.features

    @property
    def configuration(self) -> str:
        """All parameters of the training, as TOML."""
        return self._native.configuration

    @property
    def num_trees(self) -> int:
        """Number of trees."""
        return self._native.num_trees

    @property
    def needs_queries(self) -> bool:
        """Whether the score of a document depends on the other documents of its query."""
        return self._native.needs_queries

    def importance(self, kind: str = "gain") -> np.ndarray:
        """Returns the importance of every feature: the total gain of its splits, or their number ("split")."""
        gain, splits = self._native.importance()
        return np.array(splits if kind == "split" else gain)

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> np.ndarray:
        """Scores rows, in their order. Features are matched by name if the rows have names, else by position.

        Some models normalise scores within a query and need the query ids: qid, or the sizes of the queries (group) of
        rows that are grouped by query, or a column qid of X.
        """
        if type(X) is np.ndarray and qid is None and group is None:
            few = self._native.score_array(X)
            if few is not None:
                return np.frombuffer(few, dtype=np.float64)
        rows = Rows(X, only=self.feature_names)
        if rows.columns is not None and rows.names is None:
            if rows.width != len(self.feature_names):
                raise DataError(
                    f"X has {rows.width} features, but the model is expecting {len(self.feature_names)} features as input",
                    None,
                    "pass the features that the model was trained on",
                )
            rows.columns = self.feature_names
        query = None
        if self.needs_queries:
            column = rows.query_column()
            if qid is None and group is None and column is not None:
                qid = rows.column(column)
            if group is not None:
                query = group_ids(group)
            elif qid is not None:
                query = queries(qid)
        check_lengths(rows, [("qid" if group is None else "group", query)])
        scores = self._native.predict(rows.rows, rows.columns, query)
        return np.frombuffer(scores, dtype=np.float64)

    def __repr__(self) -> str:
        return f"planetree.Model({self._native.size}, {len(self.feature_names)} features)"
