"""Rows of any kind as chunks that the extension module reads: data frames, Arrow streams, arrays and sparse matrices.

Chunks are made while they are read, so that the rows are never in memory twice.
"""

from __future__ import annotations

import sys
from typing import Any, Iterable, Iterator, Literal

import numpy as np

from ._errors import DataError, UsageError

# Number of cells of a chunk. Several chunks are on their way at a time, each in several forms.
_CHUNK_CELLS = 1 << 18
_MOST_ROWS = 1 << 16

# Names of columns with query ids, as `planetree convert` recognises them.
QUERY_COLUMNS = ("query_id", "qid", "queryid", "query", "group_id", "groupid", "group", "search_id", "srch_id")
_DOCUMENT_COLUMNS = ("doc_id", "docid", "document_id", "doc", "document")
_REMEDY_OBJECT = "convert it to numbers, or to categories with astype('category'), or drop it"


class Rows:
    """Rows, and the columns that are passed beside them.

    Args:
        X: The rows.
        name: Their name in messages.
        query: The column with query ids; None for the one with a usual name, and False for none.
        exact: Other columns whose values are names, so that integers stay integers.
        only: The columns to read, if the rows have names.
        keep_types: Whether columns are kept as they are, because they are no features.
    """

    def __init__(
        self,
        X: Any,
        name: str = "X",
        *,
        query: str | None | Literal[False] = False,
        exact: Iterable[str | None] = (),
        only: Iterable[str] | None = None,
        keep_types: bool = False,
    ) -> None:
        self.name = name
        self._query_name = query
        self._exact = {column for column in exact if column is not None}
        self._only = None if only is None else set(only)
        self._keep_types = keep_types
        self.rows: Any
        self.columns: list[str] | None = None
        self.label: np.ndarray | None = None
        self.query: Any = None
        self.weight: np.ndarray | None = None
        # Names of the columns; None if rows have no names.
        self.names: list[str] | None = None
        # Number of rows and columns; None if it is not known in advance.
        self.length: int | None = None
        self.width: int | None = None
        self._source = X
        self._open(X)

    def _open(self, X: Any) -> None:
        if _is_pandas(X):
            self._open_pandas(X)
        elif _is_sparse(X):
            if X.ndim != 2:
                raise _not_a_table(self.name, X.ndim)
            self._check_kind(X.dtype)
            self._open_array(X.tocsr(), lambda part: part.toarray())
        elif hasattr(X, "__arrow_c_stream__"):
            if type(X).__name__ in ("Series", "ChunkedArray"):
                raise _not_a_table(self.name, 1)
            self.rows = X
            self.names = _stream_names(X)
            self.width = None if self.names is None else len(self.names)
            self.length = _length_of(X)
        elif hasattr(X, "fetch_arrow_reader"):  # relations of earlier versions of DuckDB
            self.rows = X.fetch_arrow_reader(_MOST_ROWS)
            self.names = list(self.rows.schema.names)
        elif type(X).__name__ == "LazyFrame":
            raise DataError("found a LazyFrame, whose rows are not known yet", self.name, "pass X.collect()")
        else:
            X = np.asarray(_unmasked(X))
            if X.ndim != 2:
                raise _not_a_table(self.name, X.ndim)
            self._check_kind(X.dtype)
            self._open_array(X, np.asarray)

    def _check_kind(self, dtype: Any) -> None:
        if dtype.kind == "c":
            raise DataError("Complex data not supported", self.name, "pass real numbers")
        if dtype.kind not in "fiub":
            raise DataError(f"found values of type {dtype}, expected numbers", self.name, _REMEDY_OBJECT)

    def _open_array(self, X: Any, dense: Any) -> None:
        self.length, self.width = X.shape
        self.columns = [f"f{place + 1}" for place in range(X.shape[1])]
        kind = np.float32 if X.dtype.kind == "f" and X.dtype.itemsize <= 4 else np.float64
        self.rows = _transposed(X, lambda part: np.asarray(dense(part), dtype=kind))

    def _open_pandas(self, X: Any) -> None:
        self.length, self.width = X.shape
        names = list(X.columns)
        if all(isinstance(name, str) for name in names):
            self.names = names
        elif any(isinstance(name, str) for name in names):
            raise DataError(
                "some column names are strings and some are not",
                self.name,
                "make all names strings with X.columns = X.columns.astype(str)",
            )
        is_kept = lambda name: self._only is None or self.names is None or name in self._only
        kept = [place for place, name in enumerate(names) if is_kept(name)]
        if self._keep_types and any(X.dtypes.iloc[place] == object for place in kept):
            self.rows = _typed(X, self.name)
            return
        query = self.query_column() if self._query_name is None else self._query_name
        if query and query in names and X.dtypes.iloc[names.index(query)] == object:
            self._take_query(X, query)
            kept.remove(names.index(query))
        names = [names[place] for place in kept]
        dtypes = [X.dtypes.iloc[place] for place in kept]
        texts = {name for name in names if name in self._exact or _has_documents([name])}
        texts = {name: "string" for name, dtype in zip(names, dtypes) if name in texts and dtype == object}
        for name, dtype in zip(names, dtypes):
            if dtype == object and name not in texts and not self._keep_types:
                raise DataError(f"column {name} has the type object", self.name, _REMEDY_OBJECT)
            if getattr(dtype, "kind", "") == "c":
                raise DataError(f"Complex data not supported: column {name}", self.name, "pass real numbers")
        self.columns = list(names) if self.names is not None else [f"f{place + 1}" for place in kept]
        is_numeric = all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in dtypes)
        is_exact = self._keep_types or bool(self._exact.intersection(names)) or _has_documents(names)
        if is_numeric and not is_exact:
            if query and query in names:
                # All columns of a chunk are floating-point numbers, but query ids are names.
                self._take_query(X, query)
                kept.remove(list(X.columns).index(query))
                self.columns.remove(query)
            is_narrow = all(dtype.kind == "f" and dtype.itemsize <= 4 for dtype in dtypes)
            kind = np.float32 if is_narrow else np.float64
            whole = len(kept) == X.shape[1]
            part = (lambda rows: rows) if whole else (lambda rows: rows.iloc[:, kept])
            self.rows = _transposed(X.iloc, lambda rows: part(rows).to_numpy(dtype=kind), X.shape)
            return
        columns = self.columns
        self.rows = (
            part.iloc[:, kept].reset_index(drop=True).astype(texts).set_axis(columns, axis=1)
            for part in _parts(X.iloc, X.shape)
        )

    def _take_query(self, X: Any, column: str) -> None:
        """Takes the query ids from a column of a pandas frame."""
        self.query = queries(X[column], f"{self.name}: column {column}")

    def column(self, name: str) -> Any:
        """Returns the values of a column as an array; None if they are not known in advance."""
        X = self._source
        if _is_pandas(X) or hasattr(X, "get_column"):
            return np.asarray(X[name])
        if type(X).__module__.startswith("pyarrow") and hasattr(X, "column"):
            return X.column(name).to_numpy(zero_copy_only=False) if hasattr(X, "to_pandas") else None
        return None

    def query_column(self) -> str | None:
        """Returns the name of the column with query ids."""
        lower = {name.lower(): name for name in reversed(self.names or [])}
        return next((lower[name] for name in QUERY_COLUMNS if name in lower), None)


def _typed(X: Any, name: str) -> Any:
    """Returns a pandas frame as an Arrow table. The types of columns of the type object are those of all their values; a
    chunk could have others."""
    import pyarrow

    try:
        return pyarrow.Table.from_pandas(X, preserve_index=False)
    except pyarrow.ArrowException as error:
        raise DataError(" ".join(map(str, error.args)), name, "convert the column to one type") from None


def _unmasked(values: Any) -> Any:
    """Returns an array without a mask, in which masked values are missing. Everything else is returned as it is."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return values.data  # 64-bit ids do not fit into floating-point numbers
    if values.dtype.kind in "fiub":
        return values.astype(np.float64).filled(np.nan)
    return values.astype(object).filled(None)


def _is_missing(value: Any) -> bool:
    # Comparisons with pandas.NA are neither true nor false.
    return value is None or type(value).__name__ == "NAType" or value != value or value == ""


def _has_documents(names: list[Any]) -> bool:
    return any(isinstance(name, str) and name.lower() in _DOCUMENT_COLUMNS for name in names)


def _is_pandas(X: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def _is_sparse(X: Any) -> bool:
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)


def _not_a_table(name: str, dimensions: int) -> DataError:
    remedy = "Reshape your data either using X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for a single row"
    if dimensions == 0:
        remedy = "pass a data frame, an Arrow table, a sparse matrix or an array with a row per document"
    return DataError(f"Expected 2D array, got {dimensions}D array instead", name, remedy)


def _stream_names(X: Any) -> list[str] | None:
    """Returns the names of the columns of an Arrow object, without reading it."""
    for attribute in ("column_names", "columns"):
        names = getattr(X, attribute, None)
        if names is not None and not callable(names) and all(isinstance(name, str) for name in names):
            return list(names)
    schema = getattr(X, "schema", None)
    return list(schema.names) if hasattr(schema, "names") and not callable(schema.names) else None


def _length_of(X: Any) -> int | None:
    for attribute in ("num_rows", "height"):
        length = getattr(X, attribute, None)
        if isinstance(length, int):
            return length
    return None


def _parts(X: Any, shape: tuple[int, int]) -> Iterator[Any]:
    rows = max(1, min(_MOST_ROWS, _CHUNK_CELLS // max(1, shape[1])))
    for first in range(0, shape[0], rows):
        yield X[first : first + rows]


def _transposed(X: Any, dense: Any, shape: tuple[int, int] | None = None) -> Iterator[np.ndarray]:
    for part in _parts(X, shape or X.shape):
        yield np.ascontiguousarray(dense(part).T)


def labels(y: Any, name: str = "y") -> np.ndarray:
    """Returns labels as numbers. Missing labels are refused."""
    if y is None:
        raise UsageError("requires y to be passed, but the target y is None", name, "pass one label per row")
    if _is_sparse(y):
        raise DataError("sparse labels are not supported", name, "pass a dense array")
    try:
        values = np.ascontiguousarray(_unmasked(y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"labels must be numbers: {error}", name, "pass grades such as 0, 1, 2") from None
    if values.ndim == 2 and values.shape[1] == 1:
        values = np.ascontiguousarray(values.ravel())
    if values.ndim != 1:
        raise DataError(f"found {values.ndim} dimensions, expected 1", name, "pass one label per row")
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        found = "NaN" if np.isnan(values[wrong[0]]) else "infinity"
        raise DataError(
            f"found {found}, expected a label ({wrong.size} such rows)",
            f"{name}: row {wrong[0] + 1}",
            "remove rows without a label, or label them",
        )
    wrong = np.flatnonzero(values < 0)
    if wrong.size:
        raise DataError(
            f"found {values[wrong[0]]:g}, expected a label from 0 ({wrong.size} such rows)",
            f"{name}: row {wrong[0] + 1}",
            "shift the labels so that the lowest is 0",
        )
    wrong = np.flatnonzero(values > np.finfo(np.float32).max)
    if wrong.size:
        problem = f"found {values[wrong[0]]:g}, expected a label that fits in 32 bits"
        raise DataError(problem, f"{name}: row {wrong[0] + 1}", "pass grades such as 0, 1, 2")
    return values


def weights(values: Any, name: str = "sample_weight") -> np.ndarray:
    """Returns weights as numbers."""
    try:
        values = np.ascontiguousarray(_unmasked(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"weights must be numbers: {error}", name, "pass one number per row") from None
    if values.ndim != 1:
        problem = f"Sample weights must be 1D array or scalar, found {values.ndim} dimensions"
        raise DataError(problem, name, "pass one number per row")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if wrong.size:
        raise DataError(
            f"found {values[wrong[0]]:g}, expected a number from 0", f"{name}: row {wrong[0] + 1}", "correct the weight"
        )
    if values.size and not values.any():
        raise DataError("all weights are zero", name, "give some rows a weight above 0")
    return values


def queries(qid: Any, name: str = "qid") -> Any:
    """Returns query ids as 64-bit integers or as a list of strings. Missing ids are refused."""
    values = np.asarray(_unmasked(qid))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1:
        raise DataError(f"found {values.ndim} dimensions, expected 1", name, "pass one query id per row")
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) >= 2.0**53))
        if wrong.size:
            found = values[wrong[0]]
            problem = "the query id is missing" if np.isnan(found) else f"found {found:g}, expected a whole number"
            raise DataError(problem, f"{name}: row {wrong[0] + 1}", "pass integers or strings as query ids")
        return np.ascontiguousarray(values, dtype=np.int64)
    if values.dtype.kind in "iub" and not (values.dtype == np.uint64 and values.size and values.max() >= 1 << 63):
        return np.ascontiguousarray(values, dtype=np.int64)
    if values.dtype.kind not in "uUSOT":
        raise DataError(f"found query ids of type {values.dtype}", name, "pass integers or strings as query ids")
    words = values.tolist()
    for row, word in enumerate(words):
        if _is_missing(word):
            raise DataError("the query id is missing", f"{name}: row {row + 1}", "pass a query id for every row")
    try:
        return [word.decode() if isinstance(word, bytes) else str(word) for word in words]
    except UnicodeDecodeError as error:
        raise DataError(f"a query id is not UTF-8 text: {error}", name, "pass integers or strings as query ids") from None


def group_ids(group: Any, name: str = "group") -> np.ndarray:
    """Returns the query ids 1, 2, 3, ... of rows that are grouped by query. `group` has the sizes of the queries."""
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes.size and sizes.min() < 1):
        raise DataError("expected the number of rows of each query", name, "pass whole numbers from 1")
    return np.repeat(np.arange(1, sizes.size + 1, dtype=np.int64), sizes)


def are_adjacent(query: Any) -> bool:
    """Returns whether the rows of every query are adjacent."""
    if isinstance(query, list):
        seen: set[str] = set()
        last = None
        for word in query:
            if word != last and word in seen:
                return False
            seen.add(word)
            last = word
        return True
    starts = np.count_nonzero(query[1:] != query[:-1]) + 1 if len(query) else 0
    return np.unique(query).size == starts


def check_lengths(rows: Rows, columns: Iterable[tuple[str, Any]]) -> None:
    """Fails if a column has another length than the rows. The column "group" has the query ids of given sizes."""
    for name, values in columns:
        if values is not None and rows.length is not None and len(values) != rows.length:
            if name == "group":
                raise DataError(
                    f"{rows.name} has {rows.length} rows, but the sizes in group add up to {len(values)}",
                    None,
                    f"pass the number of rows of every query of {rows.name}, in the order of the rows",
                )
            raise DataError(
                f"{rows.name} has {rows.length} rows, but {name} has {len(values)}",
                None,
                f"pass one value of {name} per row of {rows.name}",
            )
