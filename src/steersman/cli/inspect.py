"""`steersman inspect`: the page of a cluster, in a browser."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from steersman.cli.browser import PrivateAddress
from steersman.cli.cluster_client import Target, cluster_options, endpoint_of
from steersman.cli.program import fail
from steersman.cli.terminal_text import printable


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="int", help="port of the page; 0 takes a free one"
)
@click.option("--no-browser", is_flag=True, help="print the address and open no browser")
@cluster_options
def inspect(port: int, no_browser: bool, kubeconfig: Path | None, context: str, data_dir: Path | None) -> None:
    """Serve the page of a cluster on 127.0.0.1 until interrupted.

    The page acts with the rights of the kubeconfig's user. The printed address opens it once; then a new one is printed.
    """
    target = Target(kubeconfig, context, data_dir)
    try:
        asyncio.run(_serve(target, context, port, opens=not no_browser))
    except OSError as error:
        fail(printable(error))


async def _serve(target: Target, context: str, port: int, *, opens: bool) -> None:
    from steersman.inspector.front import serving

    browser = PrivateAddress()
    addresses: list[str] = []

    def announce(address: str) -> None:
        click.echo(f"{'opened; the next address is' if addresses else 'open'} {address}")
        browser.forget()
        addresses.append(address)

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ended.set)
    async with serving(endpoint_of(target), context, announce, port):
        opening = asyncio.create_task(_open(browser, addresses[0])) if opens else None
        try:
            await ended.wait()
        finally:
            if opening is not None:
                opening.cancel()
            browser.forget()


async def _open(browser: PrivateAddress, address: str) -> None:
    """Open the address; in a worker thread, as browsers in a terminal run until they are closed."""
    try:
        is_open = await asyncio.to_thread(browser.open, address)
    except OSError as error:
        click.echo(f"the browser was not opened: {printable(error)}", err=True)
    else:
        if not is_open:
            click.echo("there is no browser: open the address yourself", err=True)
