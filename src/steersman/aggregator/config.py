"""The flags about aggregation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatorConfig:
    """Fields are called as the flags are."""

    proxy_client_cert_file: str = ""
    proxy_client_key_file: str = ""
    enable_aggregator_routing: bool = False
    aggregator_reject_forwarding_redirect: bool = True
