"""Credentials from the exec plugin of a kubeconfig (client-go's plugin/pkg/client/auth/exec)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from steersman.api.scalars import Time, Wire
from steersman.machinery.codec.configuration import Document, read_document
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.values.times import unix, unix_now
from steersman.net.client.tls import ClientTLS
from steersman.webhooks.kubeconfig_types import ExecPlugin
from steersman.webhooks.user_kubeconfig import ALWAYS, NEVER

SECONDS: Final = 60.0
"""Seconds for a plugin that asks nobody."""
INTERACTIVE_SECONDS: Final = 300.0
"""Seconds for a plugin that may ask a person at the terminal."""
MOST_OUTPUT: Final = 1 << 20
"""Most bytes that a plugin prints."""
_MOST_ERRORS: Final = 2_000
"""Bytes of a plugin's messages in an error."""
_END: Final = 2.0
"""Seconds for a plugin that was killed to be gone."""
_STANDARD_INPUT: Final = 0
_KILLED_BY_SIGNAL: Final = -1
"""Exit code of a process that a signal has ended, in Go."""
_INFO: Final = "KUBERNETES_EXEC_INFO"
_HELP: Final = (
    "It looks like you are trying to use a client-go credential plugin that is not installed. To learn more about this "
    "feature, consult the documentation available at: "
    "https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"
)


class PluginError(OSError):
    """The error for a plugin that gives no credentials; the text is client-go's where it has one."""


class _Status(Wire):
    expiration_timestamp: Time | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(Document):
    spec: Any = None
    status: _Status | None = None


class Credential(Struct, frozen=True, eq=False):
    """Credentials that a plugin printed."""

    token: str
    tls: ClientTLS | None = None
    """TLS configuration with the printed certificate; None without one."""
    expires: float | None = None
    """Time in seconds since 1970; None for never."""

    @property
    def is_valid(self) -> bool:
        """True if they have not expired."""
        return self.expires is None or unix_now() <= self.expires


class ExecCredentials:
    """Credentials of one plugin, kept until they expire or are refused.

    `tls_with` returns the TLS configuration with a client certificate and key. Concurrent requests share one run of the
    plugin.
    """

    def __init__(
        self, plugin: ExecPlugin, tls_with: Callable[[bytes, bytes], ClientTLS], seconds: float | None = None
    ) -> None:
        self._plugin = plugin
        self._tls_with = tls_with
        self._seconds = seconds
        self._credential: Credential | None = None
        self._running = asyncio.Lock()

    async def current(self) -> Credential:
        """Return valid credentials, from a run of the plugin if there are none. Raises PluginError."""
        async with self._running:
            credential = self._credential
            if credential is None or not credential.is_valid:
                credential = self._credential = await self._run()
            return credential

    async def renewed(self, refused: Credential) -> Credential:
        """Return other credentials than those that the server has refused. Raises PluginError."""
        async with self._running:
            credential = self._credential
            if credential is None or credential is refused or not credential.is_valid:
                credential = self._credential = await self._run()
            return credential

    async def _run(self) -> Credential:
        is_interactive = self._is_interactive()
        try:
            printed = await _output(self._plugin, interactive=is_interactive, seconds=self._seconds)
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            hint = f" {self._plugin.install_hint}" if self._plugin.install_hint else ""
            raise PluginError(f"exec: executable {self._plugin.command} not found. {_HELP}{hint}") from None
        return self._credential_in(printed)

    def _is_interactive(self) -> bool:
        mode = self._plugin.interactive_mode
        if mode == NEVER:
            return False
        is_terminal = os.isatty(_STANDARD_INPUT)
        if mode == ALWAYS and not is_terminal:
            raise PluginError("exec plugin cannot support interactive mode: standard input is not a terminal")
        return is_terminal

    def _credential_in(self, printed: bytes) -> Credential:
        """Return the credentials in an ExecCredential. Raises PluginError."""
        configured = self._plugin.api_version
        try:
            read = read_document(printed, _KINDS, strict=False)
        except DecodeError as error:
            raise PluginError(f"decoding stdout: {_without(printed, str(error))}") from None
        if read.api_version != configured:
            raise PluginError(
                f"exec plugin is configured to use API version {configured}, plugin returned version {read.api_version}"
            )
        status = read.status
        if status is None:
            raise PluginError("exec plugin didn't return a status field")
        certificate, key = status.client_certificate_data, status.client_key_data
        if not status.token and not certificate and not key:
            raise PluginError("exec plugin didn't return a token or cert/key pair")
        if bool(certificate) != bool(key):
            raise PluginError("exec plugin returned only certificate or key, not both")
        expires = None if status.expiration_timestamp is None else float(unix(status.expiration_timestamp))
        try:
            tls = self._tls_with(certificate.encode(), key.encode()) if certificate else None
        except ValueError as error:
            raise PluginError(f"failed parsing client key/certificate: {error}") from None
        return Credential(status.token, tls, expires)


_KINDS: Final = {
    (f"client.authentication.k8s.io/{version}", "ExecCredential"): _ExecCredential for version in ("v1", "v1beta1")
}


def _without(printed: bytes, message: str) -> str:
    """Return a message about printed text without the text, which may contain a token."""
    text = printed.decode("utf-8", "replace")
    return message.replace(text, "...") if text else message


async def _output(plugin: ExecPlugin, *, interactive: bool, seconds: float | None) -> bytes:
    """Run a plugin and return what it prints. Raises PluginError, and OSError if it cannot be started.

    A plugin that may ask somebody has the terminal; of any other the messages become part of the error.
    """
    process = await asyncio.create_subprocess_exec(
        plugin.command,
        *plugin.args,
        env={**os.environ, **dict(plugin.variables), _INFO: _info(plugin, interactive=interactive)},
        stdin=None if interactive else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=None if interactive else asyncio.subprocess.PIPE,
        start_new_session=not interactive,
    )
    limit = seconds or (INTERACTIVE_SECONDS if interactive else SECONDS)
    is_over = False
    try:
        async with asyncio.timeout(limit), asyncio.TaskGroup() as group:
            kill = partial(_send_kill, process, group=not interactive)
            printed = group.create_task(_read(process.stdout, MOST_OUTPUT + 1, when_full=kill))
            messages = group.create_task(_read(process.stderr, _MOST_ERRORS))
            group.create_task(process.wait())
        is_over = True
    except TimeoutError:
        raise PluginError(f"exec: executable {plugin.command} gave no credentials within {limit:g} seconds") from None
    finally:
        if not is_over:
            await _kill(process, group=not interactive)
    if len(printed.result()) > MOST_OUTPUT:
        raise PluginError(f"exec: executable {plugin.command} printed more than {MOST_OUTPUT} bytes")
    if code := process.returncode:
        said = messages.result().decode("utf-8", "replace").strip(" \r\n")
        shown = max(code, _KILLED_BY_SIGNAL)
        raise PluginError(
            f"exec: executable {plugin.command} failed with exit code {shown}{f': {said}' if said else ''}"
        )
    return printed.result()


def _info(plugin: ExecPlugin, *, interactive: bool) -> str:
    """Return the ExecCredential that tells a plugin about the request."""
    spec: dict[str, Any] = {"cluster": msgspec.Raw(plugin.cluster)} if plugin.cluster else {}
    spec["interactive"] = interactive
    return encode_in_order({"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}).decode()


async def _read(stream: asyncio.StreamReader | None, most: int, when_full: Callable[[], None] | None = None) -> bytes:
    """Return the first `most` bytes of a stream, and call `when_full` after them; the rest is read and dropped."""
    kept = b""
    while stream is not None and (data := await stream.read(64 << 10)):
        had, kept = len(kept), kept + data[: most - len(kept)]
        if when_full is not None and had < most == len(kept):
            when_full()
    return kept


def _send_kill(process: asyncio.subprocess.Process, *, group: bool) -> None:
    """Kill a plugin, with `group` also the processes that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


async def _kill(process: asyncio.subprocess.Process, *, group: bool) -> None:
    """Kill a plugin, and wait for its end."""
    _send_kill(process, group=group)
    with suppress(TimeoutError):
        async with asyncio.timeout(_END):
            await process.wait()
