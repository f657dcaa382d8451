"""Servers in the test's own process: users, files, start and stop."""

from __future__ import annotations

import asyncio
import json
import ssl
import stat
import subprocess
import sys
import urllib.request
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import ADMIN, Environment, User

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ALICE = User("alice", ("dev", "ops"))
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


async def who_is(client: Any) -> dict[str, Any]:
    answer = await client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", REVIEW)
    user: dict[str, Any] = answer.json()["status"]["userInfo"]
    return user


async def test_users_are_who_they_are_said_to_be(keys_folder: Path) -> None:
    async with Environment(users=[ADMIN, ALICE], folder=keys_folder) as environment:
        assert (await who_is(environment.client()))["groups"] == ["system:masters", "system:authenticated"]
        alice = environment.client("alice")
        assert (await who_is(alice))["username"] == "alice"
        assert (await who_is(alice))["groups"] == ["dev", "ops", "system:authenticated"]
        assert (
            (await environment.client("").get(CONFIG_MAPS))
            .json()["message"]
            .startswith('configmaps is forbidden: User "system:anonymous"')
        )
        assert (await who_is(alice.as_user("admin")))["username"] == "admin"
        with pytest.raises(KeyError, match="bob"):
            environment.client("bob")
        with pytest.raises(KeyError, match="bob"):
            alice.as_user("bob")


@pytest.mark.parametrize("name", ["cn=alice,ou=dev", 'al"ice'])
async def test_names_may_hold_what_separates_the_columns_of_the_token_file(keys_folder: Path, name: str) -> None:
    async with Environment(users=[User(name, ("dev", 'o"ps'))], folder=keys_folder) as environment:
        user = await who_is(environment.client(name))
        assert (user["username"], user["uid"], user["groups"]) == (name, name, ["dev", 'o"ps', "system:authenticated"])


async def test_tokens_are_random_unless_given_and_for_the_owners_eyes(tmp_path: Path) -> None:
    user = User("given", token="of-mine")
    first, second = (Environment(users=[ADMIN, user], folder=tmp_path) for _ in range(2))
    assert first.token() != second.token()
    assert first.token("given") == "of-mine"
    async with first:
        assert stat.S_IMODE((tmp_path / "tokens.csv").stat().st_mode) == 0o600


async def test_pods_need_no_service_account_unless_asked_for(keys_folder: Path) -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    cases: tuple[tuple[dict[str, Any], int], ...] = (({}, 201), ({"disable_admission_plugins": ()}, 403))
    for options, status in cases:
        async with Environment(folder=keys_folder, **options) as environment:
            assert (await environment.client().post("/api/v1/namespaces/default/pods", pod)).status == status


async def test_a_watch_is_read_as_it_comes(keys_folder: Path) -> None:
    async with Environment(folder=keys_folder) as environment:
        client = environment.client()
        async with await client.open("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=0") as watching:
            await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
            event = json.loads(await anext(aiter(watching)))
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")


async def test_what_it_makes_by_itself_goes_with_it() -> None:
    environment = Environment()
    async with environment:
        folder = environment.plane.options.data_dir
        assert folder.is_dir()
    assert not folder.exists()
    with pytest.raises(RuntimeError, match="does not run"):
        environment.client()


async def test_objects_are_there_again_where_a_folder_and_a_file_are_asked_for(tmp_path: Path) -> None:
    environment = Environment(folder=tmp_path / "data", storage="sqlite")
    async with environment:
        await environment.client().post(CONFIG_MAPS, {"metadata": {"name": "kept"}})
    async with environment:
        assert (await environment.client().get(f"{CONFIG_MAPS}/kept")).status == 200


async def test_a_start_that_fails_leaves_nothing_and_can_be_made_again() -> None:
    environment = Environment(token_auth_file="elsewhere")
    with pytest.raises(TypeError, match="'nodez' is no argument of Environment, and no flag"):
        await Environment(nodez=3).start()
    with pytest.raises(TypeError, match="token_auth_file"):
        await environment.start()
    assert environment._temporary is None
    await environment.stop()


async def test_it_is_not_started_twice(keys_folder: Path) -> None:
    async with Environment(folder=keys_folder) as environment:
        with pytest.raises(RuntimeError, match="runs already"):
            await environment.start()
        assert (await environment.client().get("/version")).status == 200


async def test_without_a_socket_there_is_no_address(keys_folder: Path) -> None:
    async with Environment(folder=keys_folder) as environment:
        for ask in (lambda: environment.url, lambda: environment.ca, environment.kubeconfig):
            with pytest.raises(RuntimeError, match="listen=True"):
                ask()


async def test_a_kubeconfig_has_all_that_another_client_needs(tmp_path: Path) -> None:
    async with Environment(users=[ADMIN, ALICE], folder=tmp_path, listen=True) as environment:
        path = environment.kubeconfig("alice")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        config = json.loads(path.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        assert cluster["server"] == environment.url
        assert b64decode(cluster["certificate-authority-data"]) == environment.ca.read_bytes()
        context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
        headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}
        request = urllib.request.Request(
            f"{environment.url}/apis/authentication.k8s.io/v1/selfsubjectreviews", json.dumps(REVIEW).encode(), headers
        )

        def ask() -> Any:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return json.load(answer)

        assert (await asyncio.to_thread(ask))["status"]["userInfo"]["username"] == "alice"


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        ("steersman.testing", ("pytest", "hypothesis", "_pytest", "h2", "kubernetes")),
        ("steersman, steersman.cli.main, steersman.controlplane.control_plane", ("steersman.testing",)),
    ],
)
def test_neither_frameworks_nor_servers_come_along(imported: str, absent: tuple[str, ...]) -> None:
    code = f"import sys, {imported}; print(*sorted(set(sys.modules) & {set(absent)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "\n"


async def test_anybody_may_be_a_user(keys_folder: Path) -> None:
    async with Environment(folder=keys_folder) as environment:
        carol = User("carol", ("dev",))
        assert (await who_is(environment.client(carol)))["groups"] == ["dev", "system:authenticated"]
        assert (await who_is(environment.client().as_user(carol)))["username"] == "carol"
        assert environment.token(carol) == environment.token(carol)
        before = environment.token(carol)
    async with environment:
        assert environment.token(carol) != before


async def test_a_clock_moves_what_works_on_the_server_too(keys_folder: Path) -> None:
    async with Environment(folder=keys_folder, nodes=1, clock=True) as environment:
        lease = await environment.wait_for("leases", "node-0", namespace="kube-node-lease")
        await environment.clock.advance(minutes=10)
        later = await environment.wait_for("leases", "node-0", namespace="kube-node-lease")
        assert lease["spec"]["renewTime"] < later["spec"]["renewTime"]
        assert await environment.wait_for("nodes", "node-0", "condition=Ready")
    async with Environment(folder=keys_folder) as environment:
        with pytest.raises(RuntimeError, match="no clock"):
            _ = environment.clock


async def test_a_snapshot_is_brought_back_with_its_uids(keys_folder: Path) -> None:
    async with Environment(folder=keys_folder, controllers=True) as environment:
        client = environment.client()
        made = (await client.post("/api/v1/namespaces", {"metadata": {"name": "a"}})).json()
        await environment.wait_for("serviceaccounts", "default", namespace="a")
        await environment.settle(10)
        snapshot = environment.snapshot()
        for _ in range(2):
            await client.delete("/api/v1/namespaces/a")
            await environment.wait_for("ns", "a", "delete")
            await environment.restore(snapshot)
            again = await environment.wait_for("ns", "a", "create")
            assert again["metadata"]["uid"] == made["metadata"]["uid"]
            assert await environment.wait_for("serviceaccounts", "default", namespace="a")


async def test_tokens_and_events_expire_when_their_time_has_come(keys_folder: Path) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    events = "/api/v1/namespaces/default/events"
    about = {"kind": "Pod", "namespace": "default", "name": "a"}
    async with Environment(folder=keys_folder, clock=True) as environment:
        client = environment.client()
        await client.post(accounts, {"metadata": {"name": "robot"}})
        review = {"spec": {"expirationSeconds": 600}}
        token = (await client.post(f"{accounts}/robot/token", review)).json()["status"]["token"]
        await client.post(events, {"metadata": {"name": "a"}, "involvedObject": about})
        for minutes, code, kept in ((9, 201, 1), (4, 401, 1), (50, 401, 0)):
            await environment.clock.advance(minutes=minutes)
            answer = await client.post(
                "/apis/authentication.k8s.io/v1/selfsubjectreviews", REVIEW, authorization=f"Bearer {token}"
            )
            assert answer.status == code
            assert len((await client.get(events)).json()["items"]) == kept
