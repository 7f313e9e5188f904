"""Commands in processes of their own that need not start Python: a process that has imported all of hwsim forks for each.

Starting Python and importing hwsim takes longer than most commands of a page.  Where there is no fork to rely on, every
command starts Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

SECONDS: Final = 300  # of a command, which takes seconds where nothing else runs
FORKS: Final = sys.platform == "linux"
_SERVER: Final = """
import atexit, contextlib, gc, importlib, json, os, pkgutil, runpy, signal, sys, threading
import hwsim

for each in pkgutil.walk_packages(hwsim.__path__, "hwsim."):
    if each.name != "hwsim.__main__" and not each.name.startswith("hwsim.explorer"):
        with contextlib.suppress(ImportError):  # of an extra that is not installed
            importlib.import_module(each.name)
gc.freeze()  # what stays is not looked at again by each command

for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    os._exit(0)
signal.alarm(asked["seconds"])
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["variables"])
nothing, written = os.open(os.devnull, os.O_RDONLY), os.open(asked["output"], os.O_WRONLY | os.O_APPEND)
for stream, number in ((nothing, 0), (written, 1), (written, 2)):
    os.dup2(stream, number)
sys.stdin = open(0, encoding="utf-8", closefd=False)
sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", buffering=1, closefd=False) for number in (1, 2))
sys.argv = ["hwsim", *asked["words"]]
status = 0
try:
    runpy.run_module("hwsim", run_name="__main__", alter_sys=True)
except SystemExit as end:
    status = end.code if isinstance(end.code, int) else int(end.code is not None)
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)  # taking modules apart one by one takes longer than a small command
"""


class Warm:
    """Runs `hwsim ...` as a shell does."""

    def __init__(self, root: Path, python: str = sys.executable) -> None:
        self._root, self._python = root, python
        self._server: subprocess.Popen[str] | None = None

    def run(self, words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> tuple[str, int]:
        """What a reader sees of `hwsim` and these words, both streams in order, and the exit status."""
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            status = (self._fork if FORKS else self._start)(words, folder, variables, output)
            output.seek(0)
            return output.read(), status

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate()

    def _start(self, words: Sequence[str], folder: Path, variables: Mapping[str, str], output: IO[str]) -> int:
        command = [self._python, "-m", "hwsim", *words]
        return subprocess.run(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            timeout=SECONDS,
        ).returncode

    def _fork(self, words: Sequence[str], folder: Path, variables: Mapping[str, str], output: IO[str]) -> int:
        server = self._server = self._server or self._served(variables)
        assert server.stdin is not None
        assert server.stdout is not None
        path = f"/proc/{os.getpid()}/fd/{output.fileno()}"
        asked = {"words": words, "folder": str(folder), "variables": dict(variables), "output": path, "seconds": SECONDS}
        print(json.dumps(asked), file=server.stdin, flush=True)
        return int(server.stdout.readline())

    def _served(self, variables: Mapping[str, str]) -> subprocess.Popen[str]:
        command = [self._python, "-c", _SERVER]
        return subprocess.Popen(
            command, cwd=self._root, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
