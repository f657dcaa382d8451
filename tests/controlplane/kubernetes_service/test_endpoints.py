"""The endpoints `kubernetes` and their EndpointSlice."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import EndpointAddress, EndpointPort, EndpointSubset
from steersman.controlplane.kubernetes_service.endpoints import counting, leading_to, slice_of, without

PORT, OTHER = (EndpointPort(name="https", port=number, protocol="TCP") for number in (6443, 7443))


def subset(*addresses: str, port: EndpointPort = PORT) -> EndpointSubset:
    return EndpointSubset(addresses=[EndpointAddress(ip=each) for each in addresses], ports=[port])


def shown(subsets: list[EndpointSubset]) -> list[tuple[list[str], list[int]]]:
    return [([each.ip for each in one.addresses], [each.port for each in one.ports]) for one in subsets]


@pytest.mark.parametrize(
    ("old", "addresses", "expected"),
    [
        ([], ["b", "a"], [(["a", "b"], [6443])]),
        ([subset("a"), subset("b")], ["a"], [(["a"], [6443])]),
        ([subset("a", port=OTHER)], ["a", "b"], [(["a", "b"], [7443])]),
        ([subset("b", "a")], ["a", "b"], [(["b", "a"], [6443])]),
        ([subset("a", "b")], ["b"], [(["b"], [6443])]),
        ([subset("a")], [], []),
    ],
)
def test_they_lead_to_those_that_run(old: list[Any], addresses: list[Any], expected: list[Any]) -> None:
    assert shown(leading_to(old, addresses, PORT, sets_port=False)) == expected


def test_the_port_is_set_when_it_is_to_be() -> None:
    assert shown(leading_to([subset("a", port=OTHER)], ["a"], PORT, sets_port=True)) == [(["a"], [6443])]
    assert shown(counting([subset("a", port=OTHER)], "a", 1, PORT, sets_port=True)) == [(["a"], [6443])]


@pytest.mark.parametrize(
    ("old", "count", "expected"),
    [
        ([], 1, ["b"]),
        ([subset("a")], 2, ["a", "b"]),
        ([subset("a")], 1, ["b"]),
        ([subset("a", "b", "c")], 3, ["a", "b", "c"]),
        ([subset("a", "c")], 2, ["a", "b"]),
        ([subset("a", "b", "c", "d")], 2, ["a", "b"]),
    ],
)
def test_those_after_ones_own_go_where_there_are_too_many(old: list[Any], count: int, expected: list[Any]) -> None:
    [(addresses, _)] = shown(counting(old, "b", count, PORT, sets_port=False))
    assert addresses == expected


def test_a_server_that_ends_takes_itself_out() -> None:
    assert shown(without([subset("a", "b")], "a")) == [(["b"], [6443])]
    assert without([subset("a")], "a") == without([], "a") == []


def test_a_slice_is_of_one_family() -> None:
    made = slice_of([subset("10.0.0.1", "fd00::1")])
    assert (made.address_type, [each.addresses for each in made.endpoints or ()]) == ("IPv4", [["10.0.0.1"]])
    made = slice_of([subset("fd00::1")])
    assert (made.address_type, [each.addresses for each in made.endpoints or ()]) == ("IPv6", [["fd00::1"]])
    assert [each.port for each in made.ports or ()] == [6443]
    assert (slice_of([]).address_type, slice_of([]).endpoints) == ("IPv4", [])
