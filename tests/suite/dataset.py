"""Reads planetree datasets, for the scripts that compare planetree with other packages."""
import numpy as np
import pyarrow.dataset

ROLES = ("query_id", "doc_id", "label", "weight", "position")


def read_dataset(path):
    """Features (NaN where they are missing), labels, feature names and query ids."""
    table = pyarrow.dataset.dataset(path, format="parquet").to_table()
    names = [name for name in table.column_names if name not in ROLES]
    columns = [table[name].to_numpy(zero_copy_only=False).astype(np.float32) for name in names]
    return np.column_stack(columns), table["label"].to_numpy().astype(float), names, table["query_id"].to_pylist()


def read_zero_filled(path):
    """The same with 0 in place of missing values."""
    features, labels, names, queries = read_dataset(path)
    return np.nan_to_num(features, nan=0.0), labels, names, queries


def query_sizes(queries):
    """The number of rows of each query, given the query ids of all rows."""
    starts = [row for row in range(len(queries)) if row == 0 or queries[row] != queries[row - 1]]
    return np.diff(starts + [len(queries)])
