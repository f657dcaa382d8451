"""The state of a namespace for plugins, cached with the Namespace's entry in the watch cache."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import NamespaceState
from steersman.rest.objects import Reading

NAMESPACE: Final[Reading[NamespaceState]] = Reading(
    lambda namespace: NamespaceState(namespace.status.phase, namespace.metadata.labels),
    "status.phase",
    "metadata.labels",
)
