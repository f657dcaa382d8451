"""`steersman storage`: saves, restores and checks the storage, and moves it between SQLite and etcd."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from steersman.cli.command import default_texts
from steersman.cli.in_order import InOrder
from steersman.cli.paths import DEFAULT_DATA_DIR, AbsolutePath, default_data_dir
from steersman.cli.terminal_text import printable
from steersman.controlplane.flag_readers import SHOWN
from steersman.controlplane.options import FLAGS, OptionsError

if TYPE_CHECKING:
    from steersman.storage.moving.cluster import Cluster
    from steersman.storage.moving.rows import Moved

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

_FILE: Final = AbsolutePath(dir_okay=False)
_MIB: Final = 1 << 20


def _data_dir(command: Command) -> Command:
    return click.option(
        "--data-dir",
        type=AbsolutePath(file_okay=False),
        metavar="folder",
        help=f"the server's folder  [default: {DEFAULT_DATA_DIR}]",
    )(command)


def _of_etcd(command: Command) -> Command:
    """Add the server's flags of the connection to etcd."""
    defaults = default_texts()
    for name in ("etcd-keyfile", "etcd-certfile", "etcd-cafile", "etcd-prefix", "etcd-servers"):
        flag = FLAGS[name]
        command = click.option(
            f"--{name}",
            required=name == "etcd-servers",
            default=defaults.get(name),
            metavar=SHOWN.get(flag.read, "string"),
            help=flag.help,
        )(command)
    return command


@click.group(cls=InOrder)
def storage() -> None:
    """Save, restore, check and move the storage."""


@storage.command()
@click.argument("file", type=_FILE)
@_data_dir
def save(file: Path, data_dir: Path | None) -> None:
    """Write a snapshot of the SQLite storage to FILE; the server may run or not.

    The snapshot is consistent and is checked completely. Its checksum is written to FILE.sha256. Existing files of
    these names are replaced. Keys and certificates in the folder are not included.
    """
    from steersman.storage.sqlite import snapshot

    made = with_clean_errors(lambda: snapshot.save(storage_file(data_dir), file))
    click.echo(f"saved {file}: revision {made.revision}, {made.size / _MIB:.1f} MiB, sha256 {made.digest}")


@storage.command()
@click.argument("file", type=_FILE)
@_data_dir
@click.option("--replace", is_flag=True, help="replace the existing storage, which is renamed to steersman.db.replaced")
@click.option(
    "--bump-revision",
    type=click.IntRange(min=0),
    metavar="number",
    help="increase of revisions beyond the existing storage's, 0 to keep the snapshot's  "
    "[default: 1, and 1000000 if there is no storage to replace]",
)
@click.option("--skip-hash-check", is_flag=True, help="accept a snapshot without FILE.sha256")
def restore(file: Path, data_dir: Path | None, replace: bool, bump_revision: int | None, skip_hash_check: bool) -> None:
    """Replace the SQLite storage by the snapshot FILE, while no server uses it.

    Revisions continue beyond the existing ones, so that no client has a resourceVersion in the future. Clients must
    restart earlier watches.
    """
    from steersman.machinery.private_files import new_in_own_folder
    from steersman.storage.sqlite import snapshot

    target, checks = storage_file(data_dir), not skip_hash_check

    def restored() -> snapshot.Snapshot:
        with new_in_own_folder(target.parent):
            return snapshot.restore(file, target, bump=bump_revision, replaces=replace, checks_digest=checks)

    made = with_clean_errors(restored)
    click.echo(f"restored {target}: revision {made.revision}")


@storage.command()
@_data_dir
@click.option(
    "--accept-data-loss",
    is_flag=True,
    help="rebuild the storage from all intact data; the damaged file is renamed to steersman.db.damaged",
)
def check(data_dir: Path | None, accept_data_loss: bool) -> None:
    """Check the SQLite storage for damage, and exit with 1 if there is any.

    While a server uses the storage, its write-ahead log is not checked. With --accept-data-loss no server may run;
    revisions continue a million beyond the last known one, and clients must restart earlier watches.
    """
    from steersman.storage.sqlite import salvage
    from steersman.storage.sqlite.file import DamagedFile, advice

    file = storage_file(data_dir)
    try:
        found = with_clean_errors(lambda: salvage.examine(file), passes=DamagedFile)
    except DamagedFile as error:
        if not accept_data_loss:
            raise click.ClickException(f"{error}{advice(file)}") from None
        click.echo(str(error), err=True)
        made = with_clean_errors(lambda: salvage.salvage(file))
        for each in made.lost:
            click.echo(f"lost: {each}", err=True)
        click.echo(f"rebuilt {file}: revision {made.revision}, {made.keys} keys; the damaged file is {made.aside}")
        return
    details = [f"revision {found.revision}", f"{found.rows} rows"]
    if found.unchecked:
        details.append(f"{found.unchecked} of them written by a version without checksums (save and restore adds them)")
    if found.in_use:
        details.append("in use by a server, so its write-ahead log was not checked")
    click.echo(f"{file} is intact: {', '.join(details)}")


@storage.command("to-etcd")
@_data_dir
@_of_etcd
def to_etcd(data_dir: Path | None, **etcd: str | None) -> None:
    """Copy the SQLite storage into an etcd cluster, while no server uses either.

    There must be no keys below --etcd-prefix. If the copy is interrupted, servers refuse to start on it, and running
    the command again starts over. The SQLite storage is not modified.
    """
    from steersman.storage.moving.to_etcd import copy_to_etcd

    _move("copied to etcd", etcd, lambda cluster: copy_to_etcd(storage_file(data_dir), cluster, _echo))


@storage.command("to-sqlite")
@_data_dir
@_of_etcd
def to_sqlite(data_dir: Path | None, **etcd: str | None) -> None:
    """Copy the data in an etcd cluster into a new SQLite storage, while no server writes to etcd.

    If the copy is interrupted, no storage is created. The data in etcd is not modified.
    """
    from steersman.machinery.private_files import new_in_own_folder, warn_of_access
    from steersman.storage.moving.to_sqlite import copy_to_sqlite

    target = storage_file(data_dir)

    def copied() -> None:
        with new_in_own_folder(target.parent):
            warn_of_access(target.parent)
            _move(f"copied to {target}", etcd, lambda cluster: copy_to_sqlite(cluster, target, _echo))

    with_clean_errors(copied)


def storage_file(data_dir: Path | None) -> Path:
    """Return the path of the SQLite storage in a folder, by default the user's; exit with 1 if the folder is not
    safe.
    """
    from steersman.controlplane.data_files import FILE, check_files

    folder = data_dir or default_data_dir()
    with_clean_errors(lambda: check_files(folder))
    return folder / FILE


def _echo(text: str) -> None:
    click.echo(text, err=True)


def with_clean_errors(work: Callable[[], T], *, passes: type[Exception] | tuple[()] = ()) -> T:
    """Return the result of `work`; convert its errors to ClickException, apart from errors of type `passes`."""
    from steersman.storage.interface import StorageFormatError, StorageLocked, StorageUnavailable

    try:
        return work()
    except passes:
        raise
    except (OptionsError, OSError, StorageFormatError, StorageLocked, StorageUnavailable) as error:
        raise click.ClickException(printable(error)) from None


def _move(what: str, etcd: dict[str, str | None], copy: Callable[[Cluster], Awaitable[Moved]]) -> None:
    moved = with_clean_errors(lambda: asyncio.run(_with_cluster(etcd, copy)))
    click.echo(f"{what}: {moved.keys} keys, {moved.size / _MIB:.1f} MiB, at revision {moved.revision}")


async def _with_cluster(etcd: dict[str, str | None], copy: Callable[[Cluster], Awaitable[Moved]]) -> Moved:
    from steersman.cli.flags import parse
    from steersman.controlplane.etcd_cluster import tls_context
    from steersman.storage.moving.cluster import Cluster

    given = [f"--{name}={value}" for name, value in etcd.items() if value is not None]
    options = parse(given, default_data_dir())
    servers, prefix = options.etcd_servers, options.etcd_prefix.strip("/")
    if not prefix or not servers:
        raise OptionsError("--etcd-servers and --etcd-prefix must not be empty")
    tls = tls_context(options, servers)
    try:
        cluster = Cluster(servers, tls, f"/{prefix}")
    except ValueError as error:
        raise OptionsError(f"--etcd-servers: {error}") from None
    try:
        return await copy(cluster)
    finally:
        cluster.close()
