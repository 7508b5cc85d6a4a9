"""Runs a program on a pseudo-terminal with 80 columns and prints its output and exit code.

    terminal.py [NAME=VALUE]... PROGRAM ARGUMENT...
"""
import fcntl
import os
import pty
import struct
import sys
import termios

words = sys.argv[1:]
settings = {"TERM": "xterm-256color"}
while "=" in words[0]:
    name, value = words.pop(0).split("=", 1)
    settings[name] = value
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.environ.pop("NO_COLOR", None)
    os.environ.update(settings)
    os.execv(words[0], words)
output = b""
while True:
    try:
        chunk = os.read(terminal, 1 << 16)
    except OSError:
        break
    if not chunk:
        break
    output += chunk
_, status = os.waitpid(child, 0)
sys.stdout.buffer.write(output)
print(f"\nexit {os.waitstatus_to_exitcode(status)}")
