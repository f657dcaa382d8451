"""`Server`: a complete API server of declared resources, standalone on storage of its own."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from steersman.library.aggregation import Aggregation, manifests
from steersman.library.declaration import Declaration, declaration_of
from steersman.library.definition_error import DefinitionError
from steersman.library.models import Plain
from steersman.machinery.suggestions import not_allowed_message
from steersman.work.no_collections import no_collections

if TYPE_CHECKING:  # a start imports them, with no collections of garbage between
    from steersman.library.client import ObjectsClient
    from steersman.library.parts import RunningServer
    from steersman.net.message import Handler

T = TypeVar("T")

_MODES: Final = ("RBAC", "AlwaysAllow", "AlwaysDeny")
_STORAGES: Final = ("sqlite", "memory")
_LAST_PORT: Final = 65535


class Server:
    """An API server of the resources that these classes declare: `Server(Flunder, Fischer).run()`.

    It serves them with discovery, OpenAPI, watch, server-side apply and RBAC, beside namespaces and what RBAC needs.
    With an `aggregation` it is behind a Kubernetes instead, which has all of these, and serves its own resources alone.

    Its objects, certificates and `admin.kubeconfig` are in `data_dir`, by default
    `$XDG_STATE_HOME/steersman/GROUP` (`~/.local/state/...`). `storage` is "sqlite" or "memory". Port 0 is any that is
    free. Users have a client certificate of the authority in `client_ca_file`, or a token of `token_auth_file`, which
    has the form of kube-apiserver's; behind a Kubernetes that says who users are. It listens on `bind_address`, by
    default 127.0.0.1, behind a Kubernetes every address. Without `listen` there is no socket: requests go to `handler`.
    """

    def __init__(
        self,
        *resources: type[Any],
        data_dir: Path | str | None = None,
        storage: str = "sqlite",
        bind_address: str = "",
        secure_port: int = 6443,
        client_ca_file: str = "",
        token_auth_file: str = "",
        authorization_mode: tuple[str, ...] = ("RBAC",),
        listen: bool = True,
        aggregation: Aggregation | None = None,
    ) -> None:
        """Raises DefinitionError for a class that is not declared, and for two that would be served as the same,
        ValueError for a storage, a port or modes of authorization that there are not, and for users or rights of its
        own beside those of a cluster."""
        _check_modes(authorization_mode)
        if storage not in _STORAGES:
            raise ValueError(f"storage: {not_allowed_message(storage, _STORAGES)}")
        if isinstance(secure_port, bool) or not isinstance(secure_port, int) or not 0 <= secure_port <= _LAST_PORT:
            raise ValueError(f"secure_port is a number from 0, any free port, to {_LAST_PORT}, not {secure_port!r}")
        if aggregation is not None and (client_ca_file or token_auth_file or authorization_mode != ("RBAC",)):
            raise ValueError("the cluster says who the users of an aggregated server are, and what they may do")
        self._declarations = [declaration_of(each) for each in resources]
        _check_distinct(self._declarations)
        folder = Path(os.path.abspath(data_dir)) if data_dir is not None else _default_folder(self._declarations)
        self._folder = folder
        self._aggregation = aggregation
        self._options: dict[str, Any] = {
            "data_dir": folder,
            "storage": storage,
            "secure_port": secure_port,
            "bind_address": bind_address or ("127.0.0.1" if aggregation is None else "0.0.0.0"),
            "client_ca_file": client_ca_file,
            "token_auth_file": token_auth_file,
            "authorization_mode": authorization_mode,
            "listen": listen,
        }
        self._running = AsyncExitStack()
        self._server: RunningServer | None = None

    @property
    def url(self) -> str:
        """`https://127.0.0.1:PORT`. Raises RuntimeError if it does not run."""
        return self._started().url

    @property
    def kubeconfig(self) -> Path:
        """The file by which its administrator reaches it, written when the server starts. There is none behind a
        cluster, whose users it has."""
        return self._folder / "admin.kubeconfig"

    @property
    def handler(self) -> Handler:
        """The whole server as a handler of HTTP requests. Raises RuntimeError if it does not run."""
        return self._started().handler

    async def start(self) -> None:
        """Serves from now on.

        Raises RuntimeError if it runs already, ValueError (OptionsError, DefinitionError) for what cannot be served,
        OSError (ClusterError for a cluster that does not let it work), and the storage's errors; nothing is left
        running then.
        """
        if self._server is not None:
            raise RuntimeError("the server runs already")
        with no_collections():
            from steersman.library.parts import start_server

        async with AsyncExitStack() as running:
            self._server = await start_server(
                self._options, self._declarations, self._aggregation, self.kubeconfig, running
            )
            self._running = running.pop_all()

    async def stop(self) -> None:
        """The orderly end: requests under way are answered, watches end; what was acknowledged is on disk."""
        self._server = None
        await self._running.aclose()

    async def __aenter__(self) -> Server:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def objects(self, model: type[T]) -> ObjectsClient[T]:
        """Typed access to the objects of one of its classes: get, list, watch, create, update, apply, delete.

        Raises RuntimeError if it does not run, TypeError for a class that is not declared, or has no metadata.
        """
        from steersman.client.in_process import InProcessTransport
        from steersman.library.client import ObjectsClient

        started = self._started()
        return ObjectsClient(InProcessTransport(started.handler, started.token), model)

    def manifests(self) -> list[Plain]:
        """The objects that register the server with the cluster that it is behind, for `kubectl apply`: an APIService
        for each group version, and what leads to it if it is outside of the cluster.

        They have the server's authority, which is made in `data_dir` unless it is there. Raises RuntimeError for a
        server that is behind none, OptionsError (ValueError), OSError.
        """
        from steersman.controlplane.data_folder import make_data_folder
        from steersman.controlplane.options import Options
        from steersman.library.parts import own_files

        if self._aggregation is None:
            raise RuntimeError("the server is behind no cluster")
        options = Options(**self._options)
        make_data_folder(options)
        authority = own_files(options, self._aggregation).ca.read_bytes()
        port = options.secure_port if self._server is None else self._server.server.external_address.port
        return list(manifests(self._aggregation, self._declarations, authority, port))

    async def register(self) -> None:
        """Registers the server with the cluster that it is behind: applies its `manifests`. Raises what they raise, and
        ClusterError."""
        from steersman.library.parts import register

        objects = self.manifests()
        assert self._aggregation is not None
        await register(self._aggregation, objects)

    def run(self) -> None:
        """Serves until SIGINT or SIGTERM, and prints where once it is ready.

        Ends the program with 1, after one line that says why, if it cannot start, where `start` raises an error.
        """
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, stop.set)
        with no_collections():
            await self._start_or_exit()
        try:
            # what the start has made stays: no collection needs to walk it
            gc.freeze()
            where = "" if self._aggregation is not None else f" kubeconfig={self.kubeconfig}"
            print(f"ready url={self.url}{where}", flush=True)
            await stop.wait()
        finally:
            await self.stop()

    async def _start_or_exit(self) -> None:
        """Raises SystemExit for what the user of the program can mend: a port, a folder, a cluster."""
        from steersman.controlplane.options import OptionsError
        from steersman.storage.interface import StorageFormatError, StorageLocked, StorageUnavailable

        try:
            await self.start()
        except (OptionsError, DefinitionError, OSError, StorageFormatError, StorageLocked, StorageUnavailable) as error:
            why = " ".join(str(error).split())
            for name in self._options:
                why = why.replace(f"--{name.replace('_', '-')}", name)
            raise SystemExit(f"steersman: {why}") from None

    def _started(self) -> RunningServer:
        if self._server is None:
            raise RuntimeError("the server does not run: await its start()")
        return self._server


def _check_modes(modes: object) -> None:
    if isinstance(modes, str) or not isinstance(modes, tuple | list):
        raise ValueError(f"authorization_mode is a tuple of {', '.join(_MODES)}, not {modes!r}")
    for each in modes:
        if each not in _MODES:
            raise ValueError(f"authorization_mode has a mode that there is not: {not_allowed_message(each, _MODES)}")


def _check_distinct(declarations: list[Declaration]) -> None:
    kinds: dict[tuple[str, str], type[Any]] = {}
    for each in declarations:
        model = each.stored.model
        first = kinds.setdefault((each.group, each.kind), model)
        if first is not model:
            both = f"{first.__qualname__} and {model.__qualname__}"
            raise DefinitionError(f"{both} are both of the kind {each.kind} of {each.group}")
    seen: dict[tuple[str, str], str] = {}
    for each in declarations:
        for name in (each.plural, each.singular, *each.short_names):
            other = seen.setdefault((each.group, name), each.kind)
            if other != each.kind:
                raise DefinitionError(f"{each.kind} and {other} of {each.group} are both called {name}")


def _default_folder(declarations: list[Declaration]) -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    folder = (Path(base) if base else Path.home() / ".local" / "state") / "steersman"
    return folder / declarations[0].group if declarations else folder / "library"
