"""`steersman status`: the state of a cluster, from its API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from steersman.cli.durations import in_words
from steersman.cli.up.detached import log_file
from steersman.cli.up.figures import measure, nodes_in_words, pods_in_words
from steersman.cli.up.process_file import Running
from steersman.cli.up.trouble import Trouble
from steersman.client.client import Client
from steersman.client.over_tls import TLSTransport
from steersman.webhooks.kubeconfig import load_kubeconfig

_PATIENCE: Final = 20.0
_TITLE: Final = 12
"""Columns of the titles of lines."""


async def status_lines(folder: Path, process: Running, page: str) -> list[str]:
    """Return lines about a cluster; `page` is the address of its page.

    Raises KubeconfigError, StatusError, TimeoutError, Unreachable."""
    kubeconfig = folder / "admin.kubeconfig"
    endpoint = load_kubeconfig(kubeconfig)
    trouble = Trouble()
    client = Client(TLSTransport(endpoint), "steersman")
    try:
        async with asyncio.timeout(_PATIENCE):
            figures = await measure(client, trouble=trouble)
    finally:
        await client.aclose()
    up = in_words(time.time() - process.since)
    log = log_file(folder)
    return [
        f"address     {endpoint.url}, up {up}, {figures.requests:.0f} requests a second",
        f"nodes       {nodes_in_words(figures)}",
        f"pods        {pods_in_words(figures)}",
        *_part("failed", trouble.failed()),
        *_part("pending", trouble.pending()),
        *_part("warnings", trouble.warnings()),
        f"kubeconfig  {kubeconfig}",
        f"process     {process.pid}",
        *([f"log         {log}"] if log.exists() else []),
        *([f"page        {page}"] if page else []),
    ]


def _part(title: str, texts: Sequence[str]) -> list[str]:
    """Return lines with the title in front of the first one."""
    return [f"{'' if number else title:<{_TITLE}}{text}" for number, text in enumerate(texts)]
