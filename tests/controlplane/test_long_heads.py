"""Long paths and queries: slow work runs in worker threads, with the same answers as for short ones."""

from __future__ import annotations

from collections.abc import Callable
from threading import current_thread, main_thread
from typing import Any

import pytest

from steersman.authorization import forbidden
from steersman.endpoints import options, parameters, request
from steersman.endpoints import request_info as read_info
from steersman.endpoints.filters import reception
from steersman.machinery.errors import field, go_numbers, status
from steersman.testing import Environment, User

LONG = 40_000
NAMESPACE = "/api/v1/namespaces/default"
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket"}


@pytest.fixture
def environment(shared_environment: Environment) -> Environment:
    return shared_environment


@pytest.fixture
def on_loop(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[bool]]:
    """Return a list that gets an item per call of a function: True if the call ran on the event loop's thread."""

    def watched(module: Any, name: str) -> list[bool]:
        seen: list[bool] = []
        work = getattr(module, name)

        def see(*args: Any, **kwargs: Any) -> Any:
            seen.append(current_thread() is main_thread())
            return work(*args, **kwargs)

        monkeypatch.setattr(module, name, see)
        return seen

    return watched


@pytest.mark.parametrize("path", ["/{}", f"{NAMESPACE}/pods/{{}}", "/api/v1/namespaces/{}/pods"])
async def test_a_long_refusal_is_worded_beside_the_loop(environment: Any, on_loop: Any, path: str) -> None:
    words = on_loop(forbidden, "quote")
    client = environment.client(User("nobody"))
    short = await client.get(path.format("%22%3C"))
    assert set(words) == {True}
    words.clear()
    long = await client.get(path.format("%22%3C" * LONG))
    assert set(words) == {False}
    assert (short.status, long.status) == (403, 403)
    assert long.headers.get("x-content-type-options") == short.headers.get("x-content-type-options") == "nosniff"
    words_of_short = short.json()["message"]
    for unit in ('\\"&lt;', '\\"<'):
        words_of_short = words_of_short.replace(unit, unit * LONG)
    assert long.json()["message"] == words_of_short


async def test_a_long_query_is_read_beside_the_loop(environment: Any, on_loop: Any) -> None:
    read = on_loop(request, "parse_query")
    answer = await environment.client().get(f"{NAMESPACE}/configmaps?limit=1&a={'%22' * LONG}")
    assert (answer.status, read) == (200, [False])


async def test_options_of_a_long_query_are_read_beside_the_loop(environment: Any, on_loop: Any) -> None:
    checked = on_loop(options, "validate_write_options")
    path = f"{NAMESPACE}/configmaps?fieldManager={'%22' * LONG}"
    answer = await environment.client().post(path, {"metadata": {"name": "a"}})
    assert (answer.status, checked) == (422, [False])


@pytest.mark.parametrize("separator", [",", "&ports="])
async def test_many_ports_are_read_beside_the_loop(environment: Any, on_loop: Any, separator: str) -> None:
    read = on_loop(parameters, "parse_uint")
    client = environment.client()
    path = f"{NAMESPACE}/pods/none/portforward?ports="
    short = await client.get(f"{path}80{separator}x", **UPGRADE)
    assert set(read) == {True}
    read.clear()
    ports = separator.join(map(str, range(1, 9_000)))
    long = await client.get(f"{path}{ports}{separator}x", **UPGRADE)
    assert set(read) == {False}
    assert (long.status, long.json()) == (400, short.json())


@pytest.mark.parametrize("option", ["limit", "timeoutSeconds"])
async def test_a_number_that_is_too_long_is_quoted_beside_the_loop(environment: Any, on_loop: Any, option: str) -> None:
    quoted = on_loop(go_numbers, "quote")
    client = environment.client()
    long = await client.get(f"{NAMESPACE}/configmaps?{option}={'%22' * LONG}")
    assert (long.status, quoted) == (400, [False])
    short = await client.get(f"{NAMESPACE}/configmaps?{option}=%22")
    assert long.json()["message"] == short.json()["message"].replace('\\"', '\\"' * LONG)


@pytest.mark.parametrize("method", ["get", "delete"])
@pytest.mark.parametrize("path", [f"{NAMESPACE}/configmaps/{{}}", f"{NAMESPACE}/pods/{{}}/log", "/api/v1/nodes/{}"])
async def test_a_long_name_that_is_not_found_is_quoted_beside_the_loop(
    environment: Any, on_loop: Any, path: str, method: str
) -> None:
    quoted = on_loop(status, "quote")
    ask = getattr(environment.client(), method)
    short = await ask(path.format("%7F"))
    assert set(quoted) <= {True}
    quoted.clear()
    long = await ask(path.format("%7F" * LONG))
    assert set(quoted) <= {False}
    assert long.status == short.status
    assert long.json()["message"] == short.json()["message"].replace("\\x7f", "\\x7f" * LONG)


@pytest.mark.parametrize("path", [f"{NAMESPACE}/configmaps/a", f"{NAMESPACE}/configmaps", f"{NAMESPACE}/pods/a/status"])
async def test_a_long_version_is_quoted_beside_the_loop(environment: Any, on_loop: Any, path: str) -> None:
    quoted = [on_loop(go_numbers, "quote"), on_loop(field, "quote")]
    client = environment.client()
    short = await client.get(f"{path}?resourceVersion=%7F")
    assert [set(each) for each in quoted] == [{True}, {True}]
    for each in quoted:
        each.clear()
    long = await client.get(f"{path}?resourceVersion={'%7F' * LONG}")
    assert [set(each) for each in quoted] == [{False}, {False}]
    assert (long.status, long.json()["message"]) == (
        short.status,
        short.json()["message"].replace("\\x7f", "\\x7f" * LONG),
    )


async def test_a_long_path_is_read_beside_the_loop(environment: Any, on_loop: Any) -> None:
    read = on_loop(reception, "read_request_info")
    answer = await environment.client().get(f"{NAMESPACE}/configmaps/{'%7F' * LONG}")
    assert (answer.status, read) == (404, [False])
    read.clear()
    parsed = on_loop(read_info, "first_parameter")
    listed = await environment.client().get(f"{NAMESPACE}/configmaps?fieldSelector=metadata.name%3D{'%7F' * LONG}")
    assert (listed.status, read, set(parsed)) == (200, [False], {False})
    read.clear()
    refused = await environment.client().get(f"/api/v1/watch?{'%7F' * LONG}")
    assert refused.status == 500
