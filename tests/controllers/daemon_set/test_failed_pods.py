"""Tests of the back-off for failed pods of DaemonSets."""

from __future__ import annotations

from steersman.controllers.daemon_set.failed_pods import FailedPodBackoff


class CountedKey(tuple[str, int, str]):
    """Key of a back-off that counts how often a key is hashed."""

    hashed = 0

    def __hash__(self) -> int:
        CountedKey.hashed += 1
        return super().__hash__()


async def test_the_second_failure_on_a_node_waits() -> None:
    backoff = FailedPodBackoff()
    assert backoff.wait(("uid", 1, "a")) == 0
    assert backoff.wait(("uid", 1, "a")) > 0
    assert backoff.wait(("uid", 1, "b")) == 0


async def test_many_nodes_with_failed_pods_take_linear_time() -> None:
    backoff, keys = FailedPodBackoff(), [CountedKey(("uid", 1, f"node-{number}")) for number in range(5000)]
    for key in keys:
        backoff.wait(key)
    assert CountedKey.hashed < 10 * len(keys)
    assert backoff.wait(keys[0]) > 0
