"""A server behind an authenticating proxy, with real certificates on a real socket."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from steersman.controlplane.options import OptionsError
from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.testing import Environment

REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
JANE = {"X-Remote-User": "jane", "X-Remote-Group": "dev"}


@pytest.fixture(scope="module")
def proxies(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """The proxies' CA; `admin` is a proxy's certificate with an administrator's common name."""
    return ensure_certificates(tmp_path_factory.mktemp("proxies"), [])


def options(proxies: CertificateFiles, **more: Any) -> dict[str, Any]:
    return {
        "listen": True,
        "requestheader_client_ca_file": str(proxies.ca),
        "requestheader_username_headers": ("X-Remote-User",),
        "requestheader_group_headers": ("X-Remote-Group",),
        "requestheader_extra_headers_prefix": ("X-Remote-Extra-",),
        **more,
    }


@pytest.fixture
async def environment(keys_folder: Path, proxies: CertificateFiles) -> AsyncIterator[Environment]:
    async with Environment(folder=keys_folder, **options(proxies)) as environment:
        yield environment


def ask(environment: Environment, pair: Iterable[Path], headers: dict[str, str]) -> tuple[int, Any]:
    """Return the status and the authenticated user."""
    context = ssl.create_default_context(cafile=str(environment.ca))
    if files := [str(each) for each in pair]:
        context.load_cert_chain(*files)
    host, _, port = environment.url.removeprefix("https://").partition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)
    fields = {"Content-Type": "application/json", **headers}
    connection.request("POST", PATH, json.dumps(REVIEW), fields)
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body.get("status", {}) if answer.status != 201 else body["status"]["userInfo"]


async def asked(environment: Environment, pair: Iterable[Path] = (), **headers: str) -> tuple[int, Any]:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return await asyncio.to_thread(ask, environment, pair, fields)


async def test_a_proxy_names_the_user(environment: Environment, proxies: CertificateFiles) -> None:
    pair = (proxies.admin, proxies.admin_key)
    status, user = await asked(environment, pair, X_Remote_User="jane", X_Remote_Group="dev")
    assert (status, user) == (201, {"username": "jane", "groups": ["dev", "system:authenticated"]})


async def test_the_proxy_itself_is_nobody(environment: Environment, proxies: CertificateFiles) -> None:
    assert (await asked(environment, (proxies.admin, proxies.admin_key)))[0] == 401


async def test_users_with_certificates_name_only_themselves(environment: Environment) -> None:
    folder = environment.plane.options.data_dir
    files = CertificateFiles(folder)
    status, user = await asked(environment, (files.admin, files.admin_key), X_Remote_User="jane")
    assert (status, user["username"]) == (201, "kubernetes-admin")


async def test_nobody_else_is_believed(environment: Environment) -> None:
    status, user = await asked(
        environment, Authorization=f"Bearer {environment.token()}", X_Remote_User="jane", X_Remote_Group="dev"
    )
    assert (status, user["username"]) == (201, "admin")


async def test_aggregated_servers_are_told(environment: Environment, proxies: CertificateFiles) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    data = (await environment.client().get(path)).json()["data"]
    assert data.keys() == {
        "client-ca-file",
        "requestheader-client-ca-file",
        "requestheader-username-headers",
        "requestheader-group-headers",
        "requestheader-extra-headers-prefix",
        "requestheader-allowed-names",
    }
    assert data["requestheader-client-ca-file"] == proxies.ca.read_text()
    assert data["requestheader-group-headers"] == '["X-Remote-Group"]'
    assert data["requestheader-allowed-names"] == "[]"


async def test_authorities_of_users_and_proxies_must_not_be_the_same(
    keys_folder: Path, proxies: CertificateFiles
) -> None:
    given = options(proxies, client_ca_file=str(proxies.ca))
    with pytest.raises(OptionsError, match="contain overlapping certificates"):
        await Environment(folder=keys_folder, **given).start()
    async with Environment(folder=keys_folder, **given, requestheader_allowed_names=("nobody",)) as environment:
        pair = (proxies.admin, proxies.admin_key)
        status, user = await asked(environment, pair, X_Remote_User="jane")
        assert (status, user["username"]) == (201, "kubernetes-admin")
