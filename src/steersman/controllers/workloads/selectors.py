"""Selectors of objects, compiled: large ones beside the loop, and once."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from steersman.api.meta.v1 import LabelSelector
from steersman.machinery.codec.serializer import encode
from steersman.machinery.selectors.labels import Selector, from_label_selector
from steersman.work.bounded_cache import BoundedCache
from steersman.work.offloading import offload_if

_LARGE: Final = 200
"""Requirements whose check takes more than a millisecond."""
_MOST: Final = 100_000
"""Requirements of large selectors that are remembered together: some 30 MiB."""

_remembered: BoundedCache[bytes, Selector] = BoundedCache(_MOST, max_bytes=_MOST)


def _size(selector: LabelSelector) -> int:
    """Requirements and values."""
    return len(selector.match_labels) + sum(1 + len(each.values) for each in selector.match_expressions)


async def compiled(selector: LabelSelector | None) -> Selector:
    """What a selector of an object stands for; none at all selects nothing. Raises SelectorError."""
    if selector is None or _size(selector) < _LARGE:
        return from_label_selector(selector)
    key = sha256(encode(selector)).digest()
    found = _remembered[key]
    if found is None:
        found = await offload_if(True, from_label_selector, selector)
        _remembered.keep(key, found, len(found.requirements))
    return found


def may_own(owner: Any, labels: Mapping[str, str]) -> bool:
    """Return True if the selector of an owner's spec may select labels; see `may_select`."""
    return may_select(owner.spec.selector, labels)


def may_select(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return True if a selector that is not empty selects labels. Raises SelectorError.

    Of a large one only the labels that it wants are compared: whoever is told that it may select looks again, with
    what is `compiled`.
    """
    if selector is None:
        return False
    if _size(selector) >= _LARGE:
        return selector.match_labels.items() <= labels.items()
    found = from_label_selector(selector)
    return not found.empty and found.matches(labels)
