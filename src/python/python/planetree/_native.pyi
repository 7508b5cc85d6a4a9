"""The extension module."""

from typing import Any, Callable

Report = Callable[[str, str, int, int], None]

def run(arguments: list[str], report: Report | None = None) -> str: ...
def main(program: str | None, arguments: list[str]) -> int: ...
def options_of(command: str) -> list[tuple[str, bool, bool]]: ...
def parameters() -> list[tuple[str, list[str], str, list[str], str, str]]: ...
def presets() -> list[str]:
    """Returns the names of the presets, the default first."""

def write_dataset(
    rows: Any, output: str, options: dict[str, Any], report: Report | None = None
) -> tuple[int, int, list[str], str]: ...
def write_parquet(rows: Any, output: str) -> None: ...

class NativeModel:
    features: list[str]
    configuration: str
    num_trees: int
    rounds: int
    size: str
    needs_queries: bool
    def __init__(self, file: bytes) -> None: ...
    @staticmethod
    def read(path: str) -> NativeModel: ...
    def write(self, path: str) -> None: ...
    def to_bytes(self) -> bytes: ...
    def importance(self) -> tuple[list[float], list[int]]: ...
    def predict(self, rows: Any, columns: list[str] | None = None, query: Any = None) -> bytearray: ...

class Table:
    """A result: an Arrow table that any library reads by the PyCapsule interface."""

    @staticmethod
    def read(path: str) -> Table:
        """Reads a Parquet file."""

    @property
    def column_names(self) -> list[str]: ...
    @property
    def num_rows(self) -> int: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_pyarrow(self) -> Any:
        """Returns the rows as a pyarrow table."""

    def to_pandas(self) -> Any:
        """Returns the rows as a pandas data frame."""

    def to_polars(self) -> Any:
        """Returns the rows as a polars data frame."""
