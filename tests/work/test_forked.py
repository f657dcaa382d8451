"""Work in a child process: its result, its failure, and its end when the parent ends.

Each test runs in its own process.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HEAD = """
import asyncio, os, pathlib, signal, sys, threading, time
from steersman.work.forked import Forked, can_fork
file = pathlib.Path(sys.argv[1])
"""


def run(body: str, file: Path) -> str:
    program = HEAD + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")


def test_the_work_is_done_by_a_child(tmp_path: Path) -> None:
    body = """
    async def main():
        child = Forked(lambda: file.write_text(str(os.getppid())))
        print(await child.wait(), file.read_text() == str(os.getpid()))
        child.kill()
    print(can_fork())
    asyncio.run(main())
    """
    assert run(body, tmp_path / "a").split() == ["True", "True", "True"]


def test_failed_work_is_reported(tmp_path: Path) -> None:
    body = """
    async def main():
        child = Forked(lambda: file.read_text())
        print(await child.wait())
        child.kill()
    asyncio.run(main())
    """
    assert run(body, tmp_path / "a") == "False\n"


def test_a_child_ends_with_its_parents_start(tmp_path: Path) -> None:
    body = """
    async def main():
        child = Forked(lambda: time.sleep(60))
        waiting = asyncio.ensure_future(child.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        print((await asyncio.gather(waiting, return_exceptions=True))[0].__class__.__name__)
        child.kill()
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            print("none is left")
    asyncio.run(main())
    """
    assert run(body, tmp_path / "a") == "CancelledError\nnone is left\n"


def test_signals_are_the_parents(tmp_path: Path) -> None:
    """A terminal sends SIGINT to both processes. The parent gets it once, and the child goes on."""
    body = """
    def work():
        os.kill(os.getpid(), signal.SIGINT)
        file.write_text("done")

    async def main():
        told = []
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, told.append, 1)
        child = Forked(work)
        print(await child.wait(), told, file.read_text())
        child.kill()
    asyncio.run(main())
    """
    assert run(body, tmp_path / "a") == "True [] done\n"


def test_a_process_with_threads_does_not_fork(tmp_path: Path) -> None:
    body = """
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    print(can_fork())
    end.set()
    thread.join()
    while not can_fork():  # the kernel lists the thread a little longer
        time.sleep(0.001)
    """
    assert run(body, tmp_path / "a") == "False\n"


def test_a_failed_fork_is_reported(tmp_path: Path) -> None:
    body = """
    def refuse():
        raise BlockingIOError(11, "no more processes")

    async def main():
        os.fork = refuse
        before = len(os.listdir("/proc/self/fd"))
        try:
            Forked(lambda: None)
        except OSError as error:
            print(error.strerror, len(os.listdir("/proc/self/fd")) == before)
    asyncio.run(main())
    """
    assert run(body, tmp_path / "a") == "no more processes True\n"
