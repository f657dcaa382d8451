"""`steersman import`: reads a live cluster into one file."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from steersman.cli.cluster_client import Target, cluster_options, run_with_client
from steersman.cli.paths import OutputFile
from steersman.cli.program import fail
from steersman.cli.terminal_text import printable
from steersman.machinery.drafts import draft_of

if TYPE_CHECKING:
    from steersman.client.client import Client
    from steersman.dumps.fields import LeftOut
    from steersman.dumps.importing import Imported


@click.command("import")
@click.option(
    "-o",
    "--output",
    required=True,
    type=OutputFile(),
    metavar="file",
    help="file to write, *.gz packed",
)
@click.option("--include-secrets", is_flag=True, help="with the values of Secrets, which are left out otherwise")
@click.option(
    "--leave-out",
    "left_out",
    multiple=True,
    metavar="field",
    help="field to leave out, such as metadata.managedFields or configmaps:data; may be repeated",
)
@cluster_options
def import_(
    output: Path,
    include_secrets: bool,
    left_out: tuple[str, ...],
    kubeconfig: Path | None,
    context: str,
    data_dir: Path | None,
) -> None:
    """Read all objects of a live cluster into one file.

    It only sends GET requests. `steersman up --from FILE` opens the file as a simulated cluster; `steersman why` and
    `what-if` read it with --dump.
    """
    from steersman.dumps.fields import FieldError, parse_field
    from steersman.dumps.importing import NothingToImport

    try:
        fields = [parse_field(each) for each in left_out]
    except FieldError as error:
        raise click.UsageError(f"--leave-out: {error}", click.get_current_context()) from None

    async def work(client: Client) -> Imported:
        return await write_import(client, output, secrets=include_secrets, fields=fields)

    try:
        done = run_with_client(Target(kubeconfig, context, data_dir), work)
    except NothingToImport as error:
        fail(printable(error))
    size = output.stat().st_size / (1 << 20)
    click.echo(f"imported {done.objects} objects of {done.resources} resources: {output}, {size:.1f} MiB")
    if done.later:
        click.echo(f"of a later moment than the rest: {printable(', '.join(done.later))}", err=True)
    for each in done.unread:
        click.echo(f"left out {printable(each.resource)}: {printable(each.why)}", err=True)


async def write_import(client: Client, output: Path, *, secrets: bool, fields: Sequence[LeftOut]) -> Imported:
    """Import a cluster into a file, which is there once it is complete.

    Raises OSError, StatusError, Unreachable, NothingToImport.
    """
    from steersman.dumps.importing import import_cluster

    with draft_of(output) as raw:
        if output.suffix != ".gz":
            return await import_cluster(client, raw.write, secrets=secrets, fields=fields)
        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            return await import_cluster(client, packed.write, secrets=secrets, fields=fields)
