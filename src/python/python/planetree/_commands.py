"""Commands of the program as functions. They take paths, URLs and data frames, and keyword arguments for all options
of the command, with underscores instead of hyphens."""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
from typing import Any, Mapping

import numpy as np

from . import _native
from ._errors import PlanetreeError, UsageError
from ._frames import Rows, are_adjacent, labels, queries
from ._model import Model
from ._options import arguments, text_of, unknown
from ._progress import Progress, Report


def is_path(data: Any) -> bool:
    """Returns whether data are named by a path or a URL."""
    return isinstance(data, (str, os.PathLike))


# Options of a dataset that is written from rows, and their defaults.
DATASET_OPTIONS: dict[str, Any] = {
    "query_column": None,
    "label_column": None,
    "doc_column": None,
    "weight_column": None,
    "position_column": None,
    "ignore_columns": [],
    "categorical": [],
    "sort_queries": False,
    "overwrite": False,
    "threads": None,
    "memory_limit": None,
}


def dataset_options(given: dict[str, Any]) -> dict[str, Any]:
    """Returns all options of a dataset that is written from rows. Values of other types are refused."""
    return DATASET_OPTIONS | {name: _dataset_option(name, value) for name, value in given.items()}


def _dataset_option(name: str, value: Any) -> Any:
    if name not in DATASET_OPTIONS:
        raise unknown("option of data frames", name, DATASET_OPTIONS)
    default = DATASET_OPTIONS[name]
    if default is False:
        is_valid, expected = isinstance(value, (bool, np.bool_)), "True or False"
    elif isinstance(default, list):
        value = [] if value is None else [value] if isinstance(value, str) else list(value) if np.iterable(value) else [value]
        is_valid, expected = all(isinstance(each, str) for each in value), "names of columns"
    elif value is None:
        return None
    elif name == "threads":
        is_valid = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1
        expected = "a whole number from 1; without it, all cores are used"
    elif name == "memory_limit":
        is_valid, expected = isinstance(value, (str, int, np.integer)), 'a size such as "1GiB", or a number of bytes'
        value = str(value)
    else:
        is_valid, expected = isinstance(value, str), "the name of a column"
    if not is_valid:
        raise UsageError(f"{name}: found {value!r}", None, f"pass {expected}")
    return value


def write_frame(data: Any, output: str, report: Any = None, **given: Any) -> dict[str, Any]:
    """Writes a data frame with query ids and labels as a dataset."""
    options = dataset_options(given)
    if isinstance(data, Rows):
        rows = data
    else:
        rows = Rows(data, name="data", query=options["query_column"], exact=[options["doc_column"]])
    if rows.query is not None:
        options["query_column"] = "query_id"
    if "sort_queries" not in given:
        query = rows.query
        if query is None:
            name = options["query_column"] or rows.query_column()
            column = rows.column(name) if name is not None else None
            query = None if column is None else queries(column, f"{rows.name}: column {name}")
        # If the order is not known in advance, rows are grouped while they are read.
        options["sort_queries"] = query is None or not are_adjacent(query)
    count, query_count, features, fingerprint = _native.write_dataset(rows, output, options, report)
    _release_memory()
    return {
        "dataset": output,
        "rows": count,
        "queries": query_count,
        "features": len(features),
        "fingerprint": fingerprint,
    }


def _release_memory() -> None:
    """Returns freed memory to the system. glibc keeps what ended threads have freed, and training has threads of its own."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # another C library
        pass


def releasing(report: Report) -> Report:
    """Returns a report that also returns freed memory to the system when a phase of a training begins: binning frees much
    that the following rounds do not use."""

    def release(kind: str, text: str, round: int, rounds: int) -> None:
        if kind == "phase":
            _release_memory()
        report(kind, text, round, rounds)

    return release


class Workplace:
    """A temporary directory for the datasets and files of a call."""

    def __init__(self, report: Any = None) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="planetree-")
        self._report = report
        self._count = 0
        self._names: dict[str, str] = {}

    def __enter__(self) -> Workplace:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._directory.cleanup()
        if isinstance(error, PlanetreeError):
            error.rename(self._names)

    def path(self, file: str, name: str | None = None) -> str:
        """Returns the path of a file in the directory. `name` is its name in messages."""
        path = os.path.join(self._directory.name, file)
        if name is not None:
            self._names[path] = name
        return path

    def _next(self, file: str) -> str:
        self._count += 1
        return self.path(file.format(self._count), "data" if self._count == 1 else f"data {self._count}")

    def dataset(self, data: Any) -> str:
        """Returns the path of a dataset: the given one, or one that is written from a data frame."""
        if is_path(data):
            return os.fspath(data)
        output = self._next("data{}")
        write_frame(data, output, self._report)
        return output

    def table(self, data: Any) -> str:
        """Returns the path of a table: the given one, or a Parquet file that is written from a data frame."""
        if is_path(data):
            return os.fspath(data)
        output = self._next("frame{}.parquet")
        _native.write_parquet(data if isinstance(data, Rows) else Rows(data, name="data", keep_types=True), output)
        return output

    def each(self, data: Any, write: Any) -> list[str]:
        """Returns the paths of one or several datasets or tables, with their names if they have names."""
        if isinstance(data, Mapping):
            return [f"{checked_name(name)}={write(each)}" for name, each in data.items()]
        if isinstance(data, (list, tuple)):
            return [write(each) for each in data]
        return [write(data)]


def checked_name(name: Any) -> str:
    """Returns the name of a dataset or a table; fails if a command would read it otherwise."""
    if not isinstance(name, str) or not name or "=" in name:
        raise UsageError(f"found the name {name!r}", None, "name it by a string without =")
    return name


def run_json(command: str, words: list[str], verbose: bool | None = None) -> Any:
    """Runs a command and returns its result."""
    with Progress(verbose) as report:
        text = _native.run([command, *words, "--json"], report)
    return json.loads(text)


def train(
    data: Any,
    *,
    valid: Any = None,
    model: str | os.PathLike[str] | None = None,
    preset: str | None = None,
    verbose: bool | None = None,
    **options: Any,
) -> Model:
    """Trains a model on one or several datasets or data frames, and returns it.

    Args:
        data: A path, a URL or a data frame with query ids and labels, or a list of them.
        valid: Validation data of the same kinds; a dictionary gives them names.
        model: File or URL to write the model to.
        preset: Name of a preset, such as "lambdamart"; planetree.presets() lists them.
        verbose: Whether to show progress; by default in notebooks and on terminals.
        options: Options of `planetree train` and training parameters, such as num_trees=500.
    """
    with Progress(verbose) as report, Workplace(report) as place:
        words = [word for path in place.each(data, place.dataset) for word in ("--data", path)]
        if valid is not None:
            words += [word for path in place.each(valid, place.dataset) for word in ("--valid", path)]
        output = place.path("model.parquet") if model is None else os.fspath(model)
        words += ["--model", output]
        words += arguments("train", {"preset": preset, **options}, may_set=True)
        if not any(word.startswith("--cache") for word in words):
            words += ["--cache", place.path("bins")]
        _native.run(["train", *words], report)
        return Model.load(output)


def predict(
    model: Model | str | os.PathLike[str],
    data: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    verbose: bool | None = None,
    **options: Any,
) -> _native.Table:
    """Scores a dataset or a data frame with query ids. Returns query_id, doc_id, label, score and rank.

    The rows of a data frame are grouped by query; Model.predict keeps their order and needs no query ids.
    """
    with Progress(verbose) as report, Workplace(report) as place:
        target = place.path("predictions.parquet") if output is None else os.fspath(output)
        words = ["--model", _model_path(model, place), "--data", place.dataset(data), "--output", target]
        _native.run(["predict", *words, *arguments("predict", options)], report)
        if output is not None:
            return sql("SELECT * FROM predictions", {"predictions": target}, verbose=False)
        return _native.Table.read(target)


def _model_path(model: Any, place: Workplace) -> str:
    if is_path(model):
        return os.fspath(model)
    if not isinstance(model, Model):
        raise UsageError(f"found {type(model).__name__}, expected a model", None, "pass a Model, a path or a URL")
    path = place.path("model.parquet")
    model.save(path)
    return path


def evaluate(
    predictions: Any = None, *, metrics: Any = None, verbose: bool | None = None, **options: Any
) -> dict[str, Any]:
    """Evaluates rankings. Returns means, distributions and the worst queries.

    Args:
        predictions: A path, a URL or a data frame with query_id, label and score; a dictionary gives several systems
            their names.
        metrics: Metrics such as "ndcg@10,err", or a list of them.
        options: Options of `planetree evaluate`, such as convention="letor4" or data="test", random=True.
    """
    with Workplace() as place:
        words = [] if predictions is None else place.each(predictions, place.table)
        words = [word for path in words for word in ("--predictions", path)]
        if metrics is not None:
            words += ["--metrics", text_of(metrics)]
        if "data" in options and options["data"] is not None:
            options["data"] = place.dataset(options["data"])
        return run_json("evaluate", words + arguments("evaluate", options), verbose)


def compare(*rankings: Any, verbose: bool | None = None, **options: Any) -> dict[str, Any]:
    """Tests whether differences between rankings are significant.

    Args:
        rankings: Predictions or per-query metrics: paths, URLs or data frames, or one dictionary with their names.
        options: Options of `planetree compare`, such as metric="ndcg@10" or alternative="greater".
    """
    with Workplace() as place:
        files = [path for ranking in rankings for path in place.each(ranking, place.table)]
        if "data" in options and options["data"] is not None:
            options["data"] = place.dataset(options["data"])
        return run_json("compare", [*files, *arguments("compare", options)], verbose)


def cv(
    data: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    preset: str | None = None,
    verbose: bool | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Cross-validates: trains, validates and tests on rotating parts of the data.

    Args:
        data: A dataset or data frame to divide into parts, or a list of several to use as the parts.
        output: Directory for models and predictions; without it they are not kept.
        preset: Name of a preset.
        options: Options of `planetree cv`, such as folds=10, and training parameters.
    """
    with Workplace() as place:
        words = [word for path in place.each(data, place.dataset) for word in ("--data", path)]
        words += ["--output", place.path("cv") if output is None else os.fspath(output)]
        words += arguments("cv", {"preset": preset, **options}, may_set=True)
        return run_json("cv", words, verbose)


def convert(data: Any, output: str | os.PathLike[str], *, verbose: bool | None = None, **options: Any) -> dict[str, Any]:
    """Converts files or a data frame to a dataset.

    Args:
        data: A path, pattern or URL, a list of them, or a data frame with query ids and labels.
        output: The dataset to write: a directory or a URL.
        options: Options of `planetree convert`. For data frames: query_column, label_column, doc_column,
            weight_column, position_column, ignore_columns, categorical, sort_queries, overwrite, threads, memory_limit.
    """
    if is_path(data) or isinstance(data, (list, tuple)):
        paths = [os.fspath(each) for each in ([data] if is_path(data) else data)]
        words = [*paths, "--output", os.fspath(output), *arguments("convert", options)]
        return run_json("convert", words, verbose)
    with Progress(verbose) as report:
        return write_frame(data, os.fspath(output), report, **options)


def describe(
    path: Model | str | os.PathLike[str], *, verbose: bool | None = None, **options: Any
) -> dict[str, Any]:
    """Describes a dataset, a model or any other table of planetree."""
    with Workplace() as place:
        return run_json("describe", [_model_path(path, place), *arguments("describe", options)], verbose)


def sql(
    query: str, tables: Mapping[str, Any] | None = None, *, verbose: bool | None = None, **options: Any
) -> _native.Table:
    """Runs an SQL query on datasets, models, predictions, files and data frames. Returns an Arrow table.

    Args:
        query: The query. Files are named by path, as in FROM 'predictions.parquet'.
        tables: Names for paths, URLs and data frames.
        options: Options of `planetree sql`, such as allow_path="s3://bucket".
    """
    with Progress(verbose) as report, Workplace(report) as place:
        output = place.path("result.parquet")
        words = [word for each in place.each(tables or {}, place.table) for word in ("--table", each)]
        words += ["--output", output, f"--command={query}", *arguments("sql", options)]
        _native.run(["sql", *words], report)
        if not os.path.exists(output) or os.path.getsize(output) == 0:
            raise UsageError("the query has no result", None, "pass a query that returns rows")
        return _native.Table.read(output)


def ir_frames(predictions: Any) -> tuple[Any, Any]:
    """Returns the judgments and the ranking of predictions as pandas data frames for ir_measures: qrels (query_id,
    doc_id, relevance) and run (query_id, doc_id, score). Documents without an id get the number of their row."""
    columns = sql("SELECT query_id, doc_id, label, score FROM predictions", {"predictions": predictions})
    frame = columns.to_pandas()
    numbers = frame.index.astype(str)
    frame["doc_id"] = frame["doc_id"].astype(object).where(frame["doc_id"].notna(), numbers)
    judged = frame[frame["label"].notna()]
    qrels = judged[["query_id", "doc_id"]].assign(relevance=judged["label"].astype(int))
    return qrels, frame[["query_id", "doc_id", "score"]]


def score_rows(y: Any, scores: Any, query: Any, metric: str, convention: str | None = None) -> float:
    """Returns the mean of a metric over queries."""
    rows = Rows(scores.reshape(-1, 1))
    rows.columns = ["score"]
    rows.label, rows.query = labels(y), query
    words = ["--metrics", metric, "--worst", "0"]
    words += [] if convention is None else ["--convention", convention]
    with Workplace() as place:
        result = run_json("evaluate", ["--predictions", place.table(rows), *words], False)
    mean = result["systems"][0]["metrics"][0]["mean"]
    return float("nan") if mean is None else float(mean)
