"""A server or a cluster in this process, until it is interrupted: its start, its log, its end."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

import click

from steersman.cli import logs
from steersman.cli.service_manager import ServiceManager
from steersman.controlplane.option_ties import warnings_of
from steersman.controlplane.options import Options, OptionsError
from steersman.work.no_collections import no_collections

if TYPE_CHECKING:
    from steersman.controlplane.addresses import Address

logger = logging.getLogger(__name__)

_OF_DISKS: Final = frozenset((errno.EDQUOT, errno.ENOSPC, errno.EROFS))
_LAST_WAIT: Final = 1.0
"""Seconds that threads have when the server has ended: nothing that they do counts any more."""


class Started(Protocol):
    """What is started and stopped: a control plane, or more."""

    async def start(self) -> Address: ...

    async def stop(self) -> None: ...


def run(
    options: Options,
    *,
    program: str = "steersman",
    tied_to: socket.socket | None = None,
    make: Callable[[Options], Started] | None = None,
    ready: Callable[[Address], None] | None = None,
    usual: Mapping[str, str] | None = None,
    own: Mapping[str, str] | None = None,
) -> None:
    """Serves until a signal, or the end of the connection that the server is `tied_to`; `make` says what, by default a
    control plane. `ready` is called when it is, and says so; by default in one line. `usual` are the command's own
    defaults of flags, and `own` its own flags that were given, for the log.

    Exits with 1, after one line, if the server cannot start.
    """
    from steersman.storage.interface import StorageFormatError, StorageLocked, StorageUnavailable

    if make is not None and options.workers > 1:
        fail("--workers: only for `steersman serve`, as controllers and nodes are in one process", program=program)
    logs.configure_logging(options.verbosity, options.logging_format)
    for warning in warnings_of(options):
        logging.getLogger(__name__).warning("%s", warning)
    allow_many_files()
    began = time.monotonic()
    service_manager = ServiceManager()

    def started(address: Address) -> None:
        seconds = time.monotonic() - began
        (ready or say_ready)(address)  # first, for programs that read both streams as one
        logs.log_start(options, address.url, seconds, usual or {}, own or {})
        service_manager.ready(f"serves on {address.url}")

    def ending(why: str) -> None:
        service_manager.stopping()
        logs.log_ending(why)

    try:
        code = _run(options, tied_to, make or _control_plane, started, ending)
    except OSError as error:
        _failed(options, os_error_line(error, options.data_dir), program)
    except (OptionsError, StorageFormatError, StorageLocked, StorageUnavailable) as error:
        _failed(options, str(error), program)
    except BaseExceptionGroup as group:
        reasons = dict.fromkeys(str(error) for error in group.exceptions)  # all may say that a disk is full
        _failed(options, "; ".join(reasons), program)
    logs.log_end(time.monotonic() - began)
    sys.stdout.flush()
    _end(code)


def _end(code: int) -> None:
    """Ends the process if it is not well, or if threads still work for requests that nobody waits for any more: the
    interpreter would not end before they have."""
    until = time.monotonic() + _LAST_WAIT
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                logger.warning("%s still works: it is not waited for", thread.name)
                logging.shutdown()
                os._exit(code)
    os._exit(code) if code else None


def _failed(options: Options, why: str, program: str) -> NoReturn:
    """End the program with 1. Who reads the log as JSON finds the reason in it too."""
    if options.logging_format == logs.JSON:
        logs.log_failure(why)
        sys.exit(1)
    fail(why, program=program)


def os_error_line(error: OSError, folder: Path) -> str:
    """Return what is wrong, and with which file: with the folder, where the system tells of a full disk only."""
    name = error.filename or (folder if error.errno in _OF_DISKS else None)
    return f"{name}: {error.strerror}" if name and error.strerror else str(error)


def fail(text: str, *, program: str = "steersman") -> NoReturn:
    """Ends the program with 1, and what is wrong in one line."""
    click.echo(f"{program}: {' '.join(text.split())}", err=True)
    sys.exit(1)


def allow_many_files() -> None:
    """Raises the limit of open files to what the system grants, as Go programs do: every connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:  # e.g. macOS grants less than it says
        logging.getLogger(__name__).info("at most %d open files: %s", soft, error)


def _control_plane(options: Options) -> Started:
    if options.workers > 1:
        from steersman.controlplane.workers.owner import Owner  # which most servers never need

        return Owner(options)
    from steersman.controlplane.control_plane import ControlPlane

    return ControlPlane(options, owns_process=True)


def say_ready(address: Address) -> None:
    """In one line, for programs; and how to go on, for somebody at a terminal."""
    click.echo(ready_line(address))
    sys.stdout.flush()
    if sys.stdout.isatty():
        click.echo(f"try it:  kubectl --kubeconfig {address.kubeconfig} get namespaces")


def ready_line(address: Address) -> str:
    """Where the server is, and by what its administrator reaches it."""
    return f"ready url={address.url} kubeconfig={address.kubeconfig} ca={address.ca}"


def _run(
    options: Options,
    tied_to: socket.socket | None,
    make: Callable[[Options], Started],
    ready: Callable[[Address], None],
    ending: Callable[[str], None],
) -> int:
    import uvloop

    # until the server is ready
    with no_collections(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(lambda: make(options), tied_to, ready, ending))


async def _serve(
    make: Callable[[], Started],
    tied_to: socket.socket | None,
    ready: Callable[[Address], None],
    ending: Callable[[str], None],
) -> int:
    loop = asyncio.get_running_loop()
    let_go = own_threads(loop)
    stop = asyncio.Event()

    def end(why: str) -> None:
        ending(why)
        stop.set()

    def interrupted(number: signal.Signals) -> None:
        if stop.is_set():
            os._exit(1)
        end(f"{number.name}: the server ends")

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, interrupted, each)
    if tied_to is not None:
        _follow(tied_to, lambda: end("the etcd has ended, and this server with it"))
    plane = make()
    replace = getattr(plane, "replace_workers", None)
    if replace is not None:
        loop.add_signal_handler(signal.SIGHUP, _wait_for_no_start)
    starting = asyncio.ensure_future(plane.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return 0
    address = await starting
    settle()
    if replace is not None:
        loop.add_signal_handler(signal.SIGHUP, replace)
    ready(address)
    await stopping
    await plane.stop()
    let_go()
    return 0


def own_threads(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Gives a loop threads that it does not wait for at its end, once the function that this gives was called."""
    threads = ThreadPoolExecutor(thread_name_prefix="asyncio")
    loop.set_default_executor(threads)

    def let_go() -> None:
        threads.shutdown(wait=False, cancel_futures=True)
        loop.set_default_executor(ThreadPoolExecutor(1))

    return let_go


def _wait_for_no_start() -> None:
    logging.getLogger(__name__).warning("SIGHUP: workers are not replaced, as they are just being started")


def settle() -> None:
    """Begins to collect garbage.

    What the start has made stays: no collection needs to walk it. A young collection every 700 objects and one of all
    of them every 70,000, the default, takes two thirds of the time that reading a body of a million values takes, with
    the interpreter held. Each object is walked once when it is young, and once more with those of three young
    collections: where thousands connect, and nearly all of them stay, that is 12 ms and 37 ms at most.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 2, 2_500)


def _follow(connection: socket.socket, gone: Callable[[], None]) -> None:
    """Calls `gone` at the end of the connection. Nothing is sent on it."""
    loop = asyncio.get_running_loop()

    def ended() -> None:
        loop.remove_reader(connection)
        gone()

    connection.setblocking(False)
    loop.add_reader(connection, ended)
