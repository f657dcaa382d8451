"""Options in queries, parsed as kube-apiserver's conversions of url.Values parse them."""

from __future__ import annotations

import msgspec
import pytest

from steersman.api.core.v1 import (
    NodeProxyOptions,
    PodAttachOptions,
    PodExecOptions,
    PodLogOptions,
    PodPortForwardOptions,
    PodProxyOptions,
    ServiceProxyOptions,
)
from steersman.api.meta.v1 import (
    CreateOptions,
    DeleteOptions,
    GetOptions,
    ListOptions,
    PatchOptions,
    Preconditions,
    TableOptions,
    UpdateOptions,
)
from steersman.endpoints import parameters
from steersman.endpoints.parameters import decode_parameters
from steersman.endpoints.query import parse_query
from steersman.machinery.errors.status import StatusError

EVERY = (
    CreateOptions,
    DeleteOptions,
    GetOptions,
    ListOptions,
    NodeProxyOptions,
    PatchOptions,
    PodAttachOptions,
    PodExecOptions,
    PodLogOptions,
    PodPortForwardOptions,
    PodProxyOptions,
    ServiceProxyOptions,
    TableOptions,
    UpdateOptions,
)
NOT_PARAMETERS = {"kind", "apiVersion", "preconditions"}


@pytest.mark.parametrize("options", EVERY)
def test_each_member_of_each_options_type_can_be_set(options: type[msgspec.Struct]) -> None:
    for each in msgspec.structs.fields(options):
        value = "2026-01-01T00:00:00Z" if each.encode_name == "sinceTime" else "1"
        decoded = decode_parameters(options, parse_query(f"{each.encode_name}={value}"))
        assert (decoded == options()) is (each.encode_name in NOT_PARAMETERS)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("uid=a", DeleteOptions(preconditions=Preconditions(uid="a"))),
        ("resourceVersion=5&uid=", DeleteOptions(preconditions=Preconditions(resource_version="5"))),
        ("uid=a&uid=b&resourceVersion=0", DeleteOptions(preconditions=Preconditions(uid="a", resource_version="0"))),
        ("uid=&resourceVersion=&preconditions=x", DeleteOptions()),
        ("gracePeriodSeconds=0&gracePeriodSeconds=x", DeleteOptions(grace_period_seconds=0)),
        ("propagationPolicy=", DeleteOptions(propagation_policy="")),
        ("orphanDependents", DeleteOptions(orphan_dependents=True)),
        ("orphanDependents=FALSE&dryRun=&dryRun=All", DeleteOptions(orphan_dependents=False, dry_run=["", "All"])),
        ("continue=a&watch=0&limit=-1", ListOptions(continue_="a", limit=-1)),
        ("sendInitialEvents=0&watch", ListOptions(send_initial_events=False, watch=True)),
        ("allowWatchBookmarks=fal%C5%BFe", ListOptions()),
        ("ports=80,81&ports=082", PodPortForwardOptions(ports=[80, 81, 82])),
        ("command=a,b&command=", PodExecOptions(command=["a,b", ""])),
        ("sinceTime=&tailLines=%2B3", PodLogOptions(since_time="0001-01-01T00:00:00Z", tail_lines=3)),
        ("sinceTime=2026-01-01T02:00:00%2B02:00", PodLogOptions(since_time="2026-01-01T00:00:00Z")),
    ],
)
def test_values_are_read_by_the_type_of_the_member(query: str, options: msgspec.Struct) -> None:
    assert decode_parameters(type(options), parse_query(query)) == options


@pytest.mark.parametrize(
    ("options", "query", "message"),
    [
        (DeleteOptions, "gracePeriodSeconds=", 'strconv.ParseInt: parsing "": invalid syntax'),
        (ListOptions, "limit=x&timeoutSeconds=", 'strconv.ParseInt: parsing "": invalid syntax'),
        (ListOptions, "limit=9223372036854775808", 'parsing "9223372036854775808": value out of range'),
        (
            PodPortForwardOptions,
            "ports=80,",
            'cannot convert to []int32: strconv.ParseUint: parsing "": invalid syntax',
        ),
        (PodPortForwardOptions, "ports=65536", 'strconv.ParseUint: parsing "65536": value out of range'),
        (PodLogOptions, "sinceTime=x", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ],
)
def test_values_that_cannot_be_read(options: type[msgspec.Struct], query: str, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        decode_parameters(options, parse_query(query))
    assert caught.value.code == 400
    assert message in caught.value.message


def test_a_port_that_is_named_again_and_again_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def parse_uint(text: str, bits: int) -> int:
        read.append(text)
        return int(text)

    monkeypatch.setattr(parameters, "parse_uint", parse_uint)
    assert decode_parameters(PodPortForwardOptions, parse_query("ports=" + "80,81," * 1000 + "80")).ports == [
        *[80, 81] * 1000,
        80,
    ]
    assert read == ["80", "81"]
