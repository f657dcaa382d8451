"""Running a server or cluster in this process until it is interrupted: start, log and end."""

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
from steersman.cli.program import fail
from steersman.cli.service_manager import ServiceManager
from steersman.controlplane.option_ties import warnings_of
from steersman.controlplane.options import Options, OptionsError
from steersman.work.no_collections import no_collections

if TYPE_CHECKING:
    from steersman.controlplane.addresses import Address

logger = logging.getLogger(__name__)

_OF_DISKS: Final = frozenset((errno.EDQUOT, errno.ENOSPC, errno.EROFS))
_LAST_WAIT: Final = 1.0
"""Seconds to wait for threads after the server has stopped, as their results are not needed any more."""


class Service(Protocol):
    """A component with a start and a stop: a control plane, or a whole cluster."""

    async def start(self) -> Address:
        """Start the component. Return the address at which it serves."""
        ...

    async def stop(self) -> None:
        """Stop the component and wait until it has stopped."""
        ...


def run(
    options: Options,
    *,
    program: str = "steersman",
    tied_to: socket.socket | None = None,
    make: Callable[[Options], Service] | None = None,
    ready: Callable[[Address], None] | None = None,
    usual: Mapping[str, str] | None = None,
    own: Mapping[str, str] | None = None,
) -> None:
    """Run a server until a signal, or until the connection `tied_to` ends.

    `make` creates the component, by default a control plane. `ready` is called once it serves; by default it prints one
    line. For the log, `usual` are the command's own defaults of flags, and `own` the values of its own flags.

    Prints one line and exits with 1 if the server cannot start.
    """
    from steersman.storage.interface import StorageFormatError, StorageLocked, StorageUnavailable

    if make is not None and options.workers > 1:
        fail("--workers is only for `steersman serve`, as controllers and nodes run in one process", program=program)
    logs.configure_logging(options.verbosity, options.logging_format)
    for warning in warnings_of(options):
        logging.getLogger(__name__).warning("%s", warning)
    allow_many_files()
    began = time.monotonic()
    service_manager = ServiceManager()

    def started(address: Address) -> None:
        seconds = time.monotonic() - began
        (ready or say_ready)(address)  # before the log, for programs that merge both streams
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
        # several errors may report the same full disk
        reasons = dict.fromkeys(str(error) for error in group.exceptions)
        _failed(options, "; ".join(reasons), program)
    logs.log_end(time.monotonic() - began)
    sys.stdout.flush()
    _end(code)


def _end(code: int) -> None:
    """Exit at once if `code` is not 0, or if threads are still working for abandoned requests.

    Otherwise the interpreter would wait for these threads.
    """
    until = time.monotonic() + _LAST_WAIT
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                logger.warning("thread %s is still working; exiting without waiting for it", thread.name)
                logging.shutdown()
                os._exit(code)
    os._exit(code) if code else None


def _failed(options: Options, why: str, program: str) -> NoReturn:
    """Exit with 1, with the reason in the log if it is JSON, otherwise on the standard error."""
    if options.logging_format == logs.JSON:
        logs.log_failure(why)
        sys.exit(1)
    fail(why, program=program)


def os_error_line(error: OSError, folder: Path) -> str:
    """Return the text of an error with its file; for full disks with `folder`, as the system reports no file."""
    name = error.filename or (folder if error.errno in _OF_DISKS else None)
    return f"{name}: {error.strerror}" if name and error.strerror else str(error)


def allow_many_files() -> None:
    """Raise the limit of open files to the hard limit, as Go programs do; every connection needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:  # e.g. macOS grants less than its hard limit
        logging.getLogger(__name__).info("at most %d open files: %s", soft, error)


def _control_plane(options: Options) -> Service:
    if options.workers > 1:
        from steersman.controlplane.workers.owner import Owner  # which most servers never need

        return Owner(options)
    if options.faults:
        from steersman.cluster.fault_objects.server import FaultyServer

        return FaultyServer(options)
    from steersman.controlplane.control_plane import ControlPlane

    return ControlPlane(options, owns_process=True)


def say_ready(address: Address) -> None:
    """Print one line for programs, and on a terminal a command to continue with."""
    click.echo(ready_line(address))
    sys.stdout.flush()
    if sys.stdout.isatty():
        click.echo(f"try it:  kubectl --kubeconfig {address.kubeconfig} get namespaces")


def ready_line(address: Address) -> str:
    """Return the line with the server's URL, the administrator's kubeconfig and the CA."""
    return f"ready url={address.url} kubeconfig={address.kubeconfig} ca={address.ca}"


def _run(
    options: Options,
    tied_to: socket.socket | None,
    make: Callable[[Options], Service],
    ready: Callable[[Address], None],
    ending: Callable[[str], None],
) -> int:
    import uvloop

    # garbage collection is off until the server is ready
    with no_collections(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(lambda: make(options), tied_to, ready, ending))


async def _serve(
    make: Callable[[], Service],
    tied_to: socket.socket | None,
    ready: Callable[[Address], None],
    ending: Callable[[str], None],
) -> int:
    loop = asyncio.get_running_loop()
    abandon_threads = own_threads(loop)
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
    abandon_threads()
    return 0


def own_threads(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Set the event loop's thread pool; calling the result abandons its threads, so that closing the loop does not
    wait.
    """
    threads = ThreadPoolExecutor(thread_name_prefix="asyncio")
    loop.set_default_executor(threads)

    def abandon_threads() -> None:
        threads.shutdown(wait=False, cancel_futures=True)
        loop.set_default_executor(ThreadPoolExecutor(1))

    return abandon_threads


def _wait_for_no_start() -> None:
    logging.getLogger(__name__).warning("SIGHUP: workers are not replaced, as they are just being started")


def settle() -> None:
    """Enable garbage collection, with objects of the start excluded from it.

    Python's defaults are a young collection every 700 objects and a full one every 70,000. With them, two thirds of the
    time to decode a body of a million values is garbage collection, during which the interpreter is blocked. With these
    thresholds each object is visited once while young, and once more after three young collections. For thousands of
    new long-lived connections that blocks for at most 12 ms and 37 ms.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 2, 2_500)


def _follow(connection: socket.socket, gone: Callable[[], None]) -> None:
    """Call `gone` when the connection ends. The peer sends no data on it."""
    loop = asyncio.get_running_loop()

    def ended() -> None:
        loop.remove_reader(connection)
        gone()

    connection.setblocking(False)
    loop.add_reader(connection, ended)
