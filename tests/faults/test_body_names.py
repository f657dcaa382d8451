"""Names in bodies of requests that create objects."""

from __future__ import annotations

import pytest

from steersman.faults.body_names import NAMELESS, BodyName, name_in

PROTOBUF = b'k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\x0f\n\r\n\x05named\x12\x00\x1a\x02ns\x1a\x00"\x00'


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"metadata": {"name": "a", "labels": {"b": "c"}}, "spec": {}}', BodyName("a")),
        (b'{"metadata": {"generateName": "a-"}}', BodyName("", "a-")),
        (PROTOBUF, BodyName("named")),
        (PROTOBUF[:30], NAMELESS),
        (b"k8s\x00", NAMELESS),
        (b"metadata:\n  name: yaml", NAMELESS),
        (b'{"metadata": []}', NAMELESS),
        (b'{"metadata": {"name": "\xff"}}', NAMELESS),
        (b"", NAMELESS),
    ],
)
def test_names_are_found_in_bodies(body: bytes, name: BodyName) -> None:
    assert name_in(body) == name
