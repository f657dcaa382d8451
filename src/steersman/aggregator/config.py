"""The flags about aggregation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:  # a server without aggregated ones asks nobody
    from steersman.net.client.egress import Dial


class AggregatorConfig(Struct, frozen=True, kw_only=True):
    """Fields are called as the flags are."""

    proxy_client_cert_file: str = ""
    proxy_client_key_file: str = ""
    enable_aggregator_routing: bool = False
    aggregator_reject_forwarding_redirect: bool = True
    leave: Dial | None = None
    """How connections to servers leave, where that is not as usual."""
