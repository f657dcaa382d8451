"""A whole API server in this process, started for a test and stopped after it (as controller-runtime's envtest)."""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from steersman.controlplane.options import Options
from steersman.faults.fault_set import FaultSet
from steersman.machinery.private_files import make_private_folder, write_whole
from steersman.machinery.suggestions import did_you_mean
from steersman.report.recording import Recording, recording_of_environment
from steersman.report.report import Report
from steersman.report.tally import Tally
from steersman.server.kubeconfigs import Context, kubeconfig
from steersman.testing import imported, throw_away_keys
from steersman.testing.client import Client, Tokens, token_of
from steersman.testing.clock import Clock
from steersman.testing.faults import Faults
from steersman.testing.journal import Journal
from steersman.testing.observers import Observation
from steersman.testing.request_counter import counter_of
from steersman.testing.users import ADMIN, UnknownUser, User
from steersman.testing.waiting import Until, Wait, events_about, report, until_true

if TYPE_CHECKING:  # imported with the first server that starts
    from steersman.cluster.cluster import Cluster
    from steersman.controlplane.addresses import Address
    from steersman.controlplane.control_plane import ControlPlane
    from steersman.storage.memory import Snapshot

_PROGRAM: Final = (
    "steersman.controlplane.control_plane",
    "steersman.endpoints.filters.faults",
    "steersman.server.profiling",
)
"""Modules of a server that are imported at its start, without those that it imports on demand."""

_DEFAULTS: Final[dict[str, Any]] = {"storage": "memory", "listen": False}
_ALONE: Final[dict[str, Any]] = {"disable_admission_plugins": ("ServiceAccount",)}
"""Options without controllers, as nobody creates the service accounts of namespaces then."""
_WITH_CONTROLLERS: Final[dict[str, Any]] = {"allow_privileged": True, "controllers": ("*",)}
_TESTING: Final = User("steersman:testing", ("system:masters",))
_PATIENCE: Final = 10.0
"""Seconds that a cluster may take to settle at its start."""
_WHERE_IT_LISTENS: Final[dict[str, Any]] = {"bind_address": "127.0.0.1", "secure_port": 0}


def _checked_user(user: User) -> User:
    """Return the user. Raises TypeError for anything but a `User`, such as a name."""
    if not isinstance(user, User):
        raise TypeError(f"users: {user!r} is no User: User({user!r}, groups=(...)) is one")
    return user


class Environment:
    """A server in this process, on the event loop that `start` runs on: `async with Environment() as environment`.

    `options` are fields of `steersman.controlplane.options.Options`, named like the flags of `steersman serve`. By
    default, storage is in memory and there is no socket; with `listen=True` there is one on 127.0.0.1 and a free port.
    As in envtest, pods can be created although nobody creates the service accounts of namespaces.

    With `controllers` there are the controllers of kube-controller-manager, too. With `nodes` there are also a
    scheduler and so many simulated nodes, on which pods run; then pods have service accounts. With `clock` the
    environment has a clock that the test moves (`clock.advance`); this needs asyncio's own event loop.

    Keys and files are in `folder`, which is created if missing. Without it they are in a temporary folder that is
    removed at the end. An environment can be started again after it was stopped; with storage="sqlite" and a folder its
    objects are still there. A start takes about 0.1 s, the first one in a folder more, as keys are created.
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
        """Recent requests of users."""
        self._counting: list[Callable[[], None]] = []
        self.fault_set = FaultSet()
        self.faults = Faults(self.fault_set)
        """Faults that happen to requests: `environment.faults.add(...)`. They end when the environment stops."""
        self._temporary: TemporaryDirectory[str] | None = None
        self._cluster: Cluster | None = None
        self._running: tuple[ControlPlane, Address] | None = None
        self._recording: Recording | None = None
        self._observation = Observation()

    async def start(self) -> None:
        """Start the server; it is ready when this returns.

        Raises OptionsError and TypeError for invalid options, OSError, errors of storage, and RuntimeError if it runs
        already. After an error nothing is left running, and no file is left.
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
            self._recording = recording_of_environment()
            if self._recording is not None:
                server = self._running[0].server
                assert server is not None
                self._recording.start(server.traces)
            self._observation.begin(self._running[0], self.fault_set)
            if self._temporary is not None:
                throw_away_keys.keep(self._temporary.name)
        except BaseException:
            await self.stop()
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

            plane = ControlPlane(options, observe=self.journal.note, faults=self.fault_set)
            return plane, await plane.start()
        from steersman.cluster.cluster import Cluster
        from steersman.cluster.configuration import Configuration, NodeGroup

        nodes = NodeGroup(count=self._nodes)
        configuration = Configuration((nodes,), schedules=self._nodes > 0)
        cluster = Cluster(options, configuration, observe=self.journal.note, faults=self.fault_set)
        address = await cluster.start()
        self._cluster = cluster
        await cluster.settle(_PATIENCE)
        return cluster.plane, address

    async def stop(self) -> None:
        """Stop the server: requests in progress are answered, watches end. Does nothing if it does not run."""
        if self._running is None:
            return
        self.faults.clear()
        self._observation.end()
        self._stop_counting()
        plane, self._running = self._running[0], None
        recording, self._recording = self._recording, None
        cluster, self._cluster = self._cluster, None
        for user in [each for each in self._tokens if isinstance(each, User)]:
            del self._tokens[user]
        try:
            await (cluster or plane).stop()
            if recording is not None:
                await recording.stop()
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
        """Control plane: its server, catalogue and stores. Raises RuntimeError if it does not run."""
        return self._started()[0]

    @property
    def url(self) -> str:
        """URL of the server, `https://127.0.0.1:PORT`. Raises RuntimeError if it does not listen."""
        return self._address().url

    @property
    def ca(self) -> Path:
        """File with the certificate of the authority that signed the server's certificate (PEM).

        Raises RuntimeError.
        """
        return self._address().ca

    @property
    def clock(self) -> Clock:
        """Clock that moves the time of the server and of all its clients. Raises RuntimeError if there is none."""
        if self._clock is None:
            raise RuntimeError("the environment has no clock: make it with clock=True, and start it")
        return self._clock

    def snapshot(self) -> Snapshot:
        """Return a snapshot of all objects, for `restore`. Raises TypeError if they are not in memory."""
        return self.plane.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Restore the objects of a snapshot of this environment, with their UIDs and new resourceVersions.

        Clients that watch see the changes. Returns once controllers have seen them, too, and have settled. Time that a
        clock has moved stays as it is. Raises TypeError.
        """
        plane, _ = self._started()
        await (self._cluster or plane).restore(snapshot)

    async def settle(self, timeout: float = 1.0) -> bool:
        """Wait until controllers, scheduler and nodes have nothing to do, at most `timeout` seconds.

        Return True if so.
        """
        return self._cluster is None or await self._cluster.settle(timeout)

    async def renew(self, snapshot: Snapshot) -> None:
        """Prepare the server for another test: close all connections, restore a snapshot, forget history, change the
        port.

        Earlier clients cannot reach the server any more. Raises TypeError, OptionsError.
        """
        plane, address = self._started()
        assert plane.server is not None
        await plane.stop_listening()
        await self.restore(snapshot)
        assert plane.storage is not None
        await plane.storage.compact(plane.storage.revision)
        if plane.options.listen:
            address = await plane.listen_anew()
        self._running = plane, address
        self.journal.clear()
        self.faults.clear()
        self._stop_counting()
        if self._recording is not None:
            await self._recording.stop()
            self._recording.start(plane.server.traces)
        self._observation.end()
        self._observation.begin(plane, self.fault_set)

    async def wait_for(
        self,
        resource: str,
        name: str = "",
        until: Until = "create",
        *,
        namespace: str = "default",
        timeout: float = 10.0,
    ) -> Any:
        """Wait until an object, or with the name "" the list of objects, is as wanted, and return it.

        `resource` is named as for kubectl (`deploy`, `pods`, `widgets.example.com`). `until` is `create`, `delete`,
        `condition=TYPE[=STATUS]`, or a function that is called with the object or the list, as plain data. Raises
        NotReached after `timeout` seconds of real time, whose text has the last state and the events about it;
        ValueError.
        """
        return await Wait(self.client(_TESTING), resource, name, until, namespace).done(timeout)

    async def wait_until(self, what: Callable[[], object | Awaitable[object]], timeout: float = 10.0) -> object:
        """Wait until `what`, or what it returns when awaited, is true, and return the result. Raises NotReached."""
        return await until_true(what, timeout)

    def requests(self, user_agent: str = "") -> Report:
        """Return a report on the requests from now on, of clients with this text in their user agent.

        The cluster's own components are left out. Raises RuntimeError if the environment does not run.
        """
        server = self.plane.server
        assert server is not None
        tally = Tally()
        self._counting.append(server.traces.add(counter_of(tally)))
        return Report(tally, user_agent)

    def _stop_counting(self) -> None:
        counting, self._counting = self._counting, []
        for stop in counting:
            stop()

    async def report(self) -> str:
        """Return the last requests of users and the last events, for the report of a failed test."""
        return report(self.journal.lines(), await events_about(self.client(_TESTING), ""))

    def client(self, user: str | User = ADMIN.name) -> Client:
        """Return a client without a socket, for the event loop that the server runs on.

        The user "" is anonymous, and a `User` need not be configured. Raises KeyError for a name that is not in
        `users`, RuntimeError if the environment does not run.
        """
        return Client(self.plane, self._tokens, user)

    def token(self, user: str | User = ADMIN.name) -> str:
        """Return a user's bearer token. Raises KeyError for a name that is not in `users`, RuntimeError."""
        if isinstance(user, User):
            return token_of(self.plane, self._tokens, user)
        if user not in self._tokens:
            raise UnknownUser(user, [each for each in self._tokens if isinstance(each, str)])
        return self._tokens[user]

    def kubeconfig(self, user: str | User = ADMIN.name) -> Path:
        """Write `user-NAME.kubeconfig` into the folder, self-contained for clients in any language, and return its
        path.

        Only its owner can read it. Raises KeyError for a name that is not in `users`, RuntimeError if the server does
        not listen.
        """
        context = self.context(user)
        path = self.plane.options.data_dir / f"user-{context.user.replace('/', '-')}.kubeconfig"
        write_whole(path, kubeconfig({"steersman": context}))
        return path

    def context(self, user: str | User = ADMIN.name) -> Context:
        """Return what a user's kubeconfig says. Raises KeyError, RuntimeError as `kubeconfig` does."""
        address = self._address()
        name = user.name if isinstance(user, User) else user
        return Context(address.url, address.ca, name, {"token": self.token(user)})

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
        """Write the users in the format of --token-auth-file, and return the path."""
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
