"""Drives the shell of `planetree sql` through a pseudo-terminal."""
import os
import pty
import re
import select
import sys
import tempfile
import time

state = tempfile.mkdtemp()
history = os.path.join(state, "planetree", "sql_history")


class Terminal:
    def __init__(self, *arguments):
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.environ.update(XDG_STATE_HOME=state, TERM="xterm", COLUMNS="200", LINES="50")
            os.execv(sys.argv[1], [sys.argv[1], "sql", *arguments])
        self.seen = ""
        self.expect("planetree> ")

    def expect(self, text, seconds=30):
        """Reads until a text appears; returns and discards everything before it."""
        end = time.time() + seconds
        while text not in self.plain():
            ready, _, _ = select.select([self.terminal], [], [], 0.2)
            if ready:
                try:
                    self.seen += os.read(self.terminal, 65536).decode(errors="replace")
                except OSError:
                    break
            if time.time() > end:
                break
        plain = self.plain()
        if text not in plain:
            sys.exit(f"{text!r} did not appear: {plain!r}")
        before, _, after = plain.partition(text)
        self.seen = after
        return before

    def plain(self):
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.seen).replace("\r", "")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def say(self, line, expected, then="planetree> "):
        self.send(line + "\r")
        self.expect(expected)
        if then:
            self.expect(then)

    def wait_until_busy(self, cpu_seconds=0.3):
        """Waits until the shell has used some processor time, as it does while a query runs."""
        def used():
            with open(f"/proc/{self.child}/stat") as stat:
                user, system = stat.read().rpartition(")")[2].split()[11:13]
            return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

        start, end = used(), time.time() + 60
        while used() < start + cpu_seconds:
            if time.time() > end:
                sys.exit("the query does not run")
            time.sleep(0.01)

    def leave(self, line):
        self.send(line)
        end = time.time() + 30
        while time.time() < end:
            done, status = os.waitpid(self.child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            try:
                if select.select([self.terminal], [], [], 0.1)[0]:
                    os.read(self.terminal, 65536)
            except OSError:
                pass
        sys.exit("the shell did not exit")


shell = Terminal(".")
shell.say("\\d", "predictions     ", then=None)
shell.expect("predictions          600")
shell.expect("planetree> ")
shell.say(".tables pre", "predictions")
shell.say("\\d predictions", "Float64")
shell.say(".schema metrics", "ndcg@10")
shell.say("\\h", "leave")
shell.say("\\df", "rank_in_query(score) OVER")
shell.say("SELECT count(*) AS rows_here FROM predictions;", "600")
# A statement may span several lines.
shell.send("SELECT 40 +\r")
shell.send("2 AS answer\r")
shell.say(";", "│     42 │")
shell.say("\\x", "expanded display on")
shell.say("SELECT 42 AS answer, 'x' AS text;", "answer = 42")
shell.say("\\x off", "planetree> ", then=None)
shell.say(".mode csv", "planetree> ", then=None)
shell.say(".headers off", "planetree> ", then=None)
shell.send("SELECT 3 AS three;\r")
assert "three\n" not in shell.expect("\n3\n").split(";")[-1]
shell.expect("planetree> ")
shell.say(".headers on", "planetree> ", then=None)
shell.say("SELECT 'a;b' AS text, 7 AS n;", "a;b,7")
shell.say(".mode nonsense", "modes: table, csv")
shell.say(".timer on", "planetree> ", then=None)
shell.say("SELECT 1;", "1 row in ")
shell.say("\\timing", "timer off")
shell.say("SELECT socre FROM predictions;", "did you mean score?")
shell.say(".tabels", "did you mean .tables?")
# Tab completes functions, tables, columns and commands.
for typed, completed in [("SELECT rank_in_q\t", "rank_in_query("), ("SELECT * FROM predic\t", "predictions"),
                         ("SELECT feat\x01\x05 FROM model\x01" + "\x1b[C" * 11 + "\t", "feature"), (".hel\t", ".help")]:
    shell.send(typed)
    shell.expect(completed)
    shell.send("\x03")
    shell.expect("planetree> ")
# .read and .output.
room = tempfile.mkdtemp()
with open(f"{room}/q.sql", "w") as file:
    file.write("SELECT 'from a file' AS text;")
shell.say(f".read {room}/q.sql", "from a file")
shell.say(f".output {room}/out.csv", "planetree> ", then=None)
shell.say("SELECT 5 AS five;", "planetree> ", then=None)
shell.say(".output", "planetree> ", then=None)
with open(f"{room}/out.csv") as file:
    assert file.read() == "five\n5\n"
# Ctrl-C discards a line and stops a query.
shell.send("SELECT never")
shell.send("\x03")
shell.expect("planetree> ")
shell.send("SELECT count(*) FROM generate_series(1, 100000000000) WHERE value % 3 = 7;\r")
shell.wait_until_busy()
shell.send("\x03")
shell.expect("interrupted")
shell.expect("planetree> ")
shell.say("SELECT 6 * 7 AS still_here;", "42")
assert shell.leave("exit\r") == 0
assert "from a file" not in open(history).read() and "SELECT 40 +" in open(history).read()
# The next shell has the history; end of input leaves the shell, too.
shell = Terminal(".", "--format", "csv")
shell.send("\x1b[A\x1b[A\r")
shell.expect("42")
shell.expect("planetree> ")
# A command in a line of its own ends an unfinished statement.
shell.send("SELECT 1\r")
shell.say(".tables pre", "predictions")
assert shell.leave("\x04") == 0
shell = Terminal(".")
shell.send("SELECT 'open\r")
assert shell.leave("exit\r") == 0
print("ok")
