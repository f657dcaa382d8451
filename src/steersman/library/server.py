"""`Server`: a complete API server of declared resources, standalone or behind a Kubernetes cluster."""

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

if TYPE_CHECKING:  # `start` imports these, with garbage collection paused
    from steersman.library.client import ObjectsClient
    from steersman.library.parts import RunningServer
    from steersman.net.message import Handler

T = TypeVar("T")

_MODES: Final = ("RBAC", "AlwaysAllow", "AlwaysDeny")
_STORAGES: Final = ("sqlite", "memory")
_LAST_PORT: Final = 65535


class Server:
    """An API server of the resources that these classes declare: `Server(Flunder, Fischer).run()`.

    It serves them with discovery, OpenAPI, watch, server-side apply and RBAC, together with namespaces and the
    resources of RBAC. With an `aggregation` it is behind a Kubernetes cluster, which has all of these, and serves only
    its own resources.

    Its objects, certificates and `admin.kubeconfig` are in `data_dir`, by default `$XDG_STATE_HOME/steersman/GROUP`
    (`~/.local/state/...`). `storage` is "sqlite" or "memory". Port 0 stands for any free port. Users have a client
    certificate of the authority in `client_ca_file`, or a token of `token_auth_file`, which has kube-apiserver's
    format; behind a cluster, the cluster authenticates users. The server listens on `bind_address`, by default on
    127.0.0.1, and behind a cluster on every address. Without `listen` it has no socket, and requests go to `handler`.
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
        """Create the server, which is not started yet.

        Raises DefinitionError for a class that is not declared, and for two classes with the same names. Raises
        ValueError for an unknown storage or authorization mode, an invalid port, and for users or modes together with
        an `aggregation`.
        """
        _check_modes(authorization_mode)
        if storage not in _STORAGES:
            raise ValueError(f"storage: {not_allowed_message(storage, _STORAGES)}")
        if isinstance(secure_port, bool) or not isinstance(secure_port, int) or not 0 <= secure_port <= _LAST_PORT:
            raise ValueError(f"secure_port is a number from 0, any free port, to {_LAST_PORT}, not {secure_port!r}")
        if aggregation is not None and (client_ca_file or token_auth_file or authorization_mode != ("RBAC",)):
            raise ValueError("an aggregated server authenticates and authorizes users through the cluster")
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
        """The URL, `https://127.0.0.1:PORT`. Raises RuntimeError if the server does not run."""
        return self._started().url

    @property
    def kubeconfig(self) -> Path:
        """The path of the administrator's kubeconfig, written when the server starts.

        An aggregated server has none, as its users are those of the cluster.
        """
        return self._folder / "admin.kubeconfig"

    @property
    def handler(self) -> Handler:
        """The whole server as a handler of HTTP requests. Raises RuntimeError if the server does not run."""
        return self._started().handler

    async def start(self) -> None:
        """Start serving.

        Raises RuntimeError if it runs already, ValueError (OptionsError, DefinitionError) for anything that cannot be
        served, OSError (ClusterError for a cluster that does not let it work), and the storage's errors. Nothing is
        left running after an error.
        """
        if self._server is not None:
            raise RuntimeError("the server is already running")
        with no_collections():
            from steersman.library.parts import start_server

        async with AsyncExitStack() as running:
            self._server = await start_server(
                self._options, self._declarations, self._aggregation, self.kubeconfig, running
            )
            self._running = running.pop_all()

    async def stop(self) -> None:
        """Stop in order: requests in progress are answered, watches end, and acknowledged writes are on disk."""
        self._server = None
        await self._running.aclose()

    async def __aenter__(self) -> Server:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def objects(self, model: type[T]) -> ObjectsClient[T]:
        """Return typed access to the objects of a class: get, list, watch, create, update, apply, delete.

        Raises RuntimeError if the server does not run, TypeError for a class that is not declared, or has no metadata.
        """
        from steersman.client.in_process import InProcessTransport
        from steersman.library.client import ObjectsClient

        started = self._started()
        return ObjectsClient(InProcessTransport(started.handler, started.token), model)

    def manifests(self) -> list[Plain]:
        """Return the objects that register the server with its cluster, for `kubectl apply`.

        They are an APIService for each group version and, for a server outside of the cluster, its Service. They
        contain the server's CA certificate, which is created in `data_dir` if it does not exist. Raises RuntimeError
        for a server that is not aggregated, OptionsError (ValueError), OSError.
        """
        from steersman.controlplane.data_folder import make_data_folder
        from steersman.controlplane.options import Options
        from steersman.library.parts import own_files

        if self._aggregation is None:
            raise RuntimeError("the server is not aggregated: it has no cluster")
        options = Options(**self._options)
        make_data_folder(options)
        authority = own_files(options, self._aggregation).ca.read_bytes()
        port = options.secure_port if self._server is None else self._server.server.external_address.port
        return list(manifests(self._aggregation, self._declarations, authority, port))

    async def register(self) -> None:
        """Register the server with its cluster by applying its `manifests`. Raises what `manifests` raises, and
        ClusterError.
        """
        from steersman.library.parts import register

        objects = self.manifests()
        assert self._aggregation is not None
        await register(self._aggregation, objects)

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM, and print the address once the server is ready.

        If the server cannot start because of one of the errors of `start`, end the program with status 1 and one line
        that says why.
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
            # Objects of the start live on, so garbage collections need not walk them.
            gc.freeze()
            where = "" if self._aggregation is not None else f" kubeconfig={self.kubeconfig}"
            print(f"ready url={self.url}{where}", flush=True)
            await stop.wait()
        finally:
            await self.stop()

    async def _start_or_exit(self) -> None:
        """Start, and raise SystemExit for an error that the program's user can fix: a port, a folder, a cluster."""
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
            raise RuntimeError("the server is not running: await its start()")
        return self._server


def _check_modes(modes: object) -> None:
    if isinstance(modes, str) or not isinstance(modes, tuple | list):
        raise ValueError(f"authorization_mode is a tuple of {', '.join(_MODES)}, not {modes!r}")
    for each in modes:
        if each not in _MODES:
            raise ValueError(f"authorization_mode has an unknown mode: {not_allowed_message(each, _MODES)}")


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
