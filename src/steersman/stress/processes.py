"""Programs of a run: the operator and the test, each in a session of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from steersman.stress.output_files import last_bytes
from steersman.stress.process_family import kill_family


class Program:
    """Program with its children, whose output goes to a file."""

    def __init__(self, command: str | Sequence[str], environment: Mapping[str, str], output: Path) -> None:
        """`command` is a line for the shell, or a program with its arguments."""
        self._arguments = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
        self._environment = dict(environment)
        self._output = output
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the program. Raises OSError, which names the program."""
        with self._output.open("ab") as output:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._arguments,
                    env=self._environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            except OSError as error:
                raise OSError(f"{self._arguments[0]}: {error.strerror or error}") from error

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while it runs."""
        assert self._process is not None
        return self._process.returncode

    async def wait(self) -> int:
        """Wait until the program has ended, and return its exit code."""
        assert self._process is not None
        return await self._process.wait()

    def kill(self) -> None:
        """Kill the program and all processes that it has begun. Does nothing if they have ended."""
        if self._process is not None:
            kill_family(self._process.pid)

    async def end(self, patience: float) -> None:
        """Ask the program to end, and kill it after `patience` seconds, and what it has left behind in any case."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._process.wait()
        self.kill()
        await self._process.wait()

    def last_output(self) -> str:
        """Return the end of the output."""
        return last_bytes(self._output).decode(errors="replace").strip(" \r\n")


class Operator:
    """Operator that is started again when it ends, as Kubernetes does."""

    def __init__(self, command: str, environment: Mapping[str, str], output: Path) -> None:
        self._arguments = command, environment, output
        self._running: Program | None = None
        self._task: asyncio.Task[None] | None = None
        self.exit_codes: list[int] = []
        """Exit codes of the times when it ended by itself."""
        self.starts = 0
        self._crashes = 0
        self._is_over = False

    async def start(self) -> None:
        """Start the operator. Raises OSError."""
        self._running = Program(*self._arguments)
        await self._running.start()
        self.starts += 1
        self._task = asyncio.create_task(self._supervise(), name="operator of a stress run")

    def crash(self) -> None:
        """Kill the operator; it is started again."""
        if self._running is not None:
            self._crashes += 1
            self._running.kill()

    @property
    def gives_up(self) -> bool:
        """True if the operator has ended so often by itself that it is not started again."""
        return len(self.exit_codes) > _MOST_EXITS

    @property
    def why_given_up(self) -> str:
        """Reason why the operator is not started again; "" if it is."""
        if not self.gives_up:
            return ""
        return f"the operator ended {len(self.exit_codes)} times, at last with exit code {self.exit_codes[-1]}"

    async def _supervise(self) -> None:
        while True:
            assert self._running is not None
            code = await self._running.wait()
            self._running.kill()  # children that it has left behind
            if self._crashes:
                self._crashes = 0
            else:
                self.exit_codes.append(code)
                if self.gives_up:
                    return
                await asyncio.sleep(_PAUSE * len(self.exit_codes))
            self._running = Program(*self._arguments)
            await self._running.start()
            self.starts += 1

    async def end(self) -> None:
        """Kill the operator for good."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._running is not None:
            self._running.kill()
            await self._running.wait()

    def last_output(self) -> str:
        """Return the end of the output of all its starts."""
        return "" if self._running is None else self._running.last_output()


_MOST_EXITS: Final = 5
"""Times that an operator may end by itself in one run."""
_PAUSE: Final = 0.2
"""Seconds before the first start after an end, growing with each."""
