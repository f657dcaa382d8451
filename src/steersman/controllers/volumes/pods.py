"""Index of pods by the claims that they use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from steersman.api.core.v1 import Pod
from steersman.client.informer import Informer, Key
from steersman.machinery.built_in.volumes import claim_names

_BY_CLAIM: Final = "claim"


def add_claim_index(pods: Informer[Pod]) -> None:
    """Add an index of pods by the claims that they use."""
    pods.add_index(_BY_CLAIM, _claims)


def pods_of_claim(pods: Informer[Pod], claim: Key) -> Sequence[Pod]:
    """Return the pods that use a claim, including pods for which the claim is still to be created."""
    return pods.indexed(_BY_CLAIM, "/".join(claim))


def _claims(pod: Pod) -> Iterable[str]:
    return [f"{pod.metadata.namespace}/{name}" for name in claim_names(pod)]
