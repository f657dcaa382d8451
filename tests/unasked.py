"""Resources in a catalogue whose objects are never requested."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

from steersman.rest.bound import BoundResource, bind
from steersman.rest.resource import Resource


class UnaskedStorage:
    """Storage that supports all verbs and fails the test when one is called."""

    async def _asked(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nobody was to ask")

    get = list = watch = create = update = delete = delete_collection = answer = _asked

    def decode(self, item: Any) -> Any:
        raise AssertionError("there is no item")

    def remember(self, item: Any, kind: object, encoded: bytes) -> None:
        raise AssertionError("there is no item")


def unasked(resource: Resource[Any]) -> tuple[BoundResource[Any], UnaskedStorage]:
    """Return a bound resource and its storage, as a catalogue takes them."""
    return bind(resource, MagicMock()), UnaskedStorage()
