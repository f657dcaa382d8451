"""What of documents is kept between them: parts that many have, and those of resources until these change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from steersman.kinds.kind import Kind
from steersman.openapi.custom import ObjectTexts
from steersman.openapi.fragments import Fragments


@dataclass(slots=True)
class Kept:
    """JSON by name. Threads share it: each makes what it does not find there."""

    v2: dict[str, bytes] = field(default_factory=dict)
    """Definitions of built-in types."""
    of_custom: dict[str, bytes] = field(default_factory=dict)
    """Schemas of the built-in types that v3 documents of custom resources have: a dozen."""
    texts: ObjectTexts | None = None
    resources: WeakKeyDictionary[Kind[Any], tuple[Any, Fragments]] = field(default_factory=WeakKeyDictionary)
    """What resources whose kinds bring their schemas add to v2, with the state that it was made of."""
