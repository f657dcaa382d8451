"""Selectors of objects, compiled: large ones beside the loop, and once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import sha256
from typing import Final

from steersman.api.meta.v1 import LabelSelector
from steersman.machinery.codec.serializer import encode
from steersman.machinery.selectors.labels import Selector, from_label_selector

_LARGE: Final = 200
"""Requirements whose check takes more than a millisecond."""
_MOST: Final = 32

_remembered: OrderedDict[bytes, Selector] = OrderedDict()


async def compiled(selector: LabelSelector | None) -> Selector:
    """What a selector of an object stands for; none at all selects nothing. Raises SelectorError."""
    if selector is None or len(selector.match_labels) + len(selector.match_expressions) < _LARGE:
        return from_label_selector(selector)
    key = sha256(encode(selector)).digest()
    found = _remembered.get(key)
    if found is None:
        found = _remembered[key] = await asyncio.to_thread(from_label_selector, selector)
        if len(_remembered) > _MOST:
            _remembered.popitem(last=False)
    else:
        _remembered.move_to_end(key)
    return found
