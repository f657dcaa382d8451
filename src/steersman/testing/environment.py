"""A whole API server in this process, started for a test and ended after it (controller-runtime's envtest)."""

from __future__ import annotations

import base64
import csv
import io
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from steersman.controlplane.options import Options
from steersman.machinery.private_files import make_private_folder, write_whole
from steersman.machinery.suggestions import did_you_mean
from steersman.testing import imported, throw_away_keys
from steersman.testing.client import Client, Tokens, token_of
from steersman.testing.clock import Clock
from steersman.testing.journal import Journal
from steersman.testing.users import ADMIN, UnknownUser, User
from steersman.testing.waiting import Until, Wait, events_about, report, until_true

if TYPE_CHECKING:  # imported with the first server that starts
    from steersman.cluster.cluster import Cluster
    from steersman.controlplane.addresses import Address
    from steersman.controlplane.control_plane import ControlPlane
    from steersman.storage.memory import Snapshot

_PROGRAM: Final = ("steersman.controlplane.control_plane", "steersman.server.profiling")
"""Modules of a server, without those that it imports when it needs them."""

_DEFAULTS: Final[dict[str, Any]] = {"storage": "memory", "listen": False}
_ALONE: Final[dict[str, Any]] = {"disable_admission_plugins": ("ServiceAccount",)}
"""As nobody gives namespaces their service account."""
_WITH_CONTROLLERS: Final[dict[str, Any]] = {"allow_privileged": True, "controllers": ("*",)}
_TESTING: Final = User("steersman:testing", ("system:masters",))
_PATIENCE: Final = 10.0
"""Seconds that a cluster has until it rests, at its start."""
_WHERE_IT_LISTENS: Final[dict[str, Any]] = {"bind_address": "127.0.0.1", "secure_port": 0}


def _checked_user(user: User) -> User:
    """Return the user. Raises TypeError for what is none, such as a name alone."""
    if not isinstance(user, User):
        raise TypeError(f"users: {user!r} is no User: User({user!r}, groups=(...)) is one")
    return user


class Environment:
    """A server in this process, on the event loop that `start` runs on: `async with Environment() as environment`.

    `options` are fields of `steersman.controlplane.options.Options`, named as the flags of `steersman serve` are. By
    default storage is in memory; there is no socket, or with `listen=True` one on 127.0.0.1 and a free port; and, as in
    envtest, pods can be made though nobody gives namespaces their service account.

    With `controllers` there are those of kube-controller-manager too, and with `nodes` a scheduler and so many
    simulated nodes as well, on which pods run; then pods have service accounts. With `clock` the environment has a
    clock that the test moves (`clock.advance`), on a loop of asyncio's own.

    Keys and files are in `folder`, which is made if there is none; without one they are in a temporary folder that goes
    at the end. An environment can be started again after its end; with storage="sqlite" and a folder its objects are
    still there. To start one takes some 0.1 s, the first one on a folder longer as keys are made.
    """

    def __init__(
        self,
        *,
        users: Iterable[User] = (ADMIN,),
        folder: Path | None = None,
        controllers: bool = False,
        nodes: int = 0,
        clock: bool = False,
        **options: Any,
    ) -> None:
        self.users = {user.name: user for user in map(_checked_user, users)}
        if not isinstance(nodes, int):
            raise TypeError(f"nodes: {nodes!r} is no whole number")
        self._tokens: Tokens = {user.name: user.token or secrets.token_urlsafe() for user in self.users.values()}
        self._given_folder = folder
        self._options = options
        self._controllers = controllers or nodes > 0
        self._nodes = nodes
        self._moves_time = clock
        self._clock: Clock | None = None
        self.journal = Journal()
        """The last requests of users."""
        self._temporary: TemporaryDirectory[str] | None = None
        self._cluster: Cluster | None = None
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
            keeps_little = {**_DEFAULTS, **self._options}["storage"] == "memory"
            self._temporary = throw_away_keys.temporary_folder(small=keeps_little)
            folder = Path(self._temporary.name)
        try:
            make_private_folder(folder)
            self._clock = Clock() if self._moves_time else None
            self._running = await self._start(self._options_in(folder))
            if self._temporary is not None:
                throw_away_keys.keep(self._temporary.name)
        except BaseException:
            self._end_clock()
            self._remove_temporary()
            raise

    def _options_in(self, folder: Path) -> Options:
        tokens = self._write_tokens(folder / "tokens.csv")
        if unknown := sorted(self._options.keys() - {each.name for each in fields(Options)}):
            known = (
                "crds",
                "users",
                "controllers",
                "nodes",
                "clock",
                "folder",
                *(each.name for each in fields(Options)),
            )
            meant = did_you_mean(unknown[0], known)
            raise TypeError(f"{unknown[0]!r} is no argument of Environment, and no flag of `steersman serve`{meant}")
        options = {**_DEFAULTS, **(_WITH_CONTROLLERS if self._controllers else _ALONE), **self._options}
        if options["listen"]:
            options = {**_WHERE_IT_LISTENS, **options}
        return Options(data_dir=folder, token_auth_file=str(tokens), **options)

    async def _start(self, options: Options) -> tuple[ControlPlane, Address]:
        for each in _PROGRAM:
            imported(each)
        if not self._controllers:
            from steersman.controlplane.control_plane import ControlPlane

            plane = ControlPlane(options, observe=self.journal.note)
            return plane, await plane.start()
        from steersman.cluster.cluster import Cluster
        from steersman.cluster.configuration import Configuration, NodeGroup

        nodes = NodeGroup(count=self._nodes)
        configuration = Configuration((nodes,), schedules=self._nodes > 0)
        cluster = Cluster(options, configuration, observe=self.journal.note)
        address = await cluster.start()
        self._cluster = cluster
        await cluster.settle(_PATIENCE)
        return cluster.plane, address

    async def stop(self) -> None:
        """The orderly end: requests under way are answered, watches end. Does nothing if it does not run."""
        if self._running is None:
            return
        plane, self._running = self._running[0], None
        cluster, self._cluster = self._cluster, None
        for user in [each for each in self._tokens if isinstance(each, User)]:
            del self._tokens[user]
        try:
            await (cluster or plane).stop()
        finally:
            self._end_clock()
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

    @property
    def clock(self) -> Clock:
        """The clock that moves the time of the server, and of all who work on it. Raises RuntimeError without one."""
        if self._clock is None:
            raise RuntimeError("the environment has no clock: make it with clock=True, and start it")
        return self._clock

    def snapshot(self) -> Snapshot:
        """All objects there are now, to be brought back by `restore`. Raises TypeError if they are not in memory."""
        return self.plane.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Makes the objects what they were, in this environment, with their uids; their resourceVersions are new.

        Clients that watch see what changes by it. It returns when controllers have seen it too, and rest. Time stays as
        it is, if a clock has moved it. Raises TypeError.
        """
        plane, _ = self._started()
        await (self._cluster or plane).restore(snapshot)

    async def settle(self, timeout: float = 1.0) -> bool:
        """Waits until controllers, scheduler and nodes have nothing to do at present, at most some seconds; whether
        that came."""
        return self._cluster is None or await self._cluster.settle(timeout)

    async def renew(self, snapshot: Snapshot) -> None:
        """Closes all connections, restores a snapshot, forgets what was before, and listens on another port: whoever
        asked it until now, asks it no more. Raises TypeError, OptionsError."""
        plane, address = self._started()
        await plane.stop_listening()
        await self.restore(snapshot)
        assert plane.storage is not None
        await plane.storage.compact(plane.storage.revision)
        if plane.options.listen:
            address = await plane.listen_anew()
        self._running = plane, address
        self.journal.clear()

    async def wait_for(
        self,
        resource: str,
        name: str = "",
        until: Until = "create",
        *,
        namespace: str = "default",
        timeout: float = 10.0,
    ) -> Any:
        """Waits until an object, or with name "" the list of them, is as it should be, and gives it.

        `resource` is named as for kubectl (`deploy`, `pods`, `widgets.example.com`); `until` is `create`, `delete`,
        `condition=TYPE[=STATUS]`, or is called with the object or the list, as plain data. Raises NotReached, whose
        text tells the last state and the events about it, after `timeout` seconds of real time; ValueError.
        """
        return await Wait(self.client(_TESTING), resource, name, until, namespace).done(timeout)

    async def wait_until(self, what: Callable[[], object | Awaitable[object]], timeout: float = 10.0) -> object:
        """Waits until what a callable gives, or what that is awaited for, is true, and gives it. Raises NotReached."""
        return await until_true(what, timeout)

    async def report(self) -> str:
        """The last requests of users, and the last events: what the report of a failed test has."""
        return report(self.journal.lines(), await events_about(self.client(_TESTING), ""))

    def client(self, user: str | User = ADMIN.name) -> Client:
        """A client without a socket, for the loop that the server runs on; the user "" is nobody, and a `User` may be
        anybody.

        Raises KeyError for a user that is not one of `users`, RuntimeError if it does not run.
        """
        return Client(self.plane, self._tokens, user)

    def token(self, user: str | User = ADMIN.name) -> str:
        """A user's bearer token. Raises KeyError for a name that is not one of `users`, RuntimeError."""
        if isinstance(user, User):
            return token_of(self.plane, self._tokens, user)
        if user not in self._tokens:
            raise UnknownUser(user, [each for each in self._tokens if isinstance(each, str)])
        return self._tokens[user]

    def kubeconfig(self, user: str | User = ADMIN.name) -> Path:
        """Writes `user-NAME.kubeconfig` in the folder, with all that a client of any language needs inside.

        Only its owner can read it. Raises KeyError for a user that is not one of `users`, RuntimeError if the server
        does not listen.
        """
        address = self._address()
        cluster = {
            "server": address.url,
            "certificate-authority-data": base64.b64encode(address.ca.read_bytes()).decode(),
        }
        name = user.name if isinstance(user, User) else user
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "steersman", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": self.token(user)}}],
            "contexts": [{"name": "steersman", "context": {"cluster": "steersman", "user": name}}],
            "current-context": "steersman",
        }
        path = self.plane.options.data_dir / f"user-{name.replace('/', '-')}.kubeconfig"
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

    def _end_clock(self) -> None:
        clock, self._clock = self._clock, None
        if clock is not None:
            clock.close()
