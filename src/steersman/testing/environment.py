"""A whole API server in this process, started for a test and ended after it (controller-runtime's envtest)."""

from __future__ import annotations

import base64
import csv
import io
import json
import secrets
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steersman.controlplane.control_plane import Address, ControlPlane
from steersman.controlplane.options import Options
from steersman.machinery.private_files import make_private_folder, write_whole
from steersman.server import profiling as _profiling  # noqa: F401 - with the rest, before pytest looks at modules
from steersman.testing.client import Client


@dataclass(frozen=True, slots=True)
class User:
    """Somebody whom the server knows by a bearer token; without a token of its own, by one that is made at random."""

    name: str
    groups: tuple[str, ...] = ()
    token: str = ""


ADMIN: Final = User("admin", ("system:masters",))
"""May do everything."""

_DEFAULTS: Final[dict[str, Any]] = {
    "storage": "memory", "listen": False, "disable_admission_plugins": ("ServiceAccount",)
}  # fmt: skip
_WHERE_IT_LISTENS: Final[dict[str, Any]] = {"bind_address": "127.0.0.1", "secure_port": 0}


class Environment:
    """A server in this process, on the event loop that `start` runs on: `async with Environment() as environment`.

    `options` are fields of `steersman.controlplane.options.Options`, named as the flags of `steersman serve` are. By
    default storage is in memory; there is no socket, or with `listen=True` one on 127.0.0.1 and a free port; and, as in
    envtest, pods can be made though nobody gives namespaces their service account.

    Keys and files are in `folder`, which is made if there is none; without one they are in a temporary folder that goes
    at the end. An environment can be started again after its end; with storage="sqlite" and a folder its objects are
    still there. To start one takes some 0.1 s, the first one on a folder longer as keys are made.
    """

    def __init__(self, *, users: Iterable[User] = (ADMIN,), folder: Path | None = None, **options: Any) -> None:
        self.users = {user.name: user for user in users}
        self._tokens = {user.name: user.token or secrets.token_urlsafe() for user in self.users.values()}
        self._given_folder = folder
        self._options = options
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._running: tuple[ControlPlane, Address] | None = None

    async def start(self) -> None:
        """Starts the server; it is ready then.

        Raises OptionsError and TypeError for options that cannot be, OSError, errors of storage, and RuntimeError if it
        runs already. Nothing is left running or lying about then.
        """
        if self._running is not None:
            raise RuntimeError("the environment runs already")
        folder = self._given_folder
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="steersman-")
            folder = Path(self._temporary.name)
        try:
            make_private_folder(folder)
            tokens = self._write_tokens(folder / "tokens.csv")
            options = {**_DEFAULTS, **self._options}
            if options["listen"]:
                options = {**_WHERE_IT_LISTENS, **options}
            plane = ControlPlane(Options(data_dir=folder, token_auth_file=str(tokens), **options))
            self._running = plane, await plane.start()
        except BaseException:
            self._remove_temporary()
            raise

    async def stop(self) -> None:
        """The orderly end: requests under way are answered, watches end. Does nothing if it does not run."""
        if self._running is None:
            return
        plane, self._running = self._running[0], None
        try:
            await plane.stop()
        finally:
            self._remove_temporary()

    async def __aenter__(self) -> Environment:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def plane(self) -> ControlPlane:
        """The control plane: its server, catalogue and stores. Raises RuntimeError if it does not run."""
        return self._started()[0]

    @property
    def url(self) -> str:
        """`https://127.0.0.1:PORT`. Raises RuntimeError if it does not listen."""
        return self._address().url

    @property
    def ca(self) -> Path:
        """The file with the certificate of the authority that signed the server's (PEM). Raises RuntimeError."""
        return self._address().ca

    def client(self, user: str = ADMIN.name) -> Client:
        """A client without a socket, for the loop that the server runs on; the user "" is nobody.

        Raises KeyError for a user that is not one of `users`, RuntimeError if it does not run.
        """
        return Client(self.plane, self._tokens, user)

    def token(self, user: str = ADMIN.name) -> str:
        """A user's bearer token. Raises KeyError."""
        return self._tokens[user]

    def kubeconfig(self, user: str = ADMIN.name) -> Path:
        """Writes `user-NAME.kubeconfig` in the folder, with all that a client of any language needs inside.

        Only its owner can read it. Raises KeyError for a user that is not one of `users`, RuntimeError if the server
        does not listen.
        """
        address = self._address()
        cluster = {
            "server": address.url,
            "certificate-authority-data": base64.b64encode(address.ca.read_bytes()).decode(),
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "steersman", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.token(user)}}],
            "contexts": [{"name": "steersman", "context": {"cluster": "steersman", "user": user}}],
            "current-context": "steersman",
        }
        path = self.plane.options.data_dir / f"user-{user.replace('/', '-')}.kubeconfig"
        write_whole(path, json.dumps(content, indent=2).encode() + b"\n")
        return path

    def _started(self) -> tuple[ControlPlane, Address]:
        if self._running is None:
            raise RuntimeError("the environment does not run: await its start()")
        return self._running

    def _address(self) -> Address:
        plane, address = self._started()
        if not plane.options.listen:
            raise RuntimeError("the environment does not listen: make it with listen=True")
        return address

    def _write_tokens(self, path: Path) -> Path:
        """The users in the form of --token-auth-file."""
        text = io.StringIO()
        rows = ((self._tokens[user.name], user.name, user.name, ",".join(user.groups)) for user in self.users.values())
        csv.writer(text, lineterminator="\n").writerows(rows)
        content = text.getvalue().encode()
        if not path.exists() or path.read_bytes() != content:
            write_whole(path, content)
        return path

    def _remove_temporary(self) -> None:
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            temporary.cleanup()
