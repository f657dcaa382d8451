"""`steersman fork`: a new data folder with the state of another at a point in history."""

from __future__ import annotations

from pathlib import Path

import click

from steersman.cli.history.points import POINT, is_time
from steersman.cli.paths import DEFAULT_DATA_DIR, AbsolutePath
from steersman.cli.storage import storage_file, with_clean_errors


@click.command()
@click.argument("folder", type=AbsolutePath(file_okay=False))
@click.option("--at", type=POINT, required=True, metavar="point", help="revision, time, or age such as 10m")
@click.option(
    "--data-dir",
    type=AbsolutePath(file_okay=False),
    metavar="folder",
    help=f"the folder to fork; its server may run or not  [default: {DEFAULT_DATA_DIR}]",
)
def fork(folder: Path, at: str, data_dir: Path | None) -> None:
    """Create the data folder FOLDER with the objects of another one as of a point in history.

    Start a cluster or server in it with --data-dir. As after `storage restore`, keys and certificates are new.
    """
    from steersman.controlplane.data_files import FILE
    from steersman.machinery.private_files import new_in_own_folder
    from steersman.machinery.values.times import parse
    from steersman.storage.sqlite import snapshot

    if at == "now":
        raise click.UsageError("fork needs a revision, time or age", click.get_current_context())
    source, target = storage_file(data_dir), folder / FILE

    def forked() -> snapshot.Snapshot:
        with new_in_own_folder(folder):
            if is_time(at):
                return snapshot.fork(source, target, seconds=parse(at).timestamp())
            return snapshot.fork(source, target, revision=int(at))

    made = with_clean_errors(forked)
    click.echo(f"forked {target}: revision {made.revision}")
