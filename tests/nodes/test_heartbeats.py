"""How long leases of nodes hold: what thousands of nodes write together stays bounded."""

from __future__ import annotations

import pytest

from steersman.controllers.node_lifecycle import GRACE
from steersman.nodes.heartbeats import lease_seconds


@pytest.mark.parametrize(("nodes", "seconds"), [(0, 40), (1, 40), (1000, 40), (1500, 60), (2000, 80), (50_000, 80)])
def test_leases_of_many_nodes_hold_longer(nodes: int, seconds: int) -> None:
    assert lease_seconds(nodes) == seconds


def test_nodes_are_heard_of_in_time() -> None:
    """A lease is renewed four times while it holds; one renewal may fail before anybody gives a node up."""
    assert 2 * lease_seconds(1_000_000) / 4 < GRACE
