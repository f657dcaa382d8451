"""Several servers in one process."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
import yaml

from steersman.testing import ADMIN, Environment, ThreadedEnvironment, User, clusters, threaded_clusters

MAPS = "/api/v1/namespaces/default/configmaps"


def test_clusters_are_apart_and_each_is_restored() -> None:
    async def work() -> None:
        async with clusters("hub", "east", "west") as found:
            assert list(found) == ["hub", "east", "west"]
            before = found.snapshot()
            for name, each in found.items():
                assert (await each.client().post(MAPS, {"metadata": {"name": name}})).status == 201
            names = {name: await names_of(each) for name, each in found.items()}
            assert names == {"hub": ["hub"], "east": ["east"], "west": ["west"]}
            await found.restore({"east": before["east"]})
            assert [await names_of(each) for each in found.values()] == [["hub"], [], ["west"]]

    async def names_of(environment: Environment) -> list[str]:
        answer = await environment.client().get(MAPS)
        return [each["metadata"]["name"] for each in answer.json()["items"]]

    asyncio.run(work())


def test_one_kubeconfig_has_a_context_for_each_cluster(tmp_path: Path) -> None:
    users = [ADMIN, User("alice")]
    with threaded_clusters("hub", "spoke", users=users) as found:
        before = found.snapshot()
        path = found.write_kubeconfig(str(tmp_path / "all.kubeconfig"), "alice")
        assert path.stat().st_mode & 0o077 == 0
        config = yaml.safe_load(path.read_text())
        assert config["current-context"] == "hub"
        tokens = {each["name"]: each["user"]["token"] for each in config["users"]}
        for context in config["contexts"]:
            name = context["name"]
            assert context["context"] == {"cluster": name, "user": f"alice@{name}"}
            assert tokens[f"alice@{name}"] == found[name].token("alice")
        servers = {each["name"]: each["cluster"]["server"] for each in config["clusters"]}
        assert servers == {name: each.url for name, each in found.items()}
        assert tokens["alice@hub"] != tokens["alice@spoke"]
        with found["hub"].client() as client:
            assert client.json("POST", MAPS, {"metadata": {"name": "a"}})[0] == 201
            found.restore(before)
            assert client.json("GET", f"{MAPS}/a")[0] == 404


def test_tokens_and_certificates_of_a_cluster_are_nothing_in_another() -> None:
    with threaded_clusters("one", "two") as found, found["one"].client() as client:
        assert client.json("GET", MAPS)[0] == 200
        with found["two"].client("") as anonymous:
            assert anonymous.json("GET", MAPS)[0] == 403
        with found["two"].client(User("stranger")) as other:
            assert other.json("GET", MAPS)[0] == 403
        assert found["one"].token() != found["two"].token()


def test_every_cluster_has_a_name_of_its_own() -> None:
    for names in ((), ("a", "a")):
        with pytest.raises(ValueError, match="clusters need a name each"), threaded_clusters(*names):
            pytest.fail("the names are wrong")


def test_a_failing_start_stops_the_clusters_before_it() -> None:
    class Odd(ValueError):
        """An error of the test."""

    started: list[ThreadedEnvironment] = []

    def work() -> None:
        with threaded_clusters("one", "two") as found:
            started.extend(found.values())
            raise Odd

    with pytest.raises(Odd):
        work()
    assert [each.thread for each in started] == [None, None]


def test_a_reset_takes_less_than_50_ms() -> None:
    async def work() -> list[float]:
        async with clusters(*map(str, range(5)), nodes=1) as found:
            before = found.snapshot()
            spent = []
            for name, each in found.items():
                pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
                assert (await each.client().post("/api/v1/namespaces/default/pods", pod)).status == 201
                await each.wait_for("pod", "a", "condition=Ready")
                began = time.process_time()
                await each.restore(before[name])
                spent.append(time.process_time() - began)
            return spent

    assert sorted(asyncio.run(work()))[2] < 0.05
