#!/usr/bin/env python3
"""Compare two builds of planetree: speed, memory and output bytes, in one interleaved series.

    benches/against.py OLD_BINARY NEW_BINARY [--rows 200000] [--repeats 5] [--jobs train-planet,predict]

Each job runs alternately with both binaries. The table has the best wall time and the peak memory of each, their ratios, and
whether both wrote the same bytes. A ratio above 1.02 is marked; so are differing outputs, which also make the script fail.
"""

import argparse
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

# name: arguments; {data} and the other names are inputs shared by both binaries, {out} is the job's output.
JOBS = {
    "convert": "convert {text} --output {out}",
    "train-planet": "train --data {data} --preset planet --set num_trees=60 --model {out}",
    "train-lambdamart": "train --data {data} --preset lambdamart --set num_trees=60 --model {out}",
    "train-pgbrt": "train --data {data} --preset pgbrt --set value_groups=255 --set max_bin=50 --set base_score=auto --set num_trees=15 --model {out}",
    "train-gbrt": "train --data {small} --preset gbrt --set num_trees=10 --model {out}",
    "train-rf": "train --data {small} --preset rf --set num_trees=40 --model {out}",
    "train-rf-list": "train --data {tiny} --preset rf-list --set num_trees=4 --model {out}",
    "train-one-thread": "train --data {data} --preset planet --set num_trees=20 --threads 1 --model {out}",
    "train-validated": "train --data {small} --valid {tiny} --preset lambdamart --set num_trees=60 --model {out}",
    "predict": "predict --model {model} --data {data} --output {out}",
    "explain": "predict --model {model} --data {small} --contributions --output {out}",
    "evaluate": "evaluate --predictions {predictions} --metrics ndcg@10,err,map --output {out}",
    "sql": "sql --table p={predictions} -o {out} -c "
    "'SELECT query_id, ndcg(label, score, 10) AS ndcg, count(*) AS n FROM p GROUP BY query_id ORDER BY query_id'",
}


def run(binary, arguments):
    """Seconds and peak memory in MiB of one run."""
    begun = time.perf_counter()
    process = subprocess.Popen([binary, "--quiet", *arguments], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{binary} {' '.join(arguments)}:\n{errors.decode()}")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024


def digest(path):
    """A hash of the content of a file or directory."""
    total = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            total.update(str(file.relative_to(path)).encode() + file.read_bytes())
    return total.hexdigest()


def prepare(binary, work, rows):
    """The inputs of all jobs, made by one of the binaries."""
    inputs = {}
    for name, count in (("data", rows), ("small", max(rows // 6, 2000)), ("tiny", max(rows // 40, 2000))):
        folder = work / f"{name}-text"
        run(binary, ["sample", "--shape", "mslr", "--rows", str(count), "--seed", "7", "--output", str(folder)])
        run(binary, ["convert", str(folder / "train.txt"), "--output", str(work / name)])
        inputs[name] = work / name
    inputs["text"] = work / "data-text" / "train.txt"
    inputs["model"] = work / "model.parquet"
    inputs["predictions"] = work / "predictions.parquet"
    train = ["--preset", "lambdamart", "--set", "num_trees=200", "--model", str(inputs["model"])]
    run(binary, ["train", "--data", str(inputs["data"]), *train])
    scored = ["--data", str(inputs["data"]), "--output", str(inputs["predictions"])]
    run(binary, ["predict", "--model", str(inputs["model"]), *scored])
    return inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--jobs", default=",".join(JOBS))
    options = parser.parse_args()
    differing = []
    with tempfile.TemporaryDirectory(prefix="planetree-against-") as room:
        work = pathlib.Path(room)
        inputs = prepare(options.old, work, options.rows)
        print(f"{'job':<18}{'old s':>9}{'new s':>9}{'ratio':>8}{'old MiB':>10}{'new MiB':>9}{'ratio':>8}  bytes")
        for job in options.jobs.split(","):
            seconds, memory, hashes = {}, {}, {}
            for _ in range(options.repeats):
                for side, binary in (("old", options.old), ("new", options.new)):
                    out = work / f"out-{side}.parquet"
                    shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
                    time_taken, peak = run(binary, shlex.split(JOBS[job].format(out=out, **inputs)))
                    seconds[side] = min(seconds.get(side, time_taken), time_taken)
                    memory[side] = min(memory.get(side, peak), peak)
                    hashes[side] = digest(out)
            same = hashes["old"] == hashes["new"]
            differing += [] if same else [job]
            ratio, room_ratio = seconds["new"] / seconds["old"], memory["new"] / memory["old"]
            print(
                f"{job:<18}{seconds['old']:>9.3f}{seconds['new']:>9.3f}{ratio:>8.3f}{memory['old']:>10.0f}{memory['new']:>9.0f}"
                f"{room_ratio:>8.3f}  {'same' if same else 'DIFFER'}{'  slower' if ratio > 1.02 else ''}"
                f"{'  larger' if room_ratio > 1.02 else ''}",
                flush=True,
            )
    if differing:
        sys.exit(f"outputs differ: {', '.join(differing)}")


main()
