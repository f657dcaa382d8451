"""Sizes from which work on an object is offloaded to worker threads, and bounds that no object may exceed.

A body is measured before it is decoded. Each step of the work on a large body (decoding, defaulting, validating,
encoding) runs in a worker thread (`work.offloading`), so that other requests are not delayed. A body with more values
than any real object has is refused. So one call into a codec, which holds the interpreter, takes 50 ms at most.
"""

from __future__ import annotations

from typing import Final

from steersman.machinery.errors.status import StatusError, request_entity_too_large
from steersman.machinery.large_work.nesting import MAX_DEPTH, measure

MAX_OBJECTS: Final = 1 << 15
"""The most objects and lists in one body. The largest CustomResourceDefinitions have some 10,000."""
MAX_VALUES: Final = 1 << 16
"""The most values in one body: members of objects and items of lists."""

SURELY_SMALL: Final = 6_000
"""Bytes of JSON up to which its values are not counted: it has at most 2,000 of the most expensive values."""
_LARGE: Final = 64 << 10
_MANY: Final = 1_000
"""The number of values from which JSON is large whatever its size. The most expensive values (`{}` in a list of
containers, with three errors each) cost 30 us each.
"""
_LARGE_YAML: Final = 2 << 10
_LARGE_PROTOBUF: Final = 4 << 10


def is_large(data: bytes) -> bool:
    """Return True if work on an object of this JSON may take longer than a time slice of the event loop."""
    size = len(data)
    return size > SURELY_SMALL and (size > _LARGE or data.count(b",") > _MANY or data.count(b"{") > _MANY)


def is_large_yaml(data: bytes) -> bool:
    """Return True if work on an object of this YAML may take longer than a time slice of the event loop.

    YAML takes many times longer to parse than JSON.
    """
    return len(data) > _LARGE_YAML or may_have_aliases(data)


def may_have_aliases(data: bytes) -> bool:
    """Return True if YAML may have anchors and aliases, by which a little text stands for a lot of data."""
    return b"&" in data and b"*" in data


def is_large_protobuf(data: bytes) -> bool:
    """Return True if work on an object of this protobuf may take longer than a time slice of the event loop.

    An object may take as little as two bytes in protobuf.
    """
    return len(data) > _LARGE_PROTOBUF


def check_count(data: bytes) -> None:
    """Raise StatusError 413 for JSON of more than MAX_OBJECTS objects and lists, or more than MAX_VALUES values.

    JSON that is nested too deeply passes: the decoder refuses it with upstream's message.
    """
    if len(data) <= MAX_OBJECTS:
        return
    if data.count(b"{") + data.count(b"[") > MAX_OBJECTS or data.count(b",") > MAX_VALUES:
        size = measure(data)
        if size.depth > MAX_DEPTH:
            return
        if size.objects > MAX_OBJECTS:
            raise too_many_objects()
        if size.commas > MAX_VALUES:
            raise too_many_values()


def too_many_objects(limit: int = MAX_OBJECTS) -> StatusError:
    """Return 413 for a body that has more than `limit` objects and lists."""
    return request_entity_too_large(f"Request entity too large: limit is {limit} objects and lists")


def too_many_values(limit: int = MAX_VALUES) -> StatusError:
    """Return 413 for a body that has more than `limit` values."""
    return request_entity_too_large(f"Request entity too large: limit is {limit} values")
