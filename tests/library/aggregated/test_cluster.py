"""Requests to a cluster's API server, with many kinds of answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from steersman.api.authentication.v1 import TokenReview, TokenReviewSpec
from steersman.client.resources import NAMESPACES, TOKEN_REVIEWS
from steersman.library.aggregated.cluster import Cluster, find_cluster
from steersman.library.aggregation import ClusterError
from steersman.machinery.errors.status import StatusError
from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.work.backoff import Backoff
from tests.aggregator.extension_server import ExtensionServer, Received, response

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
THING = "/api/v1/namespaces/a"


async def read_name(cluster: Cluster) -> str:
    return (await cluster.request(partial(cluster.client.get, NAMESPACES, "a"))).metadata.name


def thing(name: str) -> bytes:
    return response({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "newer": 1}, "spec": None})


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return ensure_certificates(tmp_path_factory.mktemp("api-server"))


@pytest.fixture
async def server(files: CertificateFiles) -> AsyncIterator[ExtensionServer]:
    server = ExtensionServer(files)
    await server.start()
    yield server
    await server.stop()


def kubeconfig(folder: Path, url: str, files: CertificateFiles) -> Path:
    path = folder / "config"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "it",
                "clusters": [{"name": "it", "cluster": {"server": url, "certificate-authority": str(files.ca)}}],
                "users": [{"name": "me", "user": {"token": "secret"}}],
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
            }
        )
    )
    return path


@pytest.fixture
async def cluster(
    server: ExtensionServer, files: CertificateFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Cluster]:
    monkeypatch.setattr("steersman.library.aggregated.cluster.BACKOFF", Backoff(0.0))
    found = find_cluster(kubeconfig(tmp_path, f"https://127.0.0.1:{server.port}/below/", files))
    yield found
    await found.aclose()


async def test_it_is_asked_below_its_url_with_the_credentials_of_the_kubeconfig(
    server: ExtensionServer, cluster: Cluster
) -> None:
    server.paths[f"/below{THING}"] = thing("a")
    assert await read_name(cluster) == "a"
    asked = server.received[0]
    assert (asked.target, asked.first("authorization")) == (f"/below{THING}", "Bearer secret")


async def test_a_review_comes_back_with_its_answer_and_what_is_not_known_is_left_out(
    server: ExtensionServer, cluster: Cluster
) -> None:
    answer = {
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": None},
        "status": {"authenticated": True, "user": {"username": "alice", "extra": None, "new": 1}},
    }
    server.paths[f"/below{REVIEWS}"] = response(answer, "201 Created")
    asked = TokenReview(spec=TokenReviewSpec(token="t"))
    review = await cluster.request(partial(cluster.client.create, TOKEN_REVIEWS, asked))
    assert (review.status.authenticated, review.status.user.username) == (True, "alice")
    assert json.loads(server.received[0].body)["spec"] == {"token": "t"}


@pytest.mark.parametrize(
    "first",
    [
        response("busy", "429 Too Many Requests"),
        response({"kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError"}, "500 Oops"),
    ],
)
async def test_what_fails_in_passing_is_asked_again(server: ExtensionServer, cluster: Cluster, first: bytes) -> None:
    answers = [first, thing("a")]

    def answer(_: Received) -> bytes:
        return answers.pop(0)

    server.paths[f"/below{THING}"] = answer
    assert (await read_name(cluster)) == "a"


async def test_a_status_is_told_as_it_is(server: ExtensionServer, cluster: Cluster) -> None:
    status = {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "not you"}
    server.paths[f"/below{THING}"] = response(status, "403 Forbidden")
    with pytest.raises(StatusError, match="not you") as refused:
        await read_name(cluster)
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
    assert len(server.received) == 1


@pytest.mark.parametrize("answer", [b"", response("no JSON"), response({"metadata": 3})])
async def test_what_is_no_answer_is_unavailable(server: ExtensionServer, cluster: Cluster, answer: bytes) -> None:
    server.paths[f"/below{THING}"] = answer
    with pytest.raises(StatusError) as refused:
        await read_name(cluster)
    assert refused.value.code == 503


async def test_another_authority_is_not_believed(
    server: ExtensionServer, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    others = ensure_certificates(tmp_path_factory.mktemp("others"))
    cluster = find_cluster(kubeconfig(tmp_path, f"https://127.0.0.1:{server.port}", others))
    with pytest.raises(StatusError, match="certificate signed by unknown authority"):
        await read_name(cluster)
    assert server.received == []


async def test_a_pod_knows_where_its_cluster_is(
    server: ExtensionServer, files: CertificateFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    (tmp_path / "ca.crt").write_bytes(files.ca.read_bytes())
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("first\n")
    server.paths[THING] = thing("a")
    cluster = find_cluster("", account=tmp_path)
    await read_name(cluster)
    token.write_text("second\n")
    await read_name(cluster)
    await cluster.aclose()
    assert [each.first("authorization") for each in server.received] == ["Bearer first", "Bearer second"]


def test_no_cluster_is_told_in_a_sentence(
    tmp_path: Path, files: CertificateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ClusterError, match="outside of a cluster, name a kubeconfig"):
        find_cluster("")
    with pytest.raises(ClusterError, match="missing"):
        find_cluster(tmp_path / "missing")
    with pytest.raises(ClusterError, match="is no https URL"):
        find_cluster(kubeconfig(tmp_path, "http://127.0.0.1:1", files))
