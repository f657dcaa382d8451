"""Encoded parts that are cached between documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from steersman.kinds.kind import Kind
from steersman.openapi.custom import ObjectTexts
from steersman.openapi.fragments import Fragments


@dataclass(slots=True)
class PartCache:
    """A cache of encoded parts by name. Threads share it; a thread makes the parts that it does not find."""

    v2: dict[str, bytes] = field(default_factory=dict)
    """Definitions of built-in types."""
    of_custom: dict[str, bytes] = field(default_factory=dict)
    """Schemas of the built-in types in v3 documents of custom resources; there are about a dozen."""
    texts: ObjectTexts | None = None
    resources: WeakKeyDictionary[Kind[Any], tuple[Any, Fragments]] = field(default_factory=WeakKeyDictionary)
    """The v2 parts of resources whose kinds bring their schemas, with the state from which they were made."""
