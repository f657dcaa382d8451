"""Flags of the aggregator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:  # a server without aggregated servers never connects
    from steersman.faults.fault_set import FaultSet
    from steersman.net.client.egress import Dial


class AggregatorConfig(Struct, frozen=True, kw_only=True):
    """Flags of the aggregator; fields have the names of the flags."""

    proxy_client_cert_file: str = ""
    proxy_client_key_file: str = ""
    enable_aggregator_routing: bool = False
    aggregator_reject_forwarding_redirect: bool = True
    leave: Dial | None = None
    """Dials connections to servers; None for a direct connection."""
    faults: FaultSet | None = None
    """Faults of requests to servers, if there are any."""
