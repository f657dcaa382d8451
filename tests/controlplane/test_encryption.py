"""Servers with encryption: content of the storage file, and reads after changes of keys and configurations."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.controlplane import encryption
from steersman.controlplane.encryption import Encryption
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.metrics import Registry
from steersman.machinery.values import times
from steersman.server.debug_paths import log_level
from steersman.testing import Environment
from tests.storage.encryption.kms_plugin import KMSPlugin

PLAIN = b"plain-text-that-nobody-may-see"
Sequence = list[dict[str, Any]]


def aes(provider: str, *names: str) -> dict[str, Any]:
    keys = [{"name": each, "secret": base64.b64encode(each.encode().ljust(32)).decode()} for each in names]
    return {provider: {"keys": keys}}


def write(path: Path, providers: Sequence, *resources: str) -> None:
    rules = [{"resources": list(resources) or ["*.*"], "providers": providers}]
    document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": rules}
    path.write_text(json.dumps(document))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def environment(folder: Path, **options: Any) -> Environment:
    options.setdefault("storage", "sqlite")
    given = str(folder.with_name("encryption.json"))
    return Environment(folder=folder, encryption_provider_config=given, **options)


def body_of(name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **content}


def stored_in(folder: Path) -> bytes:
    """Return the content of the storage file and its log."""
    return b"".join(each.read_bytes() for each in folder.glob("steersman.db*"))


SECRETS = "/api/v1/namespaces/default/secrets"


async def test_the_file_and_its_log_show_nothing(folder: Path) -> None:
    write(folder.with_name("encryption.json"), [aes("secretbox", "key")])
    async with environment(folder) as running:
        client = running.client()
        await client.request("POST", SECRETS, body_of("a", stringData={"k": PLAIN.decode()}))
        definition = widget_definition()
        await client.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "text": PLAIN.decode()}
        await client.request("POST", "/apis/example.com/v1/namespaces/default/widgets", widget)
        stored = stored_in(folder)
        assert b"k8s:enc:secretbox:v1:key:" in stored
        assert PLAIN not in stored
        assert base64.b64encode(PLAIN)[:30] not in stored
        assert b'"apiVersion"' not in stored


def widget_definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def test_without_the_file_what_was_encrypted_is_refused_and_nothing_else(folder: Path) -> None:
    file = folder.with_name("encryption.json")
    write(file, [aes("aesgcm", "key")], "secrets")
    async with environment(folder) as running:
        await running.client().request("POST", SECRETS, body_of("a"))
    async with Environment(folder=folder, storage="sqlite") as running:
        client = running.client()
        answer = await client.request("GET", f"{SECRETS}/a")
        assert answer.status == 500
        assert answer.json()["message"] == (
            "Internal error occurred: identity transformer tried to read encrypted data"
        )
        answer = await client.request("GET", SECRETS)
        assert answer.status == 429
        assert answer.headers["retry-after"] == "30"
        assert (await client.request("GET", "/api/v1/namespaces/default/configmaps")).status == 200
    async with environment(folder) as running:
        assert (await running.client().request("GET", SECRETS)).status == 200


async def test_an_update_that_changes_nothing_is_written_with_the_new_key(folder: Path) -> None:
    file = folder.with_name("encryption.json")
    write(file, [aes("aescbc", "old")], "secrets")
    async with environment(folder) as running:
        made = (await running.client().request("POST", SECRETS, body_of("a"))).json()
    write(file, [aes("aescbc", "new", "old")], "secrets")
    async with environment(folder) as running:
        client = running.client()
        stale = (await client.request("GET", f"{SECRETS}/a")).json()
        assert stale["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        fresh = (await client.request("PUT", f"{SECRETS}/a", stale)).json()
        assert int(fresh["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
        assert (await client.request("PUT", f"{SECRETS}/a", fresh)).json() == fresh
    write(file, [aes("aescbc", "new")], "secrets")
    async with environment(folder) as running:
        assert (await running.client().request("GET", SECRETS)).json()["items"][0]["metadata"]["name"] == "a"


@pytest.fixture
async def plugin(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[KMSPlugin]:
    plugin = KMSPlugin(f"{tmp_path_factory.mktemp('k')}/s")
    await plugin.start()
    yield plugin
    await plugin.stop()


def kms(plugin: KMSPlugin) -> dict[str, Any]:
    return {"kms": {"apiVersion": "v2", "name": "p", "endpoint": plugin.endpoint, "timeout": "200ms"}}


async def test_a_plugin_is_checked_and_its_restart_needs_none_of_the_server(folder: Path, plugin: KMSPlugin) -> None:
    write(folder.with_name("encryption.json"), [kms(plugin)], "secrets")
    async with environment(folder) as running:
        await running.client().request("POST", SECRETS, body_of("a"))
    await plugin.stop()
    async with environment(folder) as running:
        client = running.client()
        for path in ("/readyz/kms-providers", "/healthz/kms-providers", "/healthz"):
            assert (await client.request("GET", path)).status == 500
        assert (await client.request("GET", "/livez")).status == 200
        assert (await client.request("GET", "/livez/kms-providers")).status == 404
        answer = await client.request("POST", SECRETS, body_of("b"))
        assert answer.status == 500
        assert answer.json()["message"] == "Internal error occurred: got unexpected nil transformer"
        assert (await client.request("GET", SECRETS)).status == 429
        await plugin.start()
        times.advance(30)
        await eventually(lambda: is_ok(client, "/healthz/kms-providers"))
        await client.request("POST", SECRETS, body_of("b"))
        assert (await client.request("GET", f"{SECRETS}/a")).status == 200
        metrics = (await client.request("GET", "/metrics")).body.decode()
        assert (
            'apiserver_storage_transformation_operations_total{resource="secrets",transformation_type="to_storage",'
            'transformer_prefix="k8s:enc:kms:v2:p:",status="OK"} 1\n'
        ) in metrics
        assert 'method_name="/v2.KeyManagementService/Decrypt",grpc_status_code="OK"' in metrics


async def is_ok(client: Any, path: str) -> bool:
    times.advance(4)
    return bool((await client.request("GET", path)).status == 200)


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


async def test_a_file_that_changes_counts_without_a_restart(
    folder: Path, plugin: KMSPlugin, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(log_level(0))
    monkeypatch.setattr(encryption, "LOOK_EVERY", 0.05)
    file = folder.with_name("encryption.json")
    write(file, [{"identity": {}}], "secrets")
    async with environment(folder, encryption_provider_config_automatic_reload=True) as running:
        client = running.client()
        await client.request("POST", SECRETS, body_of("a"))
        assert (await client.request("GET", "/healthz/kms-providers")).status == 200
        file.write_text("{")
        await eventually(lambda: reloads(client, "failure"))
        write(file, [kms(plugin), {"identity": {}}], "secrets")
        await eventually(lambda: reloads(client, "success"))
        first = (await client.request("GET", f"{SECRETS}/a")).json()
        second = (await client.request("PUT", f"{SECRETS}/a", first)).json()
        assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
        assert plugin.calls == ["Status", "Encrypt"]
        assert b"k8s:enc:kms:v2:p:" in stored_in(folder)
    assert f"error processing encryption config file {file}: " in caplog.text
    assert f"reloaded the encryption configuration from {file}" in caplog.text


async def test_a_file_that_could_not_be_used_is_tried_again_soon(folder: Path) -> None:
    file = folder.with_name("encryption.json")
    write(file, [{"identity": {}}], "secrets")
    registry = Registry()
    given = Options(
        data_dir=folder, encryption_provider_config=str(file), encryption_provider_config_automatic_reload=True
    )
    followed = Encryption(given, registry)
    total = "apiserver_encryption_config_controller_automatic_reloads_total"

    def count(status: str) -> int:
        match = re.search(f'{total}{{status="{status}".*}} (.*)', "".join(registry.expose()))
        return int(match[1]) if match else 0

    async def failed_again() -> bool:
        return count("failure") >= 3

    async def succeeded() -> bool:
        return count("success") == 1

    followed.following.start()
    try:
        file.write_text("{")
        followed.following.wake()
        await eventually(failed_again)  # well within the minute between looks
        write(file, [aes("secretbox", "key")], "secrets")
        await eventually(succeeded)
    finally:
        await followed.stop()


async def test_tokens_of_secrets_are_nobodys_while_one_cannot_be_decrypted(folder: Path) -> None:
    write(folder.with_name("encryption.json"), [aes("aesgcm", "key")], "secrets")
    data = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}
    secret = body_of("bootstrap-token-abcdef", type="bootstrap.kubernetes.io/token", stringData=data)
    bearer = {"authorization": "Bearer abcdef.0123456789abcdef"}
    async with environment(folder, enable_bootstrap_token_auth=True) as running:
        client = running.client()
        await client.request("POST", "/api/v1/namespaces/kube-system/secrets", secret)
        assert (await client.request("GET", "/version", **bearer)).status == 200
    async with Environment(folder=folder, storage="sqlite", enable_bootstrap_token_auth=True) as running:
        client = running.client()
        assert (await client.request("GET", SECRETS)).status == 429
        assert (await client.request("GET", "/version", **bearer)).status == 401


async def reloads(client: Any, status: str) -> bool:
    metrics = (await client.request("GET", "/metrics")).body.decode()
    return f'apiserver_encryption_config_controller_automatic_reloads_total{{status="{status}"' in metrics


async def test_what_cannot_be_used_ends_the_start_and_shows_no_key(folder: Path) -> None:
    file = folder.with_name("encryption.json")
    secret = base64.b64encode(b"s" * 31).decode()
    for text in (
        '{"apiVersion": "apiserver.config.k8s.io/v1", "key": "' + secret + '"}',
        json.dumps(
            {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "EncryptionConfiguration",
                "resources": [
                    {
                        "resources": ["secrets"],
                        "providers": [
                            {"aescbc": {"keys": [{"name": "a", "secret": secret}]}},
                            {"identity": {}, "aescbc": {"keys": [{"name": "a", "secret": secret}]}},
                        ],
                    }
                ],
            }
        ),
    ):
        file.write_text(text)
        with pytest.raises(OptionsError, match=r"^error while parsing file: ") as refused:
            await environment(folder).start()
        assert secret not in str(refused.value)
    with pytest.raises(OptionsError, match="must be set with --encryption-provider-config"):
        await Environment(folder=folder, encryption_provider_config_automatic_reload=True).start()
