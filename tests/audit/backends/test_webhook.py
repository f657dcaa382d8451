"""Audit webhook: events are posted as a list, retried after any failure, and counted if all attempts fail."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from steersman.audit.backends.webhook import WebhookBackend
from steersman.server.certificates import CertificateFiles
from steersman.webhooks.client import WebhookClient
from steersman.webhooks.kubeconfig import load_kubeconfig
from tests.audit.recorded import counted, record
from tests.https_hook import HttpsHook


class Sink(HttpsHook):
    """Accepts lists of events after a number of refusals."""

    def __init__(self, files: CertificateFiles) -> None:
        super().__init__(files)
        self.refusals = 0
        self.lists: list[Any] = []

    def answered(self, target: str, body: Any) -> bytes:
        if self.refusals:
            self.refusals -= 1
            return b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\nContent-Type: text/plain\r\n\r\nno\n"
        self.lists.append(body)
        return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest_asyncio.fixture
async def sink(hook_files: CertificateFiles) -> AsyncIterator[Sink]:
    async with Sink(hook_files) as found:
        yield found


def client(sink: Sink, folder: Path, waits: list[float]) -> WebhookClient:
    config = {
        "clusters": [
            {"name": "h", "cluster": {"server": f"{sink.root}/a", "certificate-authority-data": sink.ca_bundle}}
        ],
        "contexts": [{"name": "c", "context": {"cluster": "h"}}],
        "current-context": "c",
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return WebhookClient(load_kubeconfig(folder / "kubeconfig"), 10.0, sleep, only_delivers=True)


async def test_events_are_posted_as_a_list(sink: Sink, tmp_path: Path) -> None:
    errors, _ = counted()
    backend = WebhookBackend(client(sink, tmp_path, []), errors)
    assert await backend.process([record(1), record(2, requestURI="/a")])
    [found] = sink.lists
    assert found == {
        "kind": "EventList",
        "apiVersion": "audit.k8s.io/v1",
        "metadata": {},
        "items": [json.loads(b"{" + record(1)), json.loads(b"{" + record(2, requestURI="/a"))],
    }
    await backend.close()


async def test_whatever_goes_wrong_is_tried_again_with_growing_waits(sink: Sink, tmp_path: Path) -> None:
    sink.refusals = 4
    waits: list[float] = []
    backend = WebhookBackend(client(sink, tmp_path, waits), counted()[0])
    assert await backend.process([record(1)])
    assert len(sink.lists) == 1
    for wait, least in zip(waits, (10, 15, 22.5, 33.75), strict=True):
        assert least <= wait <= least * 1.2
    await backend.close()


async def test_events_that_nobody_takes_are_lost_and_counted(
    sink: Sink, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink.refusals = 5
    errors, metrics = counted()
    backend = WebhookBackend(client(sink, tmp_path, []), errors)
    assert not await backend.process([record(1), record(2)])
    assert metrics.errors.value(("webhook",)) == 2
    assert "Error in audit plugin 'webhook' affecting 2 audit events" in caplog.text
    await backend.close()


async def test_a_webhook_that_is_not_there_is_told(sink: Sink, tmp_path: Path) -> None:
    waits: list[float] = []
    unreachable = client(sink, tmp_path, waits)
    await sink.stop()
    errors, metrics = counted()
    backend = WebhookBackend(unreachable, errors)
    assert not await backend.process([record(1)])
    assert (len(waits), metrics.errors.value(("webhook",))) == (4, 1)
    await backend.close()
