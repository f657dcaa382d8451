"""Agreement of servers of several releases on one store about the stored version of each built-in kind.

Upstream has the components for it (the StorageVersion API, the identity of servers, StorageVersionMigration), but has
the newer server write a version that the previous release can read, regardless of the running servers. Here each server
announces the versions that it can read. A server writes its preferred version if all others can read it, otherwise the
best version that they can read. Thus, during an upgrade server by server, the older ones can read everything that the
newer ones store. Once the older ones are gone, the newer ones switch to their own versions and rewrite the objects in
older versions.

A server writes a version only after the store's record (`records.Store`) contains it, and after a look at the running
servers that follows. A starting server announces itself before it reads that record, and refuses to start if the record
contains a version that it cannot read. So of two servers that do both concurrently, at least one sees the other.
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
"""Seconds between two rounds."""
_ATTEMPTS: Final = 10
_LONGEST_LOOK: Final = 1.0
"""Seconds allowed for the look at other servers at shutdown."""

Rewrite = Callable[[GroupResource], Awaitable[bool]]
"""Function that rewrites all objects of a resource in the current version; returns False if some could not be."""


class Agreement:
    """This server's part in the agreement.

    `forms` are the forms by resource, whose written versions this class sets; `version` is the program's version.
    """

    def __init__(
        self, records: Records, forms: Mapping[GroupResource, StoredForm], rewrite: Rewrite, version: str
    ) -> None:
        self._records = records
        self._forms = {str(resource): form for resource, form in forms.items()}
        self._resources = {str(resource): resource for resource in forms}
        self._rewrite = rewrite
        self._version = version
        self._published_choice: dict[str, str] = {}
        """Versions in the store's record as written by this server."""
        self._published: dict[str, str] = {}
        """Versions announced to other servers as the only ones that this server writes."""
        self._complaints: set[str] = set()
        self.rewriting: asyncio.Task[None] | None = None
        """The task that rewrites objects in unused versions, None while there is none."""
        self.rounds: Final = periodic("the agreement on stored versions", self._renewed, INTERVAL)

    async def join(self) -> None:
        """Announce this server and agree on versions, before it reads or writes any object.

        Raises StorageFormatError if it cannot read objects that others may have stored, or others cannot read any
        version that it can write; and StorageUnavailable.
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
        """Start periodic rounds."""
        self.rounds.start()

    async def leave(self) -> None:
        """Stop, and withdraw the announcement of this server."""
        await self.rounds.stop()
        if self.rewriting is not None:
            self.rewriting.cancel()
            await asyncio.gather(self.rewriting, return_exceptions=True)
        await self._leave()

    async def _leave(self) -> None:
        try:
            await self._records.leave()
        except (StorageUnavailable, ValueError) as error:
            logger.warning("withdrawing from the agreement failed; it expires after a minute: %s", error)

    async def _renewed(self) -> None:
        """Run one round; its errors are only logged."""
        try:
            await self.renew()
        except ValueError as error:
            raise StorageUnavailable(str(error)) from None

    async def renew(self) -> None:
        """Run one round: announce, agree, switch versions where possible, and start rewriting objects in unused
        versions.
        """
        # Announce the versions of the last round only now: writes that were running at the switch have ended.
        self._published = {name: form.written for name, form in self._forms.items()}
        await self._announce()
        store, revision = await self._agree()
        servers = await self._records.servers()
        if self.rewriting is None and self._records.name == min(servers, default=""):
            left = [name for name in self._forms if self._is_left(name, store, servers.values())]
            if left:
                self.rewriting = asyncio.get_running_loop().create_task(self._rewrite_all(left, revision))

    async def _announce(self) -> None:
        reads = {name: list(form.names) for name, form in self._forms.items()}
        await self._records.announce(Server(version=self._version, reads=reads, writes=self._published))

    # Written state

    async def _agree(self) -> tuple[Store, int]:
        """Switch to versions that all servers can read; return the store's record after that and its revision."""
        chosen = await self._choice()
        for _ in range(_ATTEMPTS):
            turned = {name: version for name, version in chosen.items() if self._published_choice.get(name) != version}
            if turned:
                # In this order: a server that sees the second write sees the first one too (`Records.forget`).
                if any(self._published.pop(name, "") for name in turned):
                    await self._announce()
                await self._records.change(partial(_add, turned))
                self._published_choice |= turned
            store, revision = await self._records.store()
            again = await self._choice()
            lost = [name for name, version in chosen.items() if version not in store.versions.get(name, ())]
            for name in lost:  # while this server was away, others concluded that nobody writes this version
                del self._published_choice[name]
            if again == chosen and not lost:
                self._start_writing(chosen)
                self._complain(store)
                return store, revision
            chosen = again
        raise ValueError("the set of other servers changes too often")

    async def has_others(self) -> bool:
        """Return True if other servers run on the same store, as far as one second suffices to find out."""
        try:
            async with asyncio.timeout(_LONGEST_LOOK):
                return any(name != self._records.name for name in await self._records.servers())
        except (TimeoutError, StorageUnavailable):
            return False

    async def _choice(self) -> dict[str, str]:
        """Return the version to write, by resource, for the servers running now."""
        servers = await self._records.servers()
        others = [each for name, each in servers.items() if name != self._records.name]
        return {name: self._chosen(name, form, others) for name, form in self._forms.items()}

    def _chosen(self, name: str, form: StoredForm, others: Iterable[Server]) -> str:
        """Return the first version that all other servers with the resource can read, in this server's order of
        preference.
        """
        reads = [readable for each in others if (readable := each.reads.get(name)) is not None]
        if all(form.preferred in each for each in reads):
            return form.preferred
        more = dict.fromkeys(version for each in reads for version in each if version not in form.names)
        for version in (*form.names, *more):
            if all(version in each for each in reads) and form.reads(version):
                return version
        if not self._published_choice:  # the server is starting
            raise StorageFormatError(f"no version of {name} can be read both by this server and all running ones")
        self._say(f"no version of {name} can be read by all servers on the store: writing {form.written}")
        return form.written

    def _start_writing(self, chosen: Mapping[str, str]) -> None:
        for name, version in chosen.items():
            form = self._forms[name]
            if form.written != version:
                logger.log(NOTICE, "storing %s as %s from now on instead of %s", name, version, form.written)
                form.write_as(version)

    def _unreadable(self, store: Store) -> list[str]:
        """Return the resources and versions that may be stored but cannot be read here, as texts."""
        return [
            f"{name} as {version}"
            for name, versions in store.versions.items()
            if (form := self._forms.get(name)) is not None
            for version in versions
            if not form.reads(version)
        ]

    def _complain(self, store: Store) -> None:
        for each in self._unreadable(store):
            self._say(f"a newer server stores {each}, which this one cannot read: stop this server, which is outdated")

    def _say(self, complaint: str) -> None:
        if complaint not in self._complaints:
            self._complaints.add(complaint)
            logger.error("%s", complaint)

    # Rewriting of other versions

    def _is_left(self, name: str, store: Store, servers: Iterable[Server]) -> bool:
        """Return True if objects may be stored in another version than the one that all servers write."""
        written = self._forms[name].written
        return store.versions.get(name) != [written] and all(
            each.writes.get(name) == written for each in servers if name in each.reads
        )

    async def _rewrite_all(self, names: Iterable[str], revision: int) -> None:
        """Rewrite the objects of these resources and remove their old versions from the store's record.

        `revision` is the record's revision at which all servers wrote their present versions; if the record has changed
        since, no version is removed from it.
        """
        try:
            for name in names:
                written = self._forms[name].written
                if await self._rewrite(self._resources[name]):
                    revision = await self._records.forget(name, written, revision)
                    if not revision:
                        return
                    logger.log(NOTICE, "all %s are stored as %s", name, written)
        except (StorageUnavailable, ValueError) as error:
            logger.warning("rewriting objects in other stored versions failed and will be retried: %s", error)
        finally:
            self.rewriting = None


def _add(turned: Mapping[str, str], store: Store) -> None:
    store.changes += 1
    for name, version in turned.items():
        versions = store.versions.setdefault(name, [])
        if version not in versions:
            versions.append(version)
