"""Recording of a running cluster: follows the changes of all its objects into a file."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from errno import ENOSPC
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import urlencode

from steersman.client.api_resource import APIResource
from steersman.client.client import Client, Pages, decoded
from steersman.client.transport import Undecodable, Unreachable
from steersman.dumps.importing import PAGE_DECODER, empty_values, resources_of
from steersman.dumps.recordings import MOST_LINE, Type, change_line, is_object
from steersman.machinery.codec.serializer import decode_plain, encode
from steersman.machinery.errors.status import StatusError
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.limited_log import LimitedLog
from steersman.machinery.values.times import unix_now
from steersman.work.backoff import Backoff, Retries
from steersman.work.periodic import Periodic

logger = logging.getLogger(__name__)

_PAGE: Final = 500
_NOT_RECORDED: Final = frozenset({"events", "leases.coordination.k8s.io", "endpoints"})
"""Resources that only say that others work, or repeat others."""
_NEW_KINDS: Final = 30.0
"""Seconds between two looks for kinds that were defined meanwhile."""
_SYNC: Final = 1.0
"""Seconds between two writes to the disk."""
_BACKOFF: Final = Backoff(1.0, 60.0)
_GONE: Final = 410
_DENIED: Final = frozenset({401, 403, 404, 405})

_Key = tuple[str, str]


class Full(Exception):
    """The end of a recording that has reached its size."""


class Recorder:
    """Writes the changes of a cluster to a file: `await run()` until it is cancelled or full.

    Without `secrets` the values of Secrets are empty. A change of nothing but heartbeats is left out.
    """

    def __init__(self, client: Client, descriptor: int, *, secrets: bool, most_bytes: int) -> None:
        self._client = client
        self._file = descriptor
        self._secrets = secrets
        self._left = most_bytes - os.fstat(descriptor).st_size
        self._states: dict[str, dict[_Key, bytes]] = {}
        """Digest of the last recorded state of each object, by resource."""
        self._following: dict[str, asyncio.Task[None]] = {}
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left_out = LimitedLog(logger)
        self.changes = 0
        """Number of recorded changes."""
        self.denied: list[str] = []
        """Resources that may not be watched."""

    async def run(self) -> None:
        """Record until cancelled. Raises Full, and StatusError or Unreachable if the cluster cannot be read at first."""
        failed = (StatusError, Unreachable, OSError)
        kinds = Periodic("following of new kinds", self._follow_new_kinds, _NEW_KINDS, expected=failed)
        sync = Periodic("writing to the disk", self._sync, _SYNC, expected=failed)
        try:
            await self._follow_new_kinds()
            kinds.start()
            sync.start()
            await self._ended
        finally:
            await kinds.stop()
            await sync.stop()
            for each in self._following.values():
                each.cancel()
            await asyncio.gather(*self._following.values(), return_exceptions=True)
            os.fsync(self._file)

    async def _follow_new_kinds(self) -> None:
        for each in await resources_of(self._client):
            name = str(each.resource.group_resource)
            if name in _NOT_RECORDED or name in self._following or "watch" not in each.verbs:
                continue
            found = each.resource
            plain = APIResource(found.group, found.version, found.plural, found.kind, dict, found.namespaced)
            self._following[name] = task = asyncio.create_task(self._follow(name, plain))
            task.add_done_callback(self._followed)

    async def _sync(self) -> None:
        await asyncio.to_thread(os.fsync, self._file)

    async def _follow(self, name: str, resource: APIResource[dict[str, Any]]) -> None:
        """Record one resource: list it, watch it, and begin again when the watch cannot go on."""
        retries, since = Retries(_BACKOFF), ""
        while True:
            try:
                if not since:
                    since = await self._list(name, resource)
                async with self._client.watch(resource, resource_version=since) as batches:
                    async for batch in batches:
                        retries.reset()
                        for event in batch:
                            since = _revision(event.object)
                            if event.type != "BOOKMARK":
                                self._record(name, event.type, event.object)  # type: ignore[arg-type]
            except (Full, OSError) as error:
                self._end(error)
                return
            except StatusError as error:
                if error.code in _DENIED:
                    self.denied.append(name)
                    logger.warning("%s is not recorded: %s", name, error)
                    return
                since = "" if error.code == _GONE else since
                logger.warning("%s: %s", name, error)
            except Unreachable as error:
                since = "" if isinstance(error, Undecodable) else since
                logger.warning("%s: %s", name, error)
            await retries.pause()

    async def _list(self, name: str, resource: APIResource[dict[str, Any]]) -> str:
        """Record what differs from the last known state, and return the revision of the list."""
        known = self._states.get(name)
        seen: set[_Key] = set()
        pages = Pages(resource)
        while pages.more:
            query = {"limit": str(_PAGE), **({"continue": pages.token} if pages.token else {})}
            data = await self._client.request("GET", f"{resource.path()}?{urlencode(query)}")
            page = await decoded(PAGE_DECODER.decode, data)
            for raw in page.items or ():
                found = await decoded(decode_plain, bytes(raw))
                if not isinstance(found, dict):
                    raise Undecodable("the server sends no object")
                obj = {"kind": resource.kind, "apiVersion": resource.api_version, **found}
                seen.add(_key(obj))
                is_new = known is not None and _key(obj) not in known
                self._record(name, "PRESENT" if known is None else "ADDED" if is_new else "MODIFIED", obj)
            pages.advance(page.metadata.continue_)
        for namespace, missing in set(known or ()) - seen:
            place = {"namespace": namespace} if namespace else {}
            gone = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {"name": missing, **place}}
            self._record(name, "DELETED", gone)
        self._states.setdefault(name, {})
        return page.metadata.resource_version

    def _record(self, name: str, type_: Type, obj: dict[str, Any]) -> None:
        """Write a change, unless only heartbeats have changed, or no replay could read it. Raises Full, OSError."""
        if self._ended.done():
            return
        key, states = _key(obj), self._states.setdefault(name, {})
        obj["metadata"].pop("managedFields", None)
        if name == "secrets" and not self._secrets:
            empty_values(obj)
        if type_ == "DELETED":
            if states.pop(key, None) is None:
                return
        else:
            digest = _digest(obj)
            if states.get(key) == digest:
                return
            states[key] = digest
        line = change_line(unix_now(), type_, obj)
        if len(line) > MOST_LINE or is_too_deep(line):
            self._left_out.warning(name, "%s %s is left out: too large or too deep for a replay", name, "/".join(key))
            return
        if len(line) > self._left:
            raise Full
        self._left -= len(line)
        self.changes += 1
        if os.write(self._file, line) < len(line):  # the next run removes the part
            raise OSError(ENOSPC, os.strerror(ENOSPC))

    def _end(self, error: BaseException) -> None:
        """End the recording with an error."""
        if not self._ended.done():
            self._ended.set_exception(error)

    def _followed(self, task: asyncio.Task[None]) -> None:
        """End the recording if a task that follows a resource has failed."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end(error)


def _key(obj: dict[str, Any]) -> _Key:
    """Return namespace and name of an object. Raises Undecodable if it is no object of Kubernetes."""
    if not is_object(obj):
        raise Undecodable("the server sends no object")
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _revision(obj: dict[str, Any]) -> str:
    """Return the revision of an object. Raises Undecodable if it has none."""
    metadata = obj.get("metadata")
    revision = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if not isinstance(revision, str) or not revision:
        raise Undecodable("the server sends an object without a resourceVersion")
    return revision


def _digest(obj: dict[str, Any]) -> bytes:
    """Return a digest of an object without its revision and its heartbeats."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    whole = {**obj, "metadata": metadata}
    status = obj.get("status")
    if isinstance(status, dict) and isinstance(status.get("conditions"), list):
        with suppress(AttributeError):  # conditions of another form
            whole["status"] = {
                **status,
                "conditions": [
                    {key: value for key, value in each.items() if key not in ("lastHeartbeatTime", "lastProbeTime")}
                    for each in status["conditions"]
                ],
            }
    return blake2b(encode(whole), digest_size=16).digest()
