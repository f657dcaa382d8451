"""Ciphers: values that kube-apiserver has written can be decrypted, and changed ones cannot."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from steersman.machinery.identity.schema import GroupResource
from steersman.storage.encryption.ciphers import (
    AESCBCCipher,
    AESGCMCipher,
    DerivedGCMCipher,
    Identity,
    SecretboxCipher,
)
from steersman.storage.encryption.transformer import NeedsKey, Transformer, TransformError
from tests.storage.encryption.configured import StartPlugin, providers_of
from tests.storage.encryption.kube_apiserver import (
    KINDS,
    RECORDED,
    KubeAPIServer,
    configuration,
    find_program,
    key_of,
)

CIPHERS: dict[str, Transformer] = {
    "aescbc": AESCBCCipher(b"k" * 32),
    "aesgcm": AESGCMCipher(b"k" * 24),
    "secretbox": SecretboxCipher(b"k" * 32),
    "derived": DerivedGCMCipher(b"k" * 32),
}
PATH = b"/registry/secrets/default/a"


@pytest.mark.parametrize("name", CIPHERS)
@pytest.mark.parametrize("size", [1, 15, 16, 17, 100_000])
def test_what_was_sealed_is_opened_and_never_sealed_alike_twice(name: str, size: int) -> None:
    cipher = CIPHERS[name]
    value = b"v" * size
    sealed = cipher.seal(value, PATH)
    assert size < 16 or value not in sealed
    assert cipher.open(sealed, PATH) == (value, False)
    assert cipher.seal(value, PATH) != sealed


@pytest.mark.parametrize("name", ["aesgcm", "secretbox", "derived"])
def test_what_was_changed_is_not_opened(name: str) -> None:
    cipher = CIPHERS[name]
    sealed = cipher.seal(b"value", PATH)
    for at in range(len(sealed)):
        with pytest.raises(TransformError):
            cipher.open(sealed[:at] + bytes((sealed[at] ^ 1,)) + sealed[at + 1 :], PATH)


@pytest.mark.parametrize("name", CIPHERS)
def test_what_was_cut_off_is_not_opened(name: str) -> None:
    cipher = CIPHERS[name]
    sealed = cipher.seal(b"value" * 10, PATH)
    for size in range(len(sealed) if name != "aescbc" else 16):
        with pytest.raises(TransformError):
            cipher.open(sealed[:size], PATH)


@pytest.mark.parametrize("name", ["aesgcm", "derived"])
def test_a_value_under_another_key_of_storage_is_not_opened(name: str) -> None:
    cipher = CIPHERS[name]
    with pytest.raises(TransformError, match="cipher: message authentication failed"):
        cipher.open(cipher.seal(b"value", PATH), b"/registry/secrets/default/b")


def test_plain_storage_refuses_what_is_encrypted() -> None:
    assert Identity().open(b'{"kind":"Secret"}', PATH) == (b'{"kind":"Secret"}', False)
    with pytest.raises(TransformError, match="identity transformer tried to read encrypted data"):
        Identity().open(b"k8s:enc:aescbc:v1:one:...", PATH)


async def opened(transformer: Transformer, stored: bytes, path: bytes) -> bytes:
    try:
        return transformer.open(stored, path).value
    except NeedsKey as missing:
        await missing.fetch()
    return transformer.open(stored, path).value


@pytest.mark.parametrize("resource", KINDS)
async def test_what_kube_apiserver_has_stored_is_read(resource: str, start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    recorded = json.loads(RECORDED.read_text())
    key = key_of(resource, "recorded")
    async with providers_of(configuration(plugin.endpoint)) as providers:
        transformer = providers.transformer_for(GroupResource("", resource))
        assert transformer is not None
        value = json.loads(await opened(transformer, base64.b64decode(recorded[key]), key.encode()))
        assert (value["kind"], value["metadata"]["name"]) == (KINDS[resource][0], "recorded")


@pytest.mark.slow
async def test_kube_apiserver_reads_what_is_stored_here(tmp_path: Path) -> None:
    if not (find_program("kube-apiserver") and find_program("etcd")):
        pytest.skip("no kube-apiserver and etcd in the folder that $STEERSMAN_REFERENCE names, or in PATH")
    with KubeAPIServer(tmp_path) as server:
        async with providers_of(configuration(server.kms_endpoint)) as providers:
            for resource in KINDS:
                server.create(resource, "theirs")
                transformer = providers.transformer_for(GroupResource("", resource))
                assert transformer is not None
                theirs = key_of(resource, "theirs")
                value = await opened(transformer, server.stored(theirs), theirs.encode())
                ours = key_of(resource, "ours")
                server.store(ours, transformer.seal(value.replace(b'"theirs"', b'"ours"'), ours.encode()))
                document = json.loads(server.request("GET", f"/api/v1/namespaces/default/{resource}/ours"))
                assert document["metadata"]["name"] == "ours"
