"""Threads, forks, interrupts, and memory."""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import unittest
import unittest.mock

import planetree

from data import SMALL, letor


def fitted():
    X, y, qid = letor("train")
    return planetree.Ranker(**SMALL).fit(X, y, qid=qid)


def in_child(queue):
    ranker = fitted()
    table = planetree.sql("SELECT 1 AS a")
    queue.put((ranker.model_.to_bytes(), ranker.predict(letor("test")[0]).sum(), table.num_rows))


class Processes(unittest.TestCase):
    def test_forked_processes_train_and_score(self):
        ranker = fitted()  # the parent has used its threads
        planetree.sql("SELECT 1 AS a")
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        children = [context.Process(target=in_child, args=(queue,)) for _ in range(2)]
        [child.start() for child in children]
        results = [queue.get(timeout=120) for _ in children]
        [child.join(60) for child in children]
        self.assertEqual([child.exitcode for child in children], [0, 0])
        for file, total, rows in results:
            self.assertEqual((file, rows), (ranker.model_.to_bytes(), 1))
            self.assertEqual(total, ranker.predict(letor("test")[0]).sum())

    def test_the_memory_of_the_caller_is_not_that_of_a_query(self):
        held = b"x" * (300 << 20)
        self.assertEqual(planetree.sql("SELECT 1 AS a", memory_limit="256MiB").num_rows, len(held[:1]))

    def test_threads_train_side_by_side(self):
        expected = fitted().model_.to_bytes()
        results = []
        threads = [threading.Thread(target=lambda: results.append(fitted().model_.to_bytes())) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(results, [expected] * 4)

    def test_other_threads_run_meanwhile(self):
        X, y, qid = letor("train")
        done = threading.Event()
        thread = threading.Thread(target=lambda: (planetree.Ranker(num_trees=300).fit(X, y, qid=qid), done.set()))
        thread.start()
        count = 0
        while not done.is_set():
            time.sleep(0.001)
            count += 1
        thread.join()
        self.assertGreater(count, 50)

    def test_a_stream_is_read_in_bounded_memory(self):
        rows = int(os.environ.get("PLANETREE_STREAM_ROWS", 600_000))
        script = textwrap.dedent(
            """
            import resource, sys, tempfile
            import numpy as np, pyarrow
            import planetree
            rows, size = int(sys.argv[1]), 50_000
            schema = pyarrow.schema([("qid", pyarrow.int64()), ("label", pyarrow.float32())]
                                    + [(f"x{i}", pyarrow.float64()) for i in range(20)])
            def batches():
                for first in range(0, rows, size):
                    random = np.random.default_rng(first)
                    place = np.arange(first, first + size)
                    columns = [place // 100, (place % 5).astype(np.float32)] + list(random.random((20, size)))
                    yield pyarrow.record_batch(columns, schema=schema)
            warm = pyarrow.RecordBatchReader.from_batches(schema, [next(batches())])
            with tempfile.TemporaryDirectory() as room:
                planetree.convert(warm, f"{room}/warm", sort_queries=False)
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
                done = planetree.convert(reader, f"{room}/data", sort_queries=False)
                assert done["rows"] == rows, done
            print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            """
        )
        done = subprocess.run([sys.executable, "-c", script, str(rows)], capture_output=True, text=True, timeout=3000)
        self.assertEqual(done.returncode, 0, done.stderr)
        before, after = map(int, done.stdout.split())
        # The rows alone would be 22 columns of 8 bytes.
        self.assertLess(after - before, 450 * 1024, f"{rows} rows, {rows * 22 * 8 >> 20} MiB")

    def test_progress_is_reported(self):
        script = textwrap.dedent(
            """
            import sys
            sys.path.insert(0, sys.argv[1])
            from data import letor
            import planetree
            X, y, qid = letor("train")
            planetree.Ranker(num_trees=30, verbose=True if sys.argv[2] == "verbose" else None).fit(X, y, qid=qid)
            """
        )
        words = [sys.executable, "-c", script, os.path.dirname(os.path.abspath(__file__))]
        done = subprocess.run([*words, "verbose"], capture_output=True, text=True, timeout=300)
        self.assertIn("round 30 of 30", done.stderr)
        silent = subprocess.run([*words, ""], capture_output=True, text=True, timeout=300)
        self.assertEqual((silent.stdout, silent.stderr), ("", ""))


# Seconds within which an interrupted call ends, on a busy machine, too. The calls would take hours.
PROMPT = 60

# Calls that would take minutes or hours, each interrupted once while it runs. `rows` is an endless stream, and the server
# never answers.
CALLS = {
    "fit": "planetree.Ranker(num_trees=1000000, learning_rate=0.001).fit(X, y, qid=qid)",
    "train": "planetree.train(frame, num_trees=1000000, learning_rate=0.001)",
    "cv": "planetree.cv(frame, folds=3, num_trees=1000000, learning_rate=0.001)",
    "sql": "planetree.sql('SELECT sum(a.f1 * b.f2 * c.f3) FROM d a, d b, d c', {'d': frame})",
    "fit while rows are read": "planetree.Ranker().fit(rows)",
    "convert": "planetree.convert(rows, 'out')",
    "load": "planetree.Model.load(f'http://127.0.0.1:{server.getsockname()[1]}/model.parquet')",
}


class Interrupts(unittest.TestCase):
    """One signal, as Ctrl-C sends it, ends a call with KeyboardInterrupt, and the next call works."""

    def interrupted(self, call, delay):
        script = textwrap.dedent(
            f"""
            import itertools, signal, socket, sys, time
            signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs of a shell
            sys.path.insert(0, sys.argv[1])
            from data import letor, names
            import pandas, planetree, pyarrow
            X, y, qid = letor("train")
            frame = pandas.DataFrame(X, columns=names(X)).assign(label=y, qid=qid)
            batches = (pyarrow.RecordBatch.from_pandas(frame.assign(qid=qid + 1000 * number)) for number in itertools.count())
            rows = pyarrow.RecordBatchReader.from_batches(pyarrow.Schema.from_pandas(frame), batches)
            server = socket.create_server(("127.0.0.1", 0))
            try:
                print("ready", flush=True)
                {call}
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            planetree.Ranker(num_trees=3).fit(X, y, qid=qid)
            print("trained again", flush=True)
            """
        )
        words = [sys.executable, "-c", script, os.path.dirname(os.path.abspath(__file__))]
        with tempfile.TemporaryDirectory() as room:
            child = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=room, env=dict(os.environ, TMPDIR=room)
            )
            # A line that never comes ends with the process: a call that ignores the interrupt would take hours.
            timer = threading.Timer(2 * PROMPT, child.kill)
            timer.start()
            try:
                self.assertEqual(child.stdout.readline(), "ready\n")
                time.sleep(delay)
                child.send_signal(signal.SIGINT)
                begun = time.monotonic()
                answer = child.stdout.readline()
                seconds = time.monotonic() - begun
                timer.cancel()
                rest, errors = child.communicate(timeout=300)
            finally:
                timer.cancel()
                child.kill()
                child.wait()
            self.assertEqual((answer, rest, child.returncode), ("interrupted\n", "trained again\n", 0), errors)
            self.assertEqual(os.listdir(room), [], "nothing is left behind")
        return seconds

    def test_an_interrupt_stops_every_call(self):
        for name, call in CALLS.items():
            with self.subTest(name):
                self.assertLess(self.interrupted(call, 1.0), PROMPT)

    def test_an_interrupt_is_not_lost_at_any_time(self):
        for delay in (0.0, 0.01, 0.05, 0.2):
            with self.subTest(delay):
                self.assertLess(self.interrupted(CALLS["fit"], delay), PROMPT)


class Notebook(unittest.TestCase):
    def test_progress_in_a_notebook_rewrites_one_output(self):
        shown = []
        handle = types.SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))
        displays = types.ModuleType("IPython.display")
        displays.display = lambda data, raw, display_id: handle
        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda: types.SimpleNamespace(kernel=None)
        ipython.display = displays
        X, y, qid = letor("train")
        with unittest.mock.patch.dict(sys.modules, {"IPython": ipython, "IPython.display": displays}):
            planetree.Ranker(num_trees=30).fit(X, y, qid=qid)
            self.assertRegex(shown[-1], r"^round 30 of 30 ")
            shown.clear()
            planetree.Ranker(num_trees=30, verbose=False).fit(X, y, qid=qid)
            self.assertEqual(shown, [])


if __name__ == "__main__":
    unittest.main()
