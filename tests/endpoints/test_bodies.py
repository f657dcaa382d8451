"""Media types of bodies, and bodies that are decoded again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.storage.interface import Conflict
from tests.endpoints.small_server import SmallServer

NOTES = "/api/v1/namespaces/ns/configmaps"
JSON = "application/json"
SCHEME = '"pkg/runtime/scheme.go:111"'
UNREAD = '299 - "unknown field \\"unknown\\""'
UNKNOWN = f'no kind "Foo" is registered for version "v1" in scheme {SCHEME}'


async def refusal(small: SmallServer, body: str) -> str:
    answer = await small.ask("POST", NOTES, body.encode(), content_type=JSON)
    assert answer.status == 400, answer.text
    text: str = answer.json()["message"]
    return text


@pytest.mark.parametrize(
    "told",
    [
        "",
        '"kind":"","apiVersion":"v1",',
        '"kind":"ConfigMap",',
        '"kind":null,"apiVersion":null,',
        '"Kind":"ConfigMap","ApiVersion":"v1",',
        '"kind":"Foo","apiVersion":"v1","kind":"ConfigMap",',
    ],
)
async def test_what_a_body_does_not_say_is_as_the_path_has_it(small: SmallServer, told: str) -> None:
    answer = await small.ask("POST", NOTES, f'{{{told}"metadata":{{"name":"a"}}}}'.encode(), content_type=JSON)
    assert answer.status == 201, answer.text


@pytest.mark.parametrize(
    "told",
    [
        '"kind":"Foo"',
        '"KIND":"Foo"',
        '"\\u006bind":"Foo"',
        '"\u212aind":"Foo"',
        '"kind":"Foo","metadata":[]',
        '"kind":"ConfigMap","apiVersion":"v1","kind":"Foo"',
    ],
)
async def test_a_kind_is_found_however_it_is_told(small: SmallServer, told: str) -> None:
    body = f'{{"metadata":{{"name":"a"}},{told}}}'
    assert await refusal(small, body) == f'Foo in version "v1" cannot be handled as a ConfigMap: {UNKNOWN}'


async def test_names_of_data_say_nothing_of_the_kind(small: SmallServer) -> None:
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1"}
    note = {"metadata": {"name": "a", "ownerReferences": [owner]}, "data": {"kind": "x", "ApiVersion": "y"}}
    assert (await small.ask("POST", NOTES, note, content_type=JSON)).status == 201


async def test_what_is_wrong_with_the_kind_is_told_before_what_is_wrong_with_the_rest(small: SmallServer) -> None:
    body = '{"kind":"ConfigMap","apiVersion":"v2","metadata":[]}'
    why = f'no kind "ConfigMap" is registered for version "v2" in scheme {SCHEME}'
    assert await refusal(small, body) == f'ConfigMap in version "v2" cannot be handled as a ConfigMap: {why}'


async def test_a_body_is_read_again_if_another_write_comes_first(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is the same as with one decoding: no duplicate warnings, and nothing of the first attempt."""
    await small.note("a", n="0")
    storage = small.storage
    update = storage.update
    attempts: list[bytes] = []

    async def second_comes_through(key: str, value: bytes, **more: Any) -> Any:
        attempts.append(value)
        if len(attempts) == 1:
            await update(key, value.replace(b'"n":"1"', b'"n":"2"'), **more)
            raise Conflict(key, None)
        return await update(key, value, **more)

    monkeypatch.setattr(storage, "update", second_comes_through)
    body = {"metadata": {"name": "a"}, "data": {"n": "1"}, "unknown": 1}
    answer = await small.ask("PUT", f"{NOTES}/a", body, content_type=JSON)
    assert (answer.status, len(attempts)) == (200, 2)
    assert answer.headers.get_all("warning") == [UNREAD]
    assert answer.json()["data"] == {"n": "1"}
    assert json.loads(attempts[1])["data"] == {"n": "1"}
