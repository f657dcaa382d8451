"""The worker process of `steersman serve --workers`; its owner starts it, not the user."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from typing import Final

from steersman.cli.logs import configure_logging
from steersman.cli.serve import allow_many_files, own_threads, settle
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import OptionsError
from steersman.controlplane.workers.messages import decode_settings, first_frame
from steersman.controlplane.workers.worker import Sockets, Worker
from steersman.machinery.shared_words import SharedWords
from steersman.storage.interface import StorageFormatError, StorageLocked, StorageUnavailable

_PR_SET_PDEATHSIG: Final = 1
"""Option of prctl(2): the signal that this process gets when its parent ends."""


def main() -> None:
    """Serve until the owner ends or asks this process to end."""
    import gc

    import uvloop

    end_with(os.getppid())
    for each in (signal.SIGINT, signal.SIGTERM):  # a terminal sends them to all processes; the owner decides
        signal.signal(each, signal.SIG_IGN)
    words, *descriptors = map(int, sys.argv[1:])
    link, connections, *storage = (socket.socket(fileno=each) for each in descriptors)
    sockets = Sockets(link, connections, storage[0] if storage else None, SharedWords(words))
    for descriptor in (words, *descriptors):
        os.set_inheritable(descriptor, False)
    try:
        given = decode_settings(first_frame(link))
    except EOFError:
        sys.exit(1)
    configure_logging(given.options.verbosity, given.options.logging_format, given.number)
    allow_many_files()
    gc.disable()  # until the server is ready
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(_work(Worker(given, sockets)))
    sys.stdout.flush()
    os._exit(code)


def end_with(owner: int) -> None:
    """Let the kernel kill this process when its owner has ended, even if this process hangs; on Linux only.

    A hanging process does not notice that the connection to its owner is closed.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != owner:  # the owner had ended before prctl
        sys.exit(1)


async def _work(worker: Worker) -> int:
    abandon_threads = own_threads(asyncio.get_running_loop())
    await worker.begin()
    plane = ControlPlane(worker.settings.options, worker=worker)
    try:
        address = await plane.start()
    except (OptionsError, OSError, StorageFormatError, StorageLocked, StorageUnavailable) as error:
        await worker.failed(str(error))
        return 1
    except BaseExceptionGroup as group:
        await worker.failed("; ".join(str(error) for error in group.exceptions))
        return 1
    settle()
    worker.ready(address)
    await worker.ended.wait()
    await plane.stop()
    await worker.send_final_metrics()
    abandon_threads()
    return 0


if __name__ == "__main__":
    main()
