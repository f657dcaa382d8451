"""Servers in threads of their own: start, requests by blocking clients, stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import ADMIN, NotEstablished, ThreadedEnvironment, User

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {length: {type: integer}}}}}}
"""


@pytest.fixture(scope="module")
def environment() -> Iterator[ThreadedEnvironment]:
    with ThreadedEnvironment(users=[ADMIN, User("alice", ("dev",))]) as started:
        yield started


def test_users_are_who_they_are_said_to_be(environment: ThreadedEnvironment) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    with environment.client("alice") as alice, environment.client("") as nobody:
        status, who = alice.json("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        assert (status, who["status"]["userInfo"]["groups"]) == (201, ["dev", "system:authenticated"])
        assert nobody.json("GET", CONFIG_MAPS)[0] == 403


def test_clients_of_packages_are_made_of_it(environment: ThreadedEnvironment) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    with environment.kubernetes() as api:
        found = kubernetes.client.CoreV1Api(api).list_namespace().items
        assert "default" in [each.metadata.name for each in found]


@pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported:UserWarning")
def test_a_client_of_kr8s_is_made_of_it(environment: ThreadedEnvironment) -> None:
    pytest.importorskip("kr8s")
    found: list[Any] = list(environment.kr8s().get("namespaces"))
    assert "default" in [each.name for each in found]


def test_a_client_of_lightkube_is_made_of_it(environment: ThreadedEnvironment) -> None:
    pytest.importorskip("lightkube")
    from lightkube.resources.core_v1 import Namespace

    with environment.lightkube() as client:
        found = client.list(Namespace)
        assert "default" in [each.metadata.name for each in found if each.metadata]


def test_the_end_leaves_no_thread_and_it_can_be_started_again() -> None:
    environment, before = ThreadedEnvironment(), set(threading.enumerate())
    for _ in range(2):
        with environment:
            with pytest.raises(RuntimeError, match="runs already"):
                environment.start()
            with environment.client() as client:
                assert client.json("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})[0] == 201
        assert before.issuperset(threading.enumerate())  # those of other tests may end meanwhile
    environment.stop()


def test_a_start_that_fails_raises_what_was_wrong_and_leaves_no_thread() -> None:
    environment, before = ThreadedEnvironment(token_auth_file="elsewhere"), set(threading.enumerate())
    with pytest.raises(TypeError, match="token_auth_file"):
        environment.start()
    assert before.issuperset(threading.enumerate())


def test_definitions_are_established(environment: ThreadedEnvironment, tmp_path: Path) -> None:
    (tmp_path / "boats.yaml").write_text(CRD)
    environment.apply_definitions(tmp_path)
    with environment.client() as client:
        boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "a"}, "spec": {"length": 3}}
        assert client.json("POST", "/apis/example.com/v1/namespaces/default/boats", boat)[0] == 201
    environment.apply_definitions(tmp_path / "boats.yaml")


def test_a_refused_definition_is_reported_by_name(environment: ThreadedEnvironment, tmp_path: Path) -> None:
    (tmp_path / "boats.yaml").write_text(CRD.replace("scope: Namespaced", "scope: Anywhere"))
    with pytest.raises(NotEstablished, match=r"^boats\.example\.com: "):
        environment.apply_definitions(tmp_path)


def test_a_client_may_send_requests_as_another_user(environment: ThreadedEnvironment) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    with environment.client() as admin, admin.as_user("bob", "dev", "ops") as bob:
        assert bob.json("POST", reviews, review)[1]["status"]["userInfo"]["groups"] == [
            "dev",
            "ops",
            "system:authenticated",
        ]
        assert admin.json("POST", reviews, review)[1]["status"]["userInfo"]["username"] == "admin"
        with environment.client("alice") as alice, alice.as_user("admin") as refused:
            assert refused.json("GET", CONFIG_MAPS)[0] == 403


def test_coroutines_run_on_the_loop_of_the_server(environment: ThreadedEnvironment) -> None:
    client = environment.environment.client()
    assert environment.run(client.get("/readyz")).status == 200
    stopped = ThreadedEnvironment()
    with pytest.raises(RuntimeError, match="does not run"):
        stopped.wait_for("pods", "a")
