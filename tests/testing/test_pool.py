"""Servers that are reused by several tests."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from steersman.testing import Pool, ThreadedEnvironment, User
from steersman.testing import pool as pools
from steersman.testing.environment import Environment

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    numbers = count()

    def new_folder() -> Path:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return folder

    pool = Pool(new_folder)
    yield pool
    pool.close()


def test_the_next_test_finds_nothing_of_the_last_whose_clients_fail(pool: Pool) -> None:
    with pool.borrowed() as first:
        before, watching = first.client(), first.client()
        assert before.json("POST", MAPS, {"metadata": {"name": "a"}})[0] == 201
        connection = watching._connection
        connection.request("GET", f"{MAPS}?watch=1", headers={"Authorization": f"Bearer {first.token()}"})
        response = connection.getresponse()
        old = first.url
    with pool.borrowed() as second:
        assert second is first
        assert second.url != old
        with second.client() as client:
            assert client.json("GET", MAPS)[1]["items"] == []
            service = client.json("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")[1]
            assert f":{service['ports'][0]['port']}" == second.url[second.url.rindex(":") :]
        with pytest.raises(OSError):  # noqa: PT011 - refused, or cut off
            before.json("POST", MAPS, {"metadata": {"name": "late"}})
        with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
            response.read()  # of a watch that has ended
        watching.close()
        assert second.environment.journal.entries[0].path == MAPS


def test_the_first_report_tells_nothing_of_how_the_server_was_prepared(pool: Pool, tmp_path: Path) -> None:
    names = {"plural": "widgets", "kind": "Widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    (tmp_path / "crd.json").write_text(json.dumps(definition))
    with pool.borrowed([tmp_path / "crd.json"]) as first:
        assert not first.environment.journal.entries


def test_each_kind_has_a_server_of_its_own(pool: Pool) -> None:
    with pool.borrowed() as one, pool.borrowed() as other:
        assert one is not other
    with pool.borrowed(users=[User("alice")]) as third:
        assert third not in (one, other)
        assert list(third.environment.users) == ["alice"]
    with pool.borrowed() as again:
        assert again in (one, other)
    with pool.new() as fresh:
        assert fresh not in (one, other)


def test_what_cannot_be_brought_back_is_ended(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    with pool.borrowed(clock=True) as moved:
        moved.clock.advance(minutes=1)
    assert moved.thread is None
    with pool.borrowed() as restarted:
        restarted.stop()
        restarted.start()
    assert restarted.thread is None

    async def fail(self: Environment, snapshot: object) -> None:
        raise RuntimeError("no")

    with pool.borrowed() as broken:
        monkeypatch.setattr(Environment, "renew", fail)
    assert broken.thread is None


def test_few_are_kept(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "MOST_KEPT", 4)
    used = []
    for number in range(5):
        with pool.borrowed(max_requests_inflight=100 + number) as environment:
            used.append(environment)
    assert [each.thread is None for each in used] == [True, False, False, False, False]
    pool.close()
    assert all(each.thread is None for each in used)


def stored_objects(environment: ThreadedEnvironment) -> dict[str, bytes]:
    """Return the stored objects of a server, without values that depend on the time and place of its run."""

    async def values() -> dict[str, bytes]:
        storage = environment.environment.plane.storage
        assert storage is not None
        found = {each.key: each.value for each in (await storage.range("/")).items}
        return {key: value for key, value in found.items() if "leases/" not in key and "/default/kubernetes" not in key}

    return environment.run(values())


@pytest.mark.slow
@pytest.mark.parametrize("at_rest", [True, False])
def test_a_cluster_has_exactly_what_it_had_after_tests_of_all_kinds(at_rest: bool, pool: Pool) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"replicas": 5, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a", "command": ["true"]}]}
    crd = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "kind": "Boat"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    }
    made = [
        ("/apis/apps/v1/namespaces/default/deployments", "web", spec, ("deployments", "condition=Available")),
        ("/apis/batch/v1/namespaces/default/jobs", "job", {"template": {"spec": pod}}, ("jobs", "condition=Complete")),
        ("/api/v1/namespaces", "here", {}, ("namespaces", "create")),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "boats.example.com",
            crd,
            ("crd", "condition=Established"),
        ),
    ]
    with pool.borrowed(nodes=1) as first:
        before = stored_objects(first)
    for target, name, body, (resource, until) in [*made, *made[::-1]]:
        with pool.borrowed(nodes=1) as environment, environment.client(timeout=60) as client:
            assert environment is first
            assert stored_objects(environment) == before
            assert client.json("POST", target, {"metadata": {"name": name}, "spec": body})[0] == 201
            if at_rest:
                environment.wait_for(resource, name, until, timeout=60)
            assert client.json("DELETE", "/api/v1/nodes/node-0")[0] == 200
    with pool.borrowed(nodes=1) as environment:
        assert stored_objects(environment) == before
