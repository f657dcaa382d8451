"""Values encrypted with keys that a KMS plugin wraps: calls of the plugin, and plugins that fail, wait or answer
wrongly.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values import times
from steersman.storage.encryption import metrics
from steersman.storage.encryption.encrypted_values import EncryptedValues
from steersman.storage.encryption.providers import Providers
from steersman.storage.encryption.transformer import NeedsKey, Transformer, TransformError
from steersman.storage.interface import Event, Unreadable, Unwritable
from steersman.storage.mapped import MappedStorage
from steersman.storage.memory import MemoryStorage
from tests.storage.encryption.configured import StartPlugin, of_resources, providers_of
from tests.storage.encryption.kms_plugin import KMSPlugin

SECRETS = GroupResource("", "secrets")
PATH = b"/registry/secrets/default/a"


def with_plugin(plugin: KMSPlugin, *, timeout: str = "3s") -> dict[str, Any]:
    kms = {"apiVersion": "v2", "name": "plugin", "endpoint": plugin.endpoint, "timeout": timeout}
    return of_resources("secrets", providers=[{"kms": kms}])


def transformer_of(providers: Providers) -> Transformer:
    found = providers.transformer_for(SECRETS)
    assert found is not None
    return found


async def until_well(providers: Providers) -> None:
    """Wait until the plugins have answered in time: on a busy machine the first checks may take too long."""
    async with asyncio.timeout(30):
        while await providers.plugin_errors() is not None:
            times.advance(4)


async def test_a_plugin_is_asked_once_for_all_values(start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    async with providers_of(with_plugin(plugin)) as providers:
        transformer = transformer_of(providers)
        sealed = [transformer.seal(b"value", PATH) for _ in range(5)]
        assert all(each.startswith(b"k8s:enc:kms:v2:plugin:") for each in sealed)
        assert [transformer.open(each, PATH) for each in sealed] == [(b"value", False)] * 5
        assert plugin.calls == ["Status", "Encrypt"]


async def test_after_a_restart_the_seed_is_unwrapped_once(start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    async with providers_of(with_plugin(plugin)) as providers:
        sealed = [transformer_of(providers).seal(b"value", PATH) for _ in range(3)]
    plugin.calls.clear()
    async with providers_of(with_plugin(plugin)) as providers:
        transformer = transformer_of(providers)
        with pytest.raises(NeedsKey) as missing:
            transformer.open(sealed[0], PATH)
        await asyncio.gather(*(missing.value.fetch() for _ in range(10)))
        assert [transformer.open(each, PATH) for each in sealed] == [(b"value", False)] * 3
    assert plugin.calls == ["Status", "Encrypt", "Decrypt"]


async def test_another_key_makes_what_was_stored_stale(start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    async with providers_of(with_plugin(plugin)) as providers:
        transformer = transformer_of(providers)
        sealed = transformer.seal(b"value", PATH)
        plugin.key_id = "key-2"
        times.advance(30)
        assert await providers.plugin_errors() is None
        assert transformer.open(sealed, PATH) == (b"value", True)
        assert transformer.open(transformer.seal(b"value", PATH), PATH) == (b"value", False)


async def test_an_answer_is_good_for_a_while(start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    async with providers_of(with_plugin(plugin)) as providers:
        plugin.healthz = "the moon is full"
        assert await providers.plugin_errors() is None
        times.advance(21)
        wrong = await providers.plugin_errors()
        assert wrong == (
            "kms-provider-0: kmsv2 Provider plugin is not healthy, error: got unexpected healthz status: "
            "the moon is full"
        )
        plugin.healthz = "ok"
        assert await providers.plugin_errors() is not None
        times.advance(4)
        assert await providers.plugin_errors() is None


async def test_values_are_sealed_for_three_minutes_without_a_plugin(start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    async with providers_of(with_plugin(plugin, timeout="100ms")) as providers:
        await until_well(providers)
        transformer = transformer_of(providers)
        await plugin.stop()
        times.advance(170)
        sealed = transformer.seal(b"value", PATH)
        times.advance(20)
        with pytest.raises(TransformError, match=r'encryptedDEKSource with keyID hash "sha256:.*" expired at 20'):
            transformer.seal(b"value", PATH)
        assert transformer.open(sealed, PATH) == (b"value", False)
        gone = (
            "kms-provider-0: failed to perform status section of the healthz check for KMS Provider plugin, error: "
            "rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = "
            f'"transport: Error while dialing: dial unix {plugin.socket}: connect: no such file or directory"'
        )
        async with asyncio.timeout(10):  # who was asking just as it stopped hears of the end of the connection
            while await providers.plugin_errors() != gone:
                times.advance(4)
        await plugin.start()
        times.advance(4)
        await until_well(providers)
        assert transformer.open(transformer.seal(b"value", PATH), PATH) == (b"value", False)


async def test_a_plugin_may_come_after_the_server(start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    await plugin.stop()
    async with providers_of(with_plugin(plugin, timeout="100ms")) as providers:
        with pytest.raises(TransformError, match="got unexpected nil transformer"):
            transformer_of(providers).seal(b"value", PATH)
        await plugin.start()
        await until_well(providers)
        transformer_of(providers).seal(b"value", PATH)


async def test_a_slow_plugin_is_given_up(start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    async with providers_of(with_plugin(plugin)) as providers:
        sealed = transformer_of(providers).seal(b"value", PATH)
    async with providers_of(with_plugin(plugin, timeout="100ms")) as providers:
        await until_well(providers)
        plugin.delay = 60
        with pytest.raises(NeedsKey) as missing:
            transformer_of(providers).open(sealed, PATH)
        with pytest.raises(TransformError) as refused:
            await missing.value.fetch()
        assert str(refused.value) == (
            "failed to decrypt DEK, error: rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        )


LIES: list[tuple[dict[str, Any], str]] = [
    ({"version": "v1"}, "expected KMSv2 API version v2, got v1"),
    ({"key_id": ""}, 'got invalid KMSv2 KeyID hash "": keyID is empty'),
    ({"key_id": "k" * 1025}, "keyID is 1025 bytes, which exceeds the max size of 1024"),
    ({"encrypt_key_id": "other"}, "errGen=<nil>, statusKeyIDHash="),
    ({"ciphertext": b""}, "errGen=failed to validate encrypted DEK source: encrypted DEK source is empty"),
    ({"ciphertext": b"c" * 1025}, "encrypted DEK source is 1025 bytes, which exceeds the max size of 1024"),
    ({"annotations": {"nodots": b""}}, "errGen=failed to validate annotations: annotations: Invalid value: "),
    ({"annotations": {"a.b": b"a" * 32768}}, "total size of annotations is 32771, which exceeds the max size of 32768"),
    (
        {"annotations": {f"a{number}.b": b"" for number in range(257)}},
        "failed to validate annotations: there are more than 256",
    ),
    ({"annotations": {f"{number}": b"" for number in range(5000)}}, "more than 4096 fields"),
    ({"failure": grpc.StatusCode.INTERNAL}, "rpc error: code = Internal desc = the server was told to fail"),
]


@pytest.mark.parametrize(("lie", "why"), LIES)
async def test_a_plugin_that_lies_is_unwell_and_seals_nothing(
    start_plugin: StartPlugin, lie: dict[str, Any], why: str
) -> None:
    plugin = await start_plugin()
    for name, value in lie.items():
        setattr(plugin, name, value)
    async with providers_of(with_plugin(plugin)) as providers:
        assert why in (await providers.plugin_errors() or "")
        if "version" not in lie:
            with pytest.raises(TransformError, match="got unexpected nil transformer"):
                transformer_of(providers).seal(b"value", PATH)


async def test_what_a_plugin_says_of_itself_is_told_in_part(start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    plugin.healthz, plugin.version = "h" * (1 << 20), "v" * (1 << 20)
    async with providers_of(with_plugin(plugin)) as providers:
        assert len(await providers.plugin_errors() or "") < 4096
        before = metrics.cached_label.cache_info().currsize
        plugin.key_id = "k" * (1 << 20)
        times.advance(30)
        assert "which exceeds the max size of 1024" in (await providers.plugin_errors() or "")
        assert metrics.cached_label.cache_info().currsize == before


async def test_a_seed_that_is_no_seed_is_not_kept(start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    async with providers_of(with_plugin(plugin)) as providers:
        sealed = transformer_of(providers).seal(b"value", PATH)
    plugin.seed = b"s" * (1 << 20)
    async with providers_of(with_plugin(plugin)) as providers:
        with pytest.raises(NeedsKey) as missing:
            transformer_of(providers).open(sealed, PATH)
        with pytest.raises(TransformError, match="longer than 1024 bytes"):
            await missing.value.fetch()


@pytest.mark.parametrize("stored", [b"", b"\x0a", b"\xff" * 40, b"\x0a\x01x", b"\x28\x07\x0a\x01x", b"\x0b\x0c"])
async def test_what_is_no_encrypted_object_is_not_opened(start_plugin: StartPlugin, stored: bytes) -> None:
    plugin = await start_plugin()
    async with providers_of(with_plugin(plugin)) as providers:
        with pytest.raises(TransformError):
            transformer_of(providers).open(b"k8s:enc:kms:v2:plugin:" + stored, PATH)


async def test_storage_waits_for_keys_of_the_past_and_says_what_it_cannot_read(start_plugin: StartPlugin) -> None:
    plugin = await start_plugin()
    inner = await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    async with providers_of(with_plugin(plugin)) as providers:
        storage = MappedStorage(inner, EncryptedValues(transformer_of(providers)))
        first = await storage.create("/a", b"one")
        await storage.update("/a", b"two", expected_revision=first.mod_revision)
        await storage.create("/b", b"three")
    async with providers_of(with_plugin(plugin)) as providers:
        storage = MappedStorage(inner, EncryptedValues(transformer_of(providers)))
        events: list[Event] = []
        await storage.subscribe("/", after_revision=1, deliver=events.extend)
        assert [each.current.value for each in events if each.current] == [b"one", b"two", b"three"]
        await storage.create("/c", b"four")
        assert events[-1].current is not None
        assert events[-1].current.value == b"four"
    async with providers_of(with_plugin(plugin)) as providers:
        storage = MappedStorage(inner, EncryptedValues(transformer_of(providers)))
        plugin.failure = grpc.StatusCode.UNAVAILABLE
        for read in (storage.get("/a"), storage.range("/"), storage.subscribe("/", after_revision=1, deliver=print)):
            with pytest.raises(Unreadable, match='unable to transform key "/a": failed to decrypt DEK, error: rpc'):
                await read
        times.advance(200)
        with pytest.raises(Unwritable):
            await storage.create("/d", b"five")
        assert await inner.get("/d") is None
        plugin.failure = None
        assert [each.value for each in (await storage.range("/")).items] == [b"two", b"three", b"four"]
    await inner.close()


async def test_a_socket_that_is_none_is_told(tmp_path: Path) -> None:
    async with providers_of(with_plugin(KMSPlugin(f"{tmp_path}/none.sock"), timeout="10ms")) as providers:
        assert "code = DeadlineExceeded desc = latest balancer error: connection error: desc = " in (
            await providers.plugin_errors() or ""
        )
