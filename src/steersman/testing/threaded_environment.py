"""A whole API server in this process for tests that block: its event loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import uvloop

from steersman.testing import definitions
from steersman.testing.blocking_client import BlockingClient
from steersman.testing.environment import ADMIN, Environment, User

if TYPE_CHECKING:
    import kr8s
    import kubernetes
    import lightkube

_STACK: Final = 16 << 20
"""Bytes: decoders call themselves for each level of a document; some systems give threads half a MiB."""


class ThreadedEnvironment:
    """A server in a thread, which listens on 127.0.0.1: `with ThreadedEnvironment() as environment`.

    Arguments are those of `Environment`. Every method may be called from any thread, and blocks. It can be started
    again after its end; what its clients are made from, they lose with it.
    """

    def __init__(self, *, users: Iterable[User] = (ADMIN,), folder: Path | None = None, **options: Any) -> None:
        self.environment = Environment(users=users, folder=folder, **{**options, "listen": True})
        self._thread: threading.Thread | None = None
        self._ending: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def start(self) -> None:
        """Starts the server; it is ready then. Raises what `Environment.start` raises; nothing is left running then."""
        if self._thread is not None:
            raise RuntimeError("the environment runs already")
        started: list[BaseException | None] = []
        told = threading.Event()

        def tell(error: BaseException | None) -> None:
            started.append(error)
            told.set()

        before = threading.stack_size(_STACK)
        try:
            self._thread = threading.Thread(target=self._run, args=(tell,), name="steersman", daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(before)
        told.wait()
        if (error := started[0]) is not None:
            self._thread.join()
            self._thread = None
            raise error

    def stop(self) -> None:
        """The orderly end. Does nothing if it does not run."""
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
    def url(self) -> str:
        """`https://127.0.0.1:PORT`. Raises RuntimeError if it does not run."""
        return self.environment.url

    @property
    def ca(self) -> Path:
        """The file with the certificate of the authority that signed the server's (PEM). Raises RuntimeError."""
        return self.environment.ca

    def token(self, user: str = ADMIN.name) -> str:
        """A user's bearer token. Raises KeyError."""
        return self.environment.token(user)

    def kubeconfig(self, user: str = ADMIN.name) -> Path:
        """Writes a kubeconfig for a user. Raises KeyError, RuntimeError if it does not run."""
        return self.environment.kubeconfig(user)

    def client(self, user: str = ADMIN.name, timeout: float = 10.0) -> BlockingClient:
        """A plain client with a connection of its own; the user "" is nobody. Raises KeyError, RuntimeError."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        token = self.token(user) if user else ""
        context = ssl.create_default_context(cafile=str(self.ca))
        return BlockingClient((parts.hostname, parts.port), context, timeout, token=token)

    def kubernetes(self, user: str = ADMIN.name) -> kubernetes.client.ApiClient:
        """A client of the package `kubernetes`, to be closed. Raises ImportError where that is not installed."""
        from kubernetes import config

        return config.new_client_from_config(str(self.kubeconfig(user)))

    def kr8s(self, user: str = ADMIN.name) -> kr8s.Api:
        """A client of the package `kr8s` that blocks. Raises ImportError where that is not installed."""
        import kr8s

        return kr8s.api(kubeconfig=str(self.kubeconfig(user)))

    def lightkube(self, user: str = ADMIN.name, **arguments: Any) -> lightkube.Client:
        """A client of the package `lightkube`, made with further arguments of its `Client`. Raises ImportError."""
        import lightkube
        from lightkube.config.kubeconfig import KubeConfig

        return lightkube.Client(config=KubeConfig.from_file(self.kubeconfig(user)), **arguments)

    def apply_definitions(self, *paths: str | Path, timeout: float = 10.0) -> None:
        """Applies the CustomResourceDefinitions in these files and folders, and waits until they are established.

        Raises NotEstablished, OSError, and ValueError for files that cannot be read or hold none.
        """
        found = definitions.read(paths)
        with self.client() as client:
            definitions.establish(client, found, timeout)

    def _run(self, tell: Any) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(tell))

    async def _serve(self, tell: Any) -> None:
        try:
            await self.environment.start()
        except BaseException as error:
            tell(error)
            return
        end = asyncio.Event()
        self._ending = asyncio.get_running_loop(), end
        tell(None)
        await end.wait()
        await self.environment.stop()
