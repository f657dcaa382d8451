"""A whole API server in this process for tests that block: its event loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import uvloop

from steersman.report.report import Report
from steersman.server.kubeconfigs import Context
from steersman.storage.memory import Snapshot
from steersman.testing import definitions
from steersman.testing.blocking_client import BlockingClient
from steersman.testing.clock import Clock
from steersman.testing.environment import Environment
from steersman.testing.faults import Faults
from steersman.testing.users import ADMIN, User
from steersman.testing.waiting import NotReached, Until, blocking_until_true

if TYPE_CHECKING:
    import kr8s
    import kubernetes
    import lightkube

T = TypeVar("T")

_STACK: Final = 16 << 20
"""Stack size in bytes: decoders recurse for each level of a document, and some systems give threads half a MiB."""


class BlockingClock:
    """Moves the time of an environment's event loop, and of this process."""

    def __init__(self, environment: ThreadedEnvironment) -> None:
        self._environment = environment

    @property
    def clock(self) -> Clock:
        """Clock for coroutines of the environment's event loop. Raises RuntimeError if there is none."""
        return self._environment.environment.clock

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Move time, and return once all timers that became due have run, with their immediate consequences."""
        self._environment.run(self.clock.advance(days=days, hours=hours, minutes=minutes, seconds=seconds))

    def settle(self) -> None:
        """Wait until nothing is in progress. Raises RuntimeError if that does not happen."""
        self._environment.run(self.clock.settle())


class ThreadedEnvironment:
    """A server in a thread, which listens on 127.0.0.1: `with ThreadedEnvironment() as environment`.

    Arguments are those of `Environment`. Every method may be called from any thread, and blocks. It can be started
    again after it was stopped; earlier clients do not work then.
    """

    def __init__(self, *, users: Iterable[User] = (ADMIN,), folder: Path | None = None, **options: Any) -> None:
        self.environment = Environment(users=users, folder=folder, **{**options, "listen": True})
        self._moves_time = bool(options.get("clock"))
        self._new_loop = asyncio.new_event_loop if options.get("clock") else uvloop.new_event_loop
        self._thread: threading.Thread | None = None
        self._ending: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def start(self) -> None:
        """Start the server; it is ready when this returns.

        Raises what `Environment.start` raises; then nothing is left running.
        """
        if self._thread is not None:
            raise RuntimeError("the environment runs already")
        started: list[BaseException | None] = []
        ready = threading.Event()

        def report_start(error: BaseException | None) -> None:
            started.append(error)
            ready.set()

        before = threading.stack_size(_STACK)
        try:
            self._thread = threading.Thread(target=self._run, args=(report_start,), name="steersman", daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(before)
        ready.wait()
        if (error := started[0]) is not None:
            self._thread.join()
            self._thread = None
            raise error

    def stop(self) -> None:
        """Stop the server. Does nothing if it does not run."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        assert self._ending is not None
        loop, end = self._ending
        loop.call_soon_threadsafe(end.set)
        thread.join()
        self._ending = None

    def __enter__(self) -> ThreadedEnvironment:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def faults(self) -> Faults:
        """Faults that happen to requests: `environment.faults.add(...)`. They end when the environment stops."""
        return Faults(self.environment.fault_set, self._call)

    def requests(self, user_agent: str = "") -> Report:
        """Return a report on the requests from now on (`Environment.requests`)."""
        return self._call(lambda: self.environment.requests(user_agent))

    def _call(self, what: Callable[[], T], /) -> T:
        """Call a function on the event loop of the server, and return its result."""

        async def call() -> T:
            return what()

        return self.run(call())

    @property
    def url(self) -> str:
        """URL of the server, `https://127.0.0.1:PORT`. Raises RuntimeError if it does not run."""
        return self.environment.url

    @property
    def ca(self) -> Path:
        """File with the certificate of the authority that signed the server's certificate (PEM).

        Raises RuntimeError.
        """
        return self.environment.ca

    @property
    def thread(self) -> threading.Thread | None:
        """Thread of the server; None while it does not run."""
        return self._thread

    @property
    def has_moved_time(self) -> bool:
        """True if it has a clock that has been moved."""
        return self._moves_time and self.environment.clock.moved > 0

    @property
    def clock(self) -> BlockingClock:
        """Clock that moves time, of an environment created with `clock=True`."""
        return BlockingClock(self)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's event loop, such as a method of `environment`, and return its result.

        Raises what the coroutine raises, and RuntimeError if the server does not run.
        """
        return self._begin(coroutine).result()

    async def run_async(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine as `run` does, but await it from another event loop: `await steersman.run_async(...)`."""
        return await asyncio.wrap_future(self._begin(coroutine))

    def _begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        if self._ending is None:
            coroutine.close()
            raise RuntimeError("the environment does not run: start() it")
        return asyncio.run_coroutine_threadsafe(coroutine, self._ending[0])

    def wait_for(
        self,
        resource: str,
        name: str = "",
        until: Until = "create",
        *,
        namespace: str = "default",
        timeout: float = 10.0,
    ) -> Any:
        """Call `Environment.wait_for` and block; `until` is called in the server's thread."""
        __tracebackhide__ = True  # so that pytest shows the test's own line
        try:
            return self.run(self.environment.wait_for(resource, name, until, namespace=namespace, timeout=timeout))
        except NotReached as error:
            raise NotReached(str(error)) from None

    async def wait_for_async(
        self,
        resource: str,
        name: str = "",
        until: Until = "create",
        *,
        namespace: str = "default",
        timeout: float = 10.0,
    ) -> Any:
        """Await `wait_for` from another event loop."""
        waiting = self.environment.wait_for(resource, name, until, namespace=namespace, timeout=timeout)
        __tracebackhide__ = True
        try:
            return await self.run_async(waiting)
        except NotReached as error:
            raise NotReached(str(error)) from None

    def wait_until(self, what: Callable[[], T], timeout: float = 10.0) -> T:
        """Wait until `what` returns something true, and return it. It is called in this thread, and may block.

        Raises NotReached.
        """
        return blocking_until_true(what, timeout)

    def snapshot(self) -> Snapshot:
        """Return a snapshot of all objects, for `restore`."""

        async def taken() -> Snapshot:
            return self.environment.snapshot()

        return self.run(taken())

    def restore(self, snapshot: Snapshot) -> None:
        """Call `Environment.restore` and block."""
        self.run(self.environment.restore(snapshot))

    def settle(self, timeout: float = 1.0) -> bool:
        """Call `Environment.settle` and block."""
        return self.run(self.environment.settle(timeout))

    def token(self, user: str | User = ADMIN.name) -> str:
        """Return a user's bearer token. Raises KeyError."""
        return self.environment.token(user)

    def kubeconfig(self, user: str | User = ADMIN.name) -> Path:
        """Write a kubeconfig for a user and return its path. Raises KeyError, RuntimeError if it does not run."""
        return self.environment.kubeconfig(user)

    def context(self, user: str | User = ADMIN.name) -> Context:
        """Return what a user's kubeconfig says. Raises KeyError, RuntimeError if it does not run."""
        return self.environment.context(user)

    def client(self, user: str | User = ADMIN.name, timeout: float = 10.0) -> BlockingClient:
        """Return a plain client with a connection of its own; the user "" is anonymous.

        Raises KeyError, RuntimeError.
        """
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        token = self.token(user) if user else ""
        context = ssl.create_default_context(cafile=str(self.ca))
        return BlockingClient((parts.hostname, parts.port), context, timeout, token=token)

    def kubernetes(self, user: str | User = ADMIN.name) -> kubernetes.client.ApiClient:
        """Return a client of the package `kubernetes`, to be closed by the caller.

        Raises ImportError if it is not installed.
        """
        with _needs("kubernetes"):
            from kubernetes import config

        return config.new_client_from_config(str(self.kubeconfig(user)))

    def kr8s(self, user: str | User = ADMIN.name) -> kr8s.Api:
        """Return a blocking client of the package `kr8s`. Raises ImportError if it is not installed."""
        with _needs("kr8s"):
            import kr8s

        return kr8s.api(kubeconfig=str(self.kubeconfig(user)))

    def lightkube(self, user: str | User = ADMIN.name, **arguments: Any) -> lightkube.Client:
        """Return a client of the package `lightkube`; `arguments` are passed on to its `Client`. Raises ImportError."""
        with _needs("lightkube"):
            import lightkube
            from lightkube.config.kubeconfig import KubeConfig

        return lightkube.Client(config=KubeConfig.from_file(self.kubeconfig(user)), **arguments)

    def apply_definitions(self, *paths: str | Path, timeout: float = 10.0) -> None:
        """Apply the CustomResourceDefinitions in files and folders, and wait until they are established.

        Raises NotEstablished, OSError, and ValueError for files that cannot be read or have no definition.
        """
        found = definitions.read(paths)
        with self.client() as client:
            definitions.establish(client, found, timeout)

    def _run(self, report_start: Any) -> None:
        with asyncio.Runner(loop_factory=self._new_loop) as runner:
            runner.run(self._serve(report_start))

    async def _serve(self, report_start: Any) -> None:
        try:
            await self.environment.start()
        except BaseException as error:
            report_start(error)
            return
        end = asyncio.Event()
        self._ending = asyncio.get_running_loop(), end
        report_start(None)
        await end.wait()
        await self.environment.stop()


@contextmanager
def _needs(package: str) -> Iterator[None]:
    """Replace the ImportError of a missing package by one that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        why = f"{package}() makes a client of the package {package}, which is not installed: pip install {package}"
        raise ModuleNotFoundError(why, name=package) from None
