"""Objects of a custom resource whose spec and status are plain data."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.scalars import Wire


class PlainObject(Wire):
    """Base of objects with a spec and a status of any shape, so that no stored object keeps others from being read."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Any = None
    status: Any = None
