"""Servers of several releases on one store agree in which version objects of each built-in kind are stored.

Upstream has the parts (the StorageVersion API, the identity of servers, StorageVersionMigration), and lets the newer
server write what the release before it can read, whatever servers there are. Here each server says which versions it
reads; one writes the version that it prefers if all others read it, else the best that they do. So while a cluster is
upgraded server by server, the older ones can read all that the newer ones store; once they are gone, the newer ones
turn to their own versions, and what lies there in older ones is written anew.

Nothing is stored in a version before the store says so (`records.Store`), and servers are looked at after that. A
server says that it is there before it looks at the store, and does not start on one in which there may be versions that
it cannot read. So of two that do both at once, one at least sees the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final

from steersman.controlplane.periodic import periodic
from steersman.controlplane.stored_versions.records import Records, Server, Store
from steersman.kinds.stored_form import StoredForm
from steersman.machinery.identity.schema import GroupResource
from steersman.net.log_levels import NOTICE
from steersman.storage.interface import StorageFormatError, StorageUnavailable

logger = logging.getLogger(__name__)

INTERVAL: Final = 20.0
"""Seconds between two looks at the other servers."""
_ATTEMPTS: Final = 10
_LONGEST_LOOK: Final = 1.0
"""Seconds that a look at the other servers may take at the end."""

Rewrite = Callable[[GroupResource], Awaitable[bool]]
"""Has all objects of a resource stored in the version that is written now; False if that could not be done for all."""


class Agreement:
    """`forms` are the resources with their forms, whose written versions are set here; `version` is the program's."""

    def __init__(
        self, records: Records, forms: Mapping[GroupResource, StoredForm], rewrite: Rewrite, version: str
    ) -> None:
        self._records = records
        self._forms = {str(resource): form for resource, form in forms.items()}
        self._resources = {str(resource): resource for resource in forms}
        self._rewrite = rewrite
        self._version = version
        self._told: dict[str, str] = {}
        """What the store was told that this server writes."""
        self._published: dict[str, str] = {}
        """What the other servers are told that it writes, and nothing else any more."""
        self._complaints: set[str] = set()
        self._rewriting: asyncio.Task[None] | None = None
        self._periodic = periodic("the agreement on stored versions", self._renewed, INTERVAL)

    async def join(self) -> None:
        """Says that this server is there, and finds out what it may write, before it reads or writes anything.

        Raises StorageFormatError where it cannot read what others may have stored, or others nothing that it writes;
        StorageUnavailable.
        """
        try:
            await self._announce()
            store, _ = await self._records.store()
            if unreadable := self._unreadable(store):
                raise StorageFormatError(
                    f"a newer server has stored {', '.join(unreadable)}, which this one cannot read: start that one"
                )
            await self._agree()
        except BaseException as error:
            await self._leave()
            if isinstance(error, ValueError):
                raise StorageFormatError(str(error)) from error
            raise

    def begin(self) -> None:
        """Keeps it up from now on."""
        self._periodic.start()

    async def leave(self) -> None:
        """Ends it, and says that this server is gone."""
        await self._periodic.stop()
        if self._rewriting is not None:
            self._rewriting.cancel()
            await asyncio.gather(self._rewriting, return_exceptions=True)
        await self._leave()

    async def _leave(self) -> None:
        try:
            await self._records.leave()
        except (StorageUnavailable, ValueError) as error:
            logger.warning("other servers count with this one for a minute more: %s", error)

    async def _renewed(self) -> None:
        """A round, of which it is only told why it could not be."""
        try:
            await self.renew()
        except ValueError as error:
            raise StorageUnavailable(str(error)) from None

    async def renew(self) -> None:
        """One round: says what it is, looks at the others, turns to other versions where it may, and begins to write
        anew what lies there in versions that nobody writes any more."""
        # What it has turned to in the round before is told now: writes that were under way then have ended.
        self._published = {name: form.written for name, form in self._forms.items()}
        await self._announce()
        store, revision = await self._agree()
        servers = await self._records.servers()
        if self._rewriting is None and self._records.name == min(servers, default=""):
            left = [name for name in self._forms if self._is_left(name, store, servers.values())]
            if left:
                self._rewriting = asyncio.get_running_loop().create_task(self._rewrite_all(left, revision))

    async def _announce(self) -> None:
        reads = {name: list(form.names) for name, form in self._forms.items()}
        await self._records.announce(Server(version=self._version, reads=reads, writes=self._published))

    # What is written

    async def _agree(self) -> tuple[Store, int]:
        """Turns to the versions that all servers read; gives what may be stored then, and as of which revision."""
        chosen = await self._choice()
        for _ in range(_ATTEMPTS):
            turned = {name: version for name, version in chosen.items() if self._told.get(name) != version}
            if turned:
                # In this order: who sees the one sees the other, too (`Records.forget`).
                if any(self._published.pop(name, "") for name in turned):
                    await self._announce()
                await self._records.change(partial(_add, turned))
                self._told |= turned
            store, revision = await self._records.store()
            again = await self._choice()
            lost = [name for name, version in chosen.items() if version not in store.versions.get(name, ())]
            for name in lost:  # while this server was away others thought that nobody writes that
                del self._told[name]
            if again == chosen and not lost:
                self._turn_to(chosen)
                self._complain(store)
                return store, revision
            chosen = again
        raise ValueError("other servers come and go too quickly")

    async def has_others(self) -> bool:
        """Return True if other servers run on the same store, as far as that can be found out in a second."""
        try:
            async with asyncio.timeout(_LONGEST_LOOK):
                return any(name != self._records.name for name in await self._records.servers())
        except (TimeoutError, StorageUnavailable):
            return False

    async def _choice(self) -> dict[str, str]:
        """The version to write of each resource, as the servers are now."""
        servers = await self._records.servers()
        others = [each for name, each in servers.items() if name != self._records.name]
        return {name: self._chosen(name, form, others) for name, form in self._forms.items()}

    def _chosen(self, name: str, form: StoredForm, others: Iterable[Server]) -> str:
        """The first that all others read who have the resource, those before that this server prefers."""
        reads = [found for each in others if (found := each.reads.get(name)) is not None]
        if all(form.preferred in each for each in reads):
            return form.preferred
        more = dict.fromkeys(version for each in reads for version in each if version not in form.names)
        for version in (*form.names, *more):
            if all(version in each for each in reads) and form.reads(version):
                return version
        if not self._told:  # it has not begun
            raise StorageFormatError(f"there is no version of {name} that this server and those that run can read")
        self._say(f"there is no version of {name} that all servers on the store read: {form.written} is written")
        return form.written

    def _turn_to(self, chosen: Mapping[str, str]) -> None:
        for name, version in chosen.items():
            form = self._forms[name]
            if form.written != version:
                logger.log(NOTICE, "%s are stored as %s from now on, and were as %s", name, version, form.written)
                form.write_as(version)

    def _unreadable(self, store: Store) -> list[str]:
        """What may be stored and cannot be read here."""
        return [
            f"{name} as {version}"
            for name, versions in store.versions.items()
            if (form := self._forms.get(name)) is not None
            for version in versions
            if not form.reads(version)
        ]

    def _complain(self, store: Store) -> None:
        for each in self._unreadable(store):
            self._say(f"a newer server stores {each}, which this one cannot read: it was away for too long, end it")

    def _say(self, complaint: str) -> None:
        if complaint not in self._complaints:
            self._complaints.add(complaint)
            logger.error("%s", complaint)

    # What is left of other versions

    def _is_left(self, name: str, store: Store, servers: Iterable[Server]) -> bool:
        """Whether objects may be stored in another version than the one that all servers write."""
        written = self._forms[name].written
        return store.versions.get(name) != [written] and all(
            each.writes.get(name) == written for each in servers if name in each.reads
        )

    async def _rewrite_all(self, names: Iterable[str], revision: int) -> None:
        """`revision`: as of when all servers wrote what they do; if anybody has turned since, nothing is forgotten."""
        try:
            for name in names:
                written = self._forms[name].written
                if await self._rewrite(self._resources[name]):
                    revision = await self._records.forget(name, written, revision)
                    if not revision:
                        return
                    logger.log(NOTICE, "all %s are stored as %s", name, written)
        except (StorageUnavailable, ValueError) as error:
            logger.warning("what is stored in other versions is written anew later: %s", error)
        finally:
            self._rewriting = None


def _add(turned: Mapping[str, str], store: Store) -> None:
    store.changes += 1
    for name, version in turned.items():
        versions = store.versions.setdefault(name, [])
        if version not in versions:
            versions.append(version)
