"""The namespace of a write as plugins see it, kept with the cache's entry of the Namespace until that changes."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import KnownNamespace
from steersman.rest.objects import Reading

NAMESPACE: Final[Reading[KnownNamespace]] = Reading(
    lambda namespace: KnownNamespace(namespace.status.phase, namespace.metadata.labels),
    "status.phase",
    "metadata.labels",
)
