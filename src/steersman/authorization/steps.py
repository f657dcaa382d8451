"""The authorizers of a chain as data, wherever they are described: by flags, or in a file."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from steersman.authorization.interface import Decision
from steersman.machinery.go.strings import to_lower

WEBHOOK: Final = "Webhook"
MODES: Final = ("ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", WEBHOOK)
"""In the order in which messages list them."""


class Webhook(Struct, frozen=True, kw_only=True):
    """One webhook: where it is, and how it is asked. Times are in seconds; a verdict with none is not kept."""

    kubeconfig: str
    version: str = "v1"
    authorized_ttl: float = 300.0
    unauthorized_ttl: float = 30.0
    timeout: float = 30.0
    on_error: Decision = Decision.NO_OPINION
    conditions: tuple[str, ...] = ()


class Step(Struct, frozen=True):
    """One authorizer of the chain: `type` is one of the MODES, `name` that of its metrics."""

    type: str
    name: str
    webhook: Webhook | None = None


def step_of(mode: str) -> Step:
    """That of a mode which needs no more said."""
    return Step(mode, to_lower(mode))
