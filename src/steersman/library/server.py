"""`Server`: a complete API server of declared resources, standalone on storage of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from steersman.controlplane.addresses import advertised_address, listen, reachable_address
from steersman.controlplane.data_folder import certificate_files, make_data_folder, open_storage
from steersman.controlplane.given_files import serving_tls
from steersman.controlplane.options import Options
from steersman.library.declaration import Declaration, declaration_of
from steersman.library.parts import Parts
from steersman.machinery.large_work import nesting
from steersman.machinery.private_files import write_whole
from steersman.net.message import Handler
from steersman.server.certificates import CertificateFiles, admin_kubeconfig
from steersman.server.server import Server as _GenericServer


class Server:
    """An API server of the resources that these classes declare: `Server(Flunder, Fischer).run()`.

    It serves them with discovery, OpenAPI, watch, server-side apply and RBAC, beside namespaces and what RBAC needs.

    Its objects, certificates and `admin.kubeconfig` are in `data_dir`, by default
    `$XDG_STATE_HOME/steersman/GROUP` (`~/.local/state/...`). `storage` is "sqlite" or "memory". Port 0 is any that is
    free. Users have a client certificate of the authority in `client_ca_file`, or a token of `token_auth_file`, which
    has the form of kube-apiserver's. Without `listen` there is no socket: requests go to `handler`.
    """

    def __init__(
        self, *resources: type[Any], data_dir: Path | str | None = None, storage: str = "sqlite",
        bind_address: str = "127.0.0.1", secure_port: int = 6443, client_ca_file: str = "", token_auth_file: str = "",
        authorization_mode: tuple[str, ...] = ("RBAC",), listen: bool = True,
    ) -> None:  # fmt: skip
        """Raises TypeError for a class that is not declared, ValueError for two that would be served as the same."""
        self._declarations = [declaration_of(each) for each in resources]
        _check_distinct(self._declarations)
        folder = Path(data_dir) if data_dir is not None else _default_folder(self._declarations)
        self._options = Options(
            data_dir=folder, storage=storage, bind_address=bind_address, secure_port=secure_port,
            client_ca_file=client_ca_file, token_auth_file=token_auth_file, authorization_mode=authorization_mode,
            listen=listen,
        )  # fmt: skip
        self._running = AsyncExitStack()
        self._server: _GenericServer | None = None

    @property
    def url(self) -> str:
        """`https://127.0.0.1:PORT`. Raises RuntimeError if it does not run."""
        port = self._started().external_address.port
        return f"https://{reachable_address(self._options.bind_address)}:{port}"

    @property
    def kubeconfig(self) -> Path:
        """The file by which its administrator reaches it; it is written when the server starts."""
        return self._options.data_dir / "admin.kubeconfig"

    @property
    def handler(self) -> Handler:
        """The whole server as a handler of HTTP requests. Raises RuntimeError if it does not run."""
        return self._started().handler

    async def start(self) -> None:
        """Serves from now on.

        Raises RuntimeError if it runs already, ValueError (OptionsError, DefinitionError) for what cannot be served,
        OSError, and the storage's errors; nothing is left running then.
        """
        if self._server is not None:
            raise RuntimeError("the server runs already")
        nesting.make_room()
        async with AsyncExitStack() as running:
            self._server = await self._start(running)
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

    def run(self) -> None:
        """Serves until SIGINT or SIGTERM, and prints where once it is ready. Raises what `start` raises."""
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, stop.set)
        async with self:
            print(f"ready url={self.url} kubeconfig={self.kubeconfig}", flush=True)
            await stop.wait()

    async def _start(self, running: AsyncExitStack) -> _GenericServer:
        options = self._options
        make_data_folder(options)
        storage = await open_storage(options)
        running.push_async_callback(storage.close)
        files = certificate_files(options, advertised_address(options.bind_address))
        parts = Parts(options, storage, self._declarations, running)
        server = await parts.start(serving_tls(options, files), files)
        if options.listen:
            await listen(server, options)
        await server.run_post_start_hooks()
        if options.listen:
            self._write_kubeconfig(server, files)
        return server

    def _write_kubeconfig(self, server: _GenericServer, files: CertificateFiles) -> None:
        url = f"https://{reachable_address(self._options.bind_address)}:{server.external_address.port}"
        write_whole(self.kubeconfig, admin_kubeconfig(url, files))

    def _started(self) -> _GenericServer:
        if self._server is None:
            raise RuntimeError("the server does not run: await its start()")
        return self._server


def _check_distinct(declarations: list[Declaration]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for each in declarations:
        for name in (each.plural, each.singular, *each.short_names):
            other = seen.setdefault((each.group, name), each.kind)
            if other != each.kind:
                raise ValueError(f"{each.kind} and {other} of {each.group} are both called {name}")


def _default_folder(declarations: list[Declaration]) -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    folder = (Path(base) if base else Path.home() / ".local" / "state") / "steersman"
    return folder / declarations[0].group if declarations else folder / "library"
