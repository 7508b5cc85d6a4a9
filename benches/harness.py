"""Helpers of the benchmarks: running and measuring programs, generated data, and charts."""
import argparse, json, os, subprocess, sys, tempfile, time


def arguments_of(parser_of, description, work):
    """Parses the command line: the program, the options that a function adds, and a work directory, which is created."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("planetree", help="the program to measure")
    parser_of(parser)
    parser.add_argument("--work", default=f"{tempfile.gettempdir()}/planetree-{work}", help="directory for data, kept for the next run")
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    return arguments


def run(*command):
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def measure(command):
    """Runs a process; seconds, peak MiB (maximum resident set) and output."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    if status:
        sys.exit(f"{command} failed")
    return seconds, usage.ru_maxrss / 1024, output


def call(script):
    """The command that runs a line of Python among these modules, in its own process."""
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); {script}"]


def predictions(work, rows, documents):
    """Files of the same predictions, generated once: in query order and shuffled."""
    paths = {}
    for name in ("ordered", "shuffled"):
        paths[name] = f"{work}/{name}-{rows}-{documents}.parquet"
        if not os.path.exists(paths[name]):
            # In its own process: a child starts with the resident set of its parent, which would count as its peak.
            subprocess.run(call(f"import harness; harness.generate_predictions({paths[name]!r}, {rows}, {documents}, {name == 'shuffled'})"), check=True)
    return paths


def generate_predictions(path, rows, documents, shuffled):
    """Predictions of queries of about `documents` documents each, with labels 0 to 4 and some tied scores."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(7)
    sizes = []
    while sum(sizes) < rows:
        sizes.append(int(draw.integers(1, 2 * documents)))
    sizes[-1] -= sum(sizes) - rows
    queries = np.repeat(np.arange(len(sizes)), sizes)
    labels = draw.choice(5, rows, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(np.float32)
    scores = np.round(labels * 0.4 + draw.normal(size=rows), 6)
    order = draw.permutation(rows) if shuffled else slice(None)
    table = pa.table({
        "query_id": pa.array(np.char.add("query-", queries.astype(str))[order]),
        "doc_id": pa.array(np.char.add("doc-", np.arange(rows).astype(str))[order]),
        "label": pa.array(labels[order]),
        "score": pa.array(scores[order]),
    })
    pq.write_table(table, path, row_group_size=1 << 20, compression="zstd")


def dataset(planetree, work, rows):
    """A dataset of generated rows with the features of MSLR."""
    data = f"{work}/{rows}"
    if not os.path.exists(data):
        run(planetree, "convert", f"{letor_text(planetree, work, rows)}/train.txt", "--output", data)
    return data


def letor_text(planetree, work, rows):
    """A directory of generated LETOR text with the features of MSLR; `train.txt` has the given number of rows."""
    text = f"{work}/text-{rows}"
    if not os.path.exists(text):
        run(planetree, "sample", "--shape", "mslr", "--rows", str(rows * 5 // 3), "--seed", "7", "--output", text)
    return text


def train(planetree, work, data, settings, *options):
    """Trains `model.parquet` in the work directory; the statistics of the training."""
    stats = f"{work}/stats.json"
    pairs = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    run(planetree, "train", "--data", data, "--model", f"{work}/model.parquet", "--stats", stats, *options, *pairs)
    with open(stats) as file:
        return json.load(file)


def draw(name, series, unit):
    """Draws one line chart per series into a file of docs/, with axes from 0.

    A series is {what varies: [(value, cost per tree), ...]}; the unit is that of the cost.
    """
    width, height, edge = 250, 200, 40
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {len(series) * width} {height + 20}" font-family="sans-serif" font-size="11">',
             '<rect width="100%" height="100%" fill="white"/>']
    for place, (what, points) in enumerate(series.items()):
        left, most_x, most_y = place * width + edge, max(x for x, _ in points), max(y for _, y in points) * 1.1
        across = lambda x: left + x / most_x * (width - edge - 20)
        up = lambda y: height - edge / 2 - y / most_y * (height - edge - 10)
        parts.append(f'<path d="M{left} {up(most_y):.0f}V{up(0):.0f}H{across(most_x):.0f}" fill="none" stroke="#888"/>')
        line = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="#1668a8" stroke-width="2"/>')
        for x, y in points:
            parts.append(f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="#1668a8"><title>{what} {x:,.0f}: {shown(y)} {unit} per tree</title></circle>')
        x, y = points[-1]
        parts.append(f'<text x="{across(x):.0f}" y="{up(y) - 8:.0f}" text-anchor="end">{shown(y)} {unit}</text>')
        parts.append(f'<text x="{across(most_x):.0f}" y="{height - 4}" text-anchor="end">{most_x:,.0f}</text>')
        parts.append(f'<text x="{left + (width - edge - 20) / 2:.0f}" y="{height + 14}" text-anchor="middle" font-weight="bold">{what}</text>')
    with open(os.path.join(os.path.dirname(__file__), "../docs", name), "w") as file:
        file.write("\n".join(parts + ["</svg>", ""]))


def shown(cost):
    return f"{cost:.0f}" if cost >= 10 else f"{cost:.2f}"
