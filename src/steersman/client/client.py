"""Client of the API: its verbs, with objects as Structs or plain data."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from steersman.api.meta.v1 import DeleteOptions
from steersman.client.api_resource import APIResource, ObjectList
from steersman.client.errors import error_from_response, ignoring, is_not_found, retry_after_seconds, status_error
from steersman.client.transport import Fields, Response, Transport, Undecodable
from steersman.machinery.codec.serializer import decode_plain, encode
from steersman.machinery.errors.status import StatusError
from steersman.machinery.large_work.sizes import is_large
from steersman.work.offloading import offload_if

T = TypeVar("T")

logger = logging.getLogger(__name__)

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

_NOT_DECODED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of decoders for bytes that are no JSON, JSON of another shape, and JSON that is nested too deep."""
_MAX_EVENT: Final = 64 << 20
"""Most bytes of one watch event. A larger event ends the watch with an error."""
MAX_PAGES: Final = 10_000
"""Most pages of one list. A faulty aggregated server may never send the last page."""
_MAX_CONCURRENT: Final = 64
"""Most concurrent requests of a client. Further requests wait for a permit; watches need none."""
_MAX_ATTEMPTS: Final = 10
"""Most attempts for a request that the server answers with `Retry-After`, as in client-go."""
_TOLD_PAUSE: Final = 5
"""Shortest pause in seconds that is logged, so that a person who waits for a command learns why."""
_LONGEST_PAUSE: Final = 60
"""Longest pause in seconds before a retry, even if the server asks for more."""


class Event(Struct, Generic[T], frozen=True):
    """A watch event: its type (ADDED, MODIFIED, DELETED or BOOKMARK) and its object."""

    type: str
    object: T
    size: int = 0
    """Length of the event's JSON in bytes."""


class _WireEvent(msgspec.Struct):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")


_EVENT: Final = msgspec.json.Decoder(_WireEvent)


class Client:
    """Sends the requests of one user to one server.

    A refused request raises StatusError with the server's reason and code. A request without an answer raises
    Unreachable, one with a response that is not understood Undecodable. A request that an overloaded server answers with
    `Retry-After` is sent again. Objects are Structs of the resource's type, or plain data. `manager` is the user agent
    and the field manager of all writes.
    """

    def __init__(self, transport: Transport, manager: str) -> None:
        self.manager: Final = manager
        self._transport = transport
        self._fields: Fields = (("user-agent", manager),)
        self._permits = asyncio.Semaphore(_MAX_CONCURRENT)

    def with_own_limit(self) -> Client:
        """Return a client on the same connections with its own limit of concurrent requests."""
        return Client(self._transport, self.manager)

    def impersonating(self, user: str) -> Client:
        """Return a client on the same connections whose requests are made in the name of another user."""
        client = Client(self._transport, self.manager)
        client._fields = (*self._fields, ("impersonate-user", user))
        client._permits = self._permits
        return client

    async def aclose(self) -> None:
        """Close the connections that are kept open."""
        await self._transport.aclose()

    async def get(self, resource: APIResource[T], name: str, namespace: str = "") -> T:
        """Return the current object. Raises StatusError NotFound."""
        return await decoded(
            resource.decode, await self._send_and_read("GET", resource.path(namespace, name), resource.accept())
        )

    async def find(self, resource: APIResource[T], name: str, namespace: str = "") -> T | None:
        """Return the current object, None if no object has that name."""
        with ignoring(is_not_found):
            return await self.get(resource, name, namespace)
        return None

    async def list(
        self,
        resource: APIResource[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList[T]:
        """Return the objects of a namespace, or of all namespaces.

        With `limit` the list has at most so many objects; `continue_token` is the `continue` of the page before.
        """
        target = _target(
            resource.path(namespace),
            labelSelector=label_selector,
            fieldSelector=field_selector,
            resourceVersion=resource_version,
            limit=limit or "",
            **{"continue": continue_token},
        )
        return await decoded(
            resource.decode_list, await self._send_and_read("GET", target, resource.accept(as_list=True))
        )

    async def iterate(
        self,
        resource: APIResource[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        page: int = 500,
    ) -> AsyncIterator[T]:
        """Yield all objects, fetched in pages of `page` objects.

        Raises StatusError Expired if the iteration takes longer than the server keeps history, and StatusError
        InternalError for a list without end (`Pages`).
        """
        pages = Pages(resource)
        while pages.more:
            found = await self.list(
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=page,
                continue_token=pages.token,
            )
            for obj in found.items:
                yield obj
            pages.advance(found.metadata.continue_)

    async def create(self, resource: APIResource[T], obj: T, namespace: str = "") -> T:
        """Create an object and return it as stored. Without `namespace` the namespace in its metadata applies.

        Raises StatusError AlreadyExists.
        """
        target = _target(resource.path(namespace or _namespace_and_name(obj)[0]), fieldManager=self.manager)
        return await decoded(
            resource.decode, await self._send_and_read("POST", target, resource.accept(), resource.encode(obj))
        )

    async def create_subresource(
        self, resource: APIResource[Any], name: str, namespace: str, subresource: str, obj: APIResource[T], body: T
    ) -> T:
        """Create a subresource whose request and response are of another kind, such as a binding, an eviction or a
        token.

        `body` is of the resource `obj`. Returns the response object.
        """
        target = _target(resource.path(namespace, name, subresource), fieldManager=self.manager)
        return await decoded(obj.decode, await self._send_and_read("POST", target, obj.accept(), obj.encode(body)))

    async def post_to_subresource(
        self, resource: APIResource[Any], name: str, namespace: str, subresource: str, body: bytes
    ) -> None:
        """Post a JSON body to a subresource and ignore the response object."""
        await self._send_and_read("POST", resource.path(namespace, name, subresource), "application/json", body)

    async def update(self, resource: APIResource[T], obj: T, subresource: str = "") -> T:
        """Replace an object and return it as stored. Raises StatusError Conflict if it has changed since it was read."""
        target = _target(resource.path(*_namespace_and_name(obj), subresource), fieldManager=self.manager)
        return await decoded(
            resource.decode, await self._send_and_read("PUT", target, resource.accept(), resource.encode(obj))
        )

    async def update_status(self, resource: APIResource[T], obj: T) -> T:
        """Replace the status of an object and return the object. Raises StatusError Conflict if the object has changed."""
        return await self.update(resource, obj, "status")

    async def patch(
        self,
        resource: APIResource[T],
        name: str,
        namespace: str,
        patch: object,
        *,
        media: str = MERGE_PATCH,
        subresource: str = "",
    ) -> T:
        """Patch an object with plain data and return the result; `media` is the media type of the patch."""
        return await decoded(resource.decode, await self._patch(resource, name, namespace, patch, media, subresource))

    async def patch_without_result(
        self,
        resource: APIResource[Any],
        name: str,
        namespace: str,
        patch: object,
        *,
        media: str = MERGE_PATCH,
        subresource: str = "",
    ) -> None:
        """Patch an object without decoding the result, for callers that watch the object anyway."""
        await self._patch(resource, name, namespace, patch, media, subresource)

    async def _patch(
        self, resource: APIResource[Any], name: str, namespace: str, patch: object, media: str, subresource: str
    ) -> bytes:
        target = _target(resource.path(namespace, name, subresource), fieldManager=self.manager)
        return await self._send_and_read("PATCH", target, resource.accept(), encode(patch), media)

    async def apply(
        self,
        resource: APIResource[T],
        name: str,
        namespace: str,
        configuration: dict[str, Any],
        *,
        manager: str = "",
        force: bool = True,
        subresource: str = "",
    ) -> T:
        """Apply a configuration (server-side apply) and return the result.

        `configuration` includes kind and apiVersion. `manager` is the field manager in place of the client's own.
        """
        target = _target(
            resource.path(namespace, name, subresource),
            fieldManager=manager or self.manager,
            force="true" if force else "",
        )
        return await decoded(
            resource.decode,
            await self._send_and_read("PATCH", target, resource.accept(), encode(configuration), APPLY_PATCH),
        )

    async def delete(
        self, resource: APIResource[Any], name: str, namespace: str = "", options: DeleteOptions | None = None
    ) -> None:
        """Delete an object. It stays for now if it has finalizers or a grace period. Raises StatusError NotFound."""
        body = b"" if options is None else _delete_options(options)
        await self._send_and_read("DELETE", resource.path(namespace, name), "application/json", body)

    async def delete_collection(
        self,
        resource: APIResource[Any],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        options: DeleteOptions | None = None,
    ) -> None:
        """Delete the objects of a namespace, or of all namespaces."""
        target = _target(resource.path(namespace), labelSelector=label_selector, fieldSelector=field_selector)
        body = b"" if options is None else _delete_options(options)
        await self._send_and_read("DELETE", target, "application/json", body)

    @asynccontextmanager
    async def watch(
        self,
        resource: APIResource[T],
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        seconds: int = 0,
        initial_events: bool = False,
    ) -> AsyncIterator[AsyncIterator[Sequence[Event[T]]]]:
        """Watch a resource from `resource_version` on; the context yields batches of events as they arrive.

        With `initial_events` the server first sends an ADDED event for every object, and then a bookmark with the
        annotation `k8s.io/initial-events-end`. `seconds` limits the length of the watch.

        Raises StatusError if the server refuses the watch or ends it with an error (Expired).
        """
        target = _target(
            resource.path(namespace),
            watch="1",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            timeoutSeconds=seconds or "",
            sendInitialEvents="true" if initial_events else "",
            resourceVersionMatch="NotOlderThan" if initial_events else "",
        )
        response = await self._open("GET", target, resource.accept())
        try:
            yield _events(resource, response)
        finally:
            await response.aclose()

    async def request(self, method: str, target: str, body: bytes = b"", *, media: str = "application/json") -> bytes:
        """Send any request and return the body of its response."""
        return await self._send_and_read(method, target, "application/json", body, media)

    @asynccontextmanager
    async def plain_lines(self, target: str) -> AsyncIterator[AsyncIterator[Any]]:
        """GET a stream of lines of JSON; the context yields each line as it arrives, as plain data of any shape.

        Raises StatusError if the server refuses the request, and Unreachable if it cuts the stream off.
        """
        response = await self._open("GET", target, "application/json")
        try:
            yield _plain_lines(response)
        finally:
            await response.aclose()

    async def get_plain(self, target: str, accept: str = "application/json") -> Any:
        """Return the body of a GET response as plain data, whose shape may be any (`checked`). Raises Undecodable."""
        return await decoded(decode_plain, await self._send_and_read("GET", target, accept))

    async def _send_and_read(
        self, method: str, target: str, accept: str, body: bytes = b"", media: str = "application/json"
    ) -> bytes:
        async with self._permits:
            response = await self._open(method, target, accept, body, media)
            try:
                return await response.read()
            finally:
                await response.aclose()

    async def _open(
        self, method: str, target: str, accept: str, body: bytes = b"", media: str = "application/json"
    ) -> Response:
        fields = [*self._fields, ("accept", accept)]
        if body:
            fields.append(("content-type", media))
        for left in reversed(range(_MAX_ATTEMPTS)):
            response = await self._transport.send(method, target, fields, body)
            if response.status < 300:
                return response
            retry_after = response.header("retry-after")
            try:
                error = error_from_response(response.status, retry_after, await response.read())
            finally:
                await response.aclose()
            pause = retry_after_seconds(retry_after) if response.status == 429 or response.status >= 500 else None
            if not left or pause is None:
                break
            pause = min(pause, _LONGEST_PAUSE)
            if pause >= _TOLD_PAUSE:
                logger.warning(
                    "the server answers %d and asks to wait: the next attempt is in %d s", response.status, pause
                )
            await asyncio.sleep(pause)
        try:
            raise error
        finally:
            del error  # Its traceback refers to this frame: a cycle that only the garbage collector would free.


class Pages:
    """Position in a list that is read in pages: `token` is the `continue` of the next one, if there are `more`."""

    def __init__(self, resource: APIResource[Any]) -> None:
        self._resource = resource
        self._count = 0
        self.token = ""
        self.more = True

    def advance(self, token: str) -> None:
        """Go on to the page of `token`, "" after the last one.

        Raises StatusError InternalError for a list without end: a page that leads to itself, or MAX_PAGES pages.
        """
        self._count += 1
        if token and token == self.token:
            raise StatusError(500, "InternalError", f"a page of {self._resource.group_resource} is followed by itself")
        if token and self._count >= MAX_PAGES:
            raise StatusError(500, "InternalError", f"{self._resource.group_resource} has more than {MAX_PAGES} pages")
        self.token, self.more = token, bool(token)


def _target(path: str, **query: object) -> str:
    present = {name: value for name, value in query.items() if value != ""}
    return f"{path}?{urlencode(present)}" if present else path


def _namespace_and_name(obj: Any) -> tuple[str, str]:
    """Return the namespace and the name of an object."""
    if isinstance(obj, dict):
        metadata = obj.get("metadata", {})
        return metadata.get("namespace", ""), metadata.get("name", "")
    return obj.metadata.namespace, obj.metadata.name


def _delete_options(options: DeleteOptions) -> bytes:
    return b'{"kind":"DeleteOptions","apiVersion":"v1",' + encode(options)[1:] if encode(options) != b"{}" else b""


async def decoded(decode: Callable[[bytes], T], data: bytes) -> T:
    """Return the result of `decode` for a response; a large one is decoded in a worker thread. Raises Undecodable."""
    try:
        return await offload_if(is_large(data), decode, data)
    except _NOT_DECODED as error:
        raise _undecodable(error) from None


def _undecodable(error: Exception) -> Undecodable:
    return Undecodable(f"the server's response is not understood: {error}")


def checked(plain: Any, shape: Any) -> Any:
    """Return plain data of a response if it has a shape, such as a TypedDict. Raises Undecodable."""
    try:
        msgspec.convert(plain, shape)
    except msgspec.ValidationError as error:
        raise _undecodable(error) from None
    return plain


async def _batches_of_lines(response: Response) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a response as they arrive. Raises Undecodable for a line of more than _MAX_EVENT bytes."""
    rest: list[bytes] = []
    size = 0
    async for piece in response.pieces():
        first, *lines = piece.split(b"\n")
        if lines:
            yield [b"".join((*rest, first)), *lines[:-1]]
            rest, size, first = [], 0, lines[-1]
        rest.append(first)
        size += len(first)
        if size > _MAX_EVENT:
            raise Undecodable("the server sends a line of more than 64 MiB")


async def _plain_lines(response: Response) -> AsyncIterator[Any]:
    """Yield the lines of a response that are not empty as plain data."""
    async for lines in _batches_of_lines(response):
        for line in filter(None, lines):
            yield await decoded(decode_plain, line)


async def _events(resource: APIResource[T], response: Response) -> AsyncIterator[Sequence[Event[T]]]:
    """Yield the events of a watch in the batches they arrive in; large events are decoded in a worker thread."""
    async for lines in _batches_of_lines(response):
        if any(map(is_large, lines)):
            yield await offload_if(True, decode_events, resource, lines)
        else:
            yield decode_events(resource, lines)


def decode_events(resource: APIResource[T], lines: Sequence[bytes]) -> Sequence[Event[T]]:
    """Decode the lines of a watch. Raises Undecodable."""
    try:
        return [_decode_event(resource, line) for line in lines if line]
    except _NOT_DECODED as error:
        raise _undecodable(error) from None


def _decode_event(resource: APIResource[T], line: bytes) -> Event[T]:
    event = _EVENT.decode(line)
    if event.type == "ERROR":
        raise status_error(decode_plain(bytes(event.object)))
    return Event(event.type, resource.decode(event.object), len(line))
