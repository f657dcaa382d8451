"""Paths below /debug/history: writes with origin and changes, past states, rights, and hostile requests."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from steersman.kinds.open import OpenKind
from steersman.storage.retention import Retention
from steersman.testing import Environment, User

MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
MERGE = {"content_type": "application/merge-patch+json"}
ADMIN = User("admin", ("system:masters",))
ALICE = User("alice", ("dev",))


SHARED = pytest.mark.asyncio(loop_scope="session")
"""Mark of tests of refused requests, which share one server (`shared_admin`)."""


def with_history(folder: Path) -> Environment:
    return Environment(folder=folder, users=(ADMIN, ALICE), storage="sqlite", history=Retention.parse("64MiB,1h"))


@pytest_asyncio.fixture
async def environment(tmp_path: Path) -> AsyncIterator[Environment]:
    async with with_history(tmp_path / "data") as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_admin(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    """Yield a client of a server with the ConfigMap `a`, for tests that write nothing."""
    async with with_history(tmp_path_factory.mktemp("history") / "data") as running:
        admin = running.client("admin")
        assert (await admin.post(MAPS, config_map("a"))).status == 201
        yield admin


@pytest.fixture
def admin(environment: Environment) -> Any:
    return environment.client("admin")


@pytest.fixture
def alice(environment: Environment) -> Any:
    return environment.client("alice")


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def history(client: Any, path: str, query: str = "") -> dict[str, Any]:
    answer = await client.get(f"/debug/history{path}{query}")
    assert answer.status == 200, answer.body
    body: dict[str, Any] = answer.json()
    return body


async def test_writes_are_shown_with_origin_managers_and_changes(admin: Any) -> None:
    await admin.request("POST", f"{MAPS}?fieldManager=maker", config_map("a", x="1"))
    await admin.request("PUT", f"{MAPS}/a?fieldManager=changer", config_map("a", x="2", y="3"))
    await admin.request("DELETE", f"{MAPS}/a")
    found = await history(admin, f"{MAPS}/a")
    gone, changed, made = found["items"]
    assert [each["type"] for each in (gone, changed, made)] == ["DELETED", "MODIFIED", "ADDED"]
    assert [each["verb"] for each in (gone, changed, made)] == ["delete", "update", "create"]
    assert {each["user"] for each in found["items"]} == {"admin"}
    assert changed["managers"] == ["changer"]
    assert changed["changes"] == [
        {"path": ".data.y", "op": "added", "to": "3"},
        {"path": ".data.x", "op": "changed", "from": "1", "to": "2"},
    ]
    assert changed["time"] >= made["time"]
    assert changed["auditID"] != made["auditID"]
    assert found["records"] is True


async def test_pages_follow_each_other(admin: Any) -> None:
    await admin.request("POST", MAPS, config_map("a"))
    for number in range(6):
        await admin.request("PUT", f"{MAPS}/a", config_map("a", x=str(number)))
    seen: list[str] = []
    token = ""
    while True:
        page = await history(admin, f"{MAPS}/a", f"?limit=3&continue={token}")
        seen += [each["revision"] for each in page["items"]]
        assert len(page["items"]) <= 3
        if not (token := page.get("continue", "")):
            break
    assert len(seen) == 7
    assert sorted(seen, key=int, reverse=True) == seen


async def test_an_object_is_served_as_it_was_at_a_revision_or_time(admin: Any, environment: Environment) -> None:
    made = (await admin.request("POST", MAPS, config_map("a", x="1"))).json()
    await admin.request("PUT", f"{MAPS}/a", config_map("a", x="2"))
    await admin.request("DELETE", f"{MAPS}/a")
    revision = made["metadata"]["resourceVersion"]
    assert await history(admin, f"{MAPS}/a", f"?revision={revision}") == made
    time = (await history(admin, f"{MAPS}/a"))["items"][-1]["time"]
    found = await admin.get(f"/debug/history{MAPS}/a?time={time}")
    assert found.status in (200, 404)  # other writes of the same millisecond count, too
    assert (await admin.get(f"/debug/history{MAPS}/a?revision={int(revision) + 2}")).status == 404


async def test_a_collection_has_the_writes_of_all_its_objects(admin: Any) -> None:
    for name in ("a", "b"):
        await admin.request("POST", MAPS, config_map(name))
    everywhere = await history(admin, "/api/v1/configmaps", "?limit=2")
    assert [each["name"] for each in everywhere["items"]] == ["b", "a"]
    assert {each["namespace"] for each in everywhere["items"]} == {"default"}


async def test_lists_at_a_revision_reach_as_far_back_as_history(admin: Any) -> None:
    made = (await admin.request("POST", MAPS, config_map("a", x="1"))).json()
    for number in range(200):
        await admin.request("PUT", f"{MAPS}/a", config_map("a", x=str(number)))
    revision = made["metadata"]["resourceVersion"]
    listed = await admin.get(f"{MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact")
    (found,) = [each for each in listed.json()["items"] if each["metadata"]["name"] == "a"]
    assert found["data"] == {"x": "1"}


async def test_values_of_secrets_are_hidden_unless_they_are_asked_for(admin: Any) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "one"}}
    made = (await admin.request("POST", SECRETS, secret)).json()
    applied = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "two"}}
    await admin.request("PATCH", f"{SECRETS}/s", {"metadata": applied, "data": {"k": "dHdv"}}, **MERGE)
    answer = await admin.get(f"/debug/history{SECRETS}/s?objects=true")
    assert b"dHdv" not in answer.body
    assert b"b25l" not in answer.body
    assert b'"two"' not in answer.body
    changes = answer.json()["items"][0]["changes"]
    assert {"path": ".data.k", "op": "changed", "hidden": True} in changes
    shown = await history(admin, f"{SECRETS}/s", "?secrets=true")
    assert {"path": ".data.k", "op": "changed", "from": "b25l", "to": "dHdv"} in shown["items"][0]["changes"]
    revision = made["metadata"]["resourceVersion"]
    past = await history(admin, f"{SECRETS}/s", f"?revision={revision}")
    assert past["data"] == {"k": "<hidden>"}
    assert (await history(admin, f"{SECRETS}/s", f"?revision={revision}&secrets=true"))["data"] == made["data"]


async def grant(admin: Any, resource: str, *verbs: str, path: str = "/debug/history*", name: str = "reader") -> None:
    """Let alice read history, and objects of the default namespace."""
    rules: dict[str, list[dict[str, Any]]] = {
        "clusterroles": [{"nonResourceURLs": [path], "verbs": ["get"]}],
        "namespaces/default/roles": [{"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}],
    }
    for plural, rule in rules.items():
        kind = "ClusterRole" if plural == "clusterroles" else "Role"
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rule}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": f"{kind}Binding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
        }
        assert (await admin.request("POST", f"{RBAC}/{plural}", role)).status == 201
        bindings = plural.replace("roles", "rolebindings")
        assert (await admin.request("POST", f"{RBAC}/{bindings}", binding)).status == 201


async def test_all_annotations_of_a_secret_are_hidden(admin: Any) -> None:
    copy = {"kapp.k14s.io/original": "hunter2"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": copy}}
    made = (await admin.request("POST", SECRETS, secret)).json()
    revision = made["metadata"]["resourceVersion"]
    for query in ("?objects=true", f"?revision={revision}"):
        answer = await admin.get(f"/debug/history{SECRETS}/s{query}")
        assert (answer.status, b"hunter2" in answer.body, b"kapp.k14s.io/original" in answer.body) == (200, False, True)


async def test_large_custom_objects_are_decoded_in_worker_threads(admin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member before `metadata` makes every stored value of a custom resource one that must be decoded."""
    await define_widgets(admin)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "aaa": "x" * 1_000_000}
    assert (await admin.request("POST", WIDGETS, widget)).status == 201
    beside: list[bool] = []
    at_revision = OpenKind.at_revision

    def observed(kind: OpenKind, value: bytes, revision: int) -> bytes:
        beside.append(threading.current_thread() is not threading.main_thread())
        return at_revision(kind, value, revision)

    monkeypatch.setattr(OpenKind, "at_revision", observed)
    assert (await admin.get(f"/debug/history{WIDGETS}/a")).status == 200
    assert beside == [True]


async def test_history_needs_the_right_to_the_path_and_to_the_object(admin: Any, alice: Any) -> None:
    await admin.request("POST", MAPS, config_map("a"))
    assert (await alice.get("/debug/history")).status == 403
    assert (await alice.get(f"/debug/history{MAPS}/a")).status == 403
    await grant(admin, "configmaps", "get")
    assert (await alice.get(f"/debug/history{MAPS}/a")).status == 200
    for path in (
        MAPS,
        "/api/v1/configmaps",
        f"{SECRETS}/s",
        "/api/v1/namespaces/kube-system/configmaps/a",
        "/api/v1/nodes/a",
        "/apis/configmaps/v1/default/a",
        "/apis/secrets/v1/default/s",
        "/api/v1/namespaces/default/configmaps/..%2F..%2Fsecrets%2Fdefault%2Fs",
        "/api/v1/namespaces/default/configmaps/%2E%2E/x",
        "/api/v1/namespaces/..%2Fsecrets/configmaps/a",
    ):
        answer = await alice.get(f"/debug/history{path}")
        assert answer.status in (403, 404), (path, answer.body)
        assert b"items" not in answer.body


async def test_the_right_to_an_object_alone_is_not_enough(admin: Any, alice: Any) -> None:
    await admin.request("POST", MAPS, config_map("a"))
    await grant(admin, "configmaps", "get", "list", path="/other")
    assert (await alice.get(f"{MAPS}/a")).status == 200
    assert (await alice.get(f"/debug/history{MAPS}/a")).status == 403


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("revision=0", 400),
        ("revision=-1", 400),
        ("revision=x", 400),
        ("revision=9223372036854775807", 504),
        ("revision=9223372036854775808", 504),
        ("revision=99999999999999999999999", 400),
        ("revision=999999", 504),
        ("time=yesterday", 400),
        ("time=1970-01-01T00:00:00Z", 404),
        ("revision=5&time=2026-01-01T00:00:00Z", 400),
        ("limit=-1", 400),
        ("limit=" + "9" * 50, 400),
        ("limit=9223372036854775807", 200),
        ("continue=18446744073709551615", 200),
        ("objects=perhaps", 400),
        ("revision=" + "1" * 5_000, 400),
    ],
)
@SHARED
async def test_parameters_out_of_range_are_refused(shared_admin: Any, query: str, status: int) -> None:
    answer = await shared_admin.get(f"/debug/history{MAPS}/a?{query}")
    assert answer.status == status, answer.body


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api/v1",
        "/api/v1/unknown/a",
        "/api/v1/namespaces/default/pods/a/status",
        "/api/v1/watch/pods",
        "/api/v1/proxy/nodes/a",
        "/apis/nobody.example.com/v1/things/a",
        "/apis/nobody.example.com/v1/namespaces/../things",
        "/apis/rbac.authorization.k8s.io/v1/%00/x",
        "/apis/a..b/v1/things",
        "/api/v1/namespaces/default/configmaps/%ff",
        "/api/v1/namespaces/default/configmaps/a%0a%1b[31m",
        "/debug/history/api/v1/pods",
        "/" + "x/" * 3_000,
    ],
)
@SHARED
async def test_paths_without_history_are_errors(shared_admin: Any, path: str) -> None:
    answer = await shared_admin.get(f"/debug/history{path}")
    # a collection that was never there has no writes
    assert answer.status in (400, 403, 404) or answer.json()["items"] == []


@SHARED
async def test_only_reads_are_served(shared_admin: Any) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert (await shared_admin.request(method, f"/debug/history{MAPS}", {})).status == 405
        assert (await shared_admin.request(method, "/debug/history", {})).status == 405


async def define_widgets(admin: Any) -> None:
    """Create the definition of the namespaced resource widgets.example.com."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }
    await admin.request("POST", DEFINITIONS, definition)


async def test_objects_of_a_removed_definition_are_shown_as_they_were_stored(admin: Any) -> None:
    await define_widgets(admin)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "size": 1}
    assert (await admin.request("POST", WIDGETS, widget)).status == 201
    await admin.request("PATCH", f"{WIDGETS}/w", {"size": 2}, **MERGE)
    served = await history(admin, f"{WIDGETS}/w", "?objects=true")
    await admin.request("DELETE", f"{WIDGETS}/w")
    await admin.request("DELETE", f"{DEFINITIONS}/widgets.example.com")
    gone = await history(admin, f"{WIDGETS}/w", "?objects=true")
    assert [each["type"] for each in gone["items"]] == ["DELETED", "MODIFIED", "ADDED"]
    assert gone["items"][1]["changes"] == served["items"][0]["changes"]
    assert gone["items"][1]["object"]["size"] == 2


async def test_the_summary_tells_what_is_kept(admin: Any) -> None:
    found = await history(admin, "")
    assert (found["storage"], found["records"], found["bounds"]) == ("sqlite", True, "64MiB,1h0m0s")
    now = await history(admin, "", "?time=2999-01-01T00:00:00Z")
    assert now["revision"] == found["newestRevision"]


async def test_a_server_without_history_serves_what_it_has() -> None:
    async with Environment(users=(ADMIN,)) as environment:
        admin = environment.client("admin")
        await admin.request("POST", MAPS, config_map("a", x="1"))
        await admin.request("PUT", f"{MAPS}/a", config_map("a", x="2"))
        found = await history(admin, f"{MAPS}/a")
        assert [each["type"] for each in found["items"]] == ["MODIFIED", "ADDED"]
        assert "user" not in found["items"][0]
        assert found["records"] is False
        assert (await admin.get(f"/debug/history{MAPS}/a?time=2999-01-01T00:00:00Z")).status == 400
