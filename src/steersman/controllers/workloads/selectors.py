"""Label selectors of workload objects: large ones are compiled in a worker thread, and cached."""

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
"""Number of requirements from which a selector takes more than a millisecond to compile."""
_MOST: Final = 100_000
"""Most requirements of all cached selectors together: about 30 MiB."""

_remembered: BoundedCache[bytes, Selector] = BoundedCache(_MOST, max_bytes=_MOST)


def _size(selector: LabelSelector) -> int:
    """Return the number of requirements and values."""
    return len(selector.match_labels) + sum(1 + len(each.values) for each in selector.match_expressions)


async def compile_selector(selector: LabelSelector | None) -> Selector:
    """Return the compiled selector; None selects nothing. Raises SelectorError."""
    if selector is None or _size(selector) < _LARGE:
        return from_label_selector(selector)
    key = sha256(encode(selector)).digest()
    compiled = _remembered[key]
    if compiled is None:
        compiled = await offload_if(True, from_label_selector, selector)
        _remembered.keep(key, compiled, len(compiled.requirements))
    return compiled


def may_own(owner: Any, labels: Mapping[str, str]) -> bool:
    """Return True if the selector in the owner's spec may select labels, see `may_select`."""
    return may_select(owner.spec.selector, labels)


def may_select(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return True if a selector is not empty and may select labels. Raises SelectorError.

    A large selector is compared by its `match_labels` only. The caller must check a True exactly later, with the
    compiled selector.
    """
    if selector is None:
        return False
    if _size(selector) >= _LARGE:
        return selector.match_labels.items() <= labels.items()
    compiled = from_label_selector(selector)
    return not compiled.empty and compiled.matches(labels)
