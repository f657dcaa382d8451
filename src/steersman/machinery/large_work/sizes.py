"""Sizes from which work on an object belongs into the worker threads, and bounds that no object exceeds.

A body is weighed before anything is made of it. Each step of the work on a large one (decoding, defaulting, validating,
encoding) runs beside the event loop (`work.offloading`), so that the other requests do not feel its size. A body of
more values than any object has is refused: one call into a codec, which holds the interpreter, takes 50 ms at most.
"""

from __future__ import annotations

from typing import Final

from steersman.machinery.errors.status import StatusError, request_entity_too_large
from steersman.machinery.large_work.nesting import MAX_DEPTH, measured

MAX_OBJECTS: Final = 1 << 15
"""Objects and lists in one body. The largest definitions of custom resources have some 10,000."""
MAX_VALUES: Final = 1 << 16
"""Values in one body: members of objects and items of lists."""

SURELY_SMALL: Final = 6_000
"""Bytes of JSON that are not looked at: at most 2,000 of the dearest values."""
_LARGE: Final = 64 << 10
_MANY: Final = 1_000
"""Values from which JSON is large whatever its size: the dearest (`{}` in a list of containers, which is wrong in three
ways) cost 30 us each."""
_LARGE_YAML: Final = 2 << 10
_LARGE_PROTOBUF: Final = 4 << 10


def is_large(data: bytes) -> bool:
    """Whether working on an object of this JSON may take longer than a turn of the loop should."""
    size = len(data)
    return size > SURELY_SMALL and (size > _LARGE or data.count(b",") > _MANY or data.count(b"{") > _MANY)


def is_large_yaml(data: bytes) -> bool:
    """Return True if work on an object of this YAML may take longer than a turn of the loop should.

    It takes many times longer to read than JSON.
    """
    return len(data) > _LARGE_YAML or may_have_aliases(data)


def may_have_aliases(data: bytes) -> bool:
    """Return True if YAML may have anchors and aliases, with which little text may stand for much."""
    return b"&" in data and b"*" in data


def is_large_protobuf(data: bytes) -> bool:
    """The same of protobuf, where an object may take two bytes."""
    return len(data) > _LARGE_PROTOBUF


def check_count(data: bytes) -> None:
    """Raises StatusError 413 for JSON of more than MAX_OBJECTS objects and lists, or MAX_VALUES values.

    What is nested more deeply than anything may be is left to the decoder, which refuses it in upstream's words.
    """
    if len(data) <= MAX_OBJECTS:
        return
    if data.count(b"{") + data.count(b"[") > MAX_OBJECTS or data.count(b",") > MAX_VALUES:
        found = measured(data)
        if found.depth > MAX_DEPTH:
            return
        if found.objects > MAX_OBJECTS:
            raise too_many_objects()
        if found.commas > MAX_VALUES:
            raise too_many_values()


def too_many_objects() -> StatusError:
    """413 for a body that has more than MAX_OBJECTS."""
    return request_entity_too_large(f"Request entity too large: limit is {MAX_OBJECTS} objects and lists")


def too_many_values() -> StatusError:
    """413 for a body that has more than MAX_VALUES."""
    return request_entity_too_large(f"Request entity too large: limit is {MAX_VALUES} values")
