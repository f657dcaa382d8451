"""The data folder of a control plane, the storage in it, and advice about unreadable storage."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steersman.controlplane.data_files import FILE, check_files
from steersman.controlplane.flag_files import TOKEN_KEY
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.metrics import Registry
from steersman.machinery.private_files import make_private_folder
from steersman.server.certificates import CertificateError, CertificateFiles, ensure_certificates
from steersman.storage.interface import OwnStorage, Storage, StorageDamaged, StorageUnavailable
from steersman.storage.sqlite import SQLiteStorage
from steersman.storage.sqlite.file import advice
from steersman.store.storage_errors import StorageNotReady
from steersman.store.store import Store

if TYPE_CHECKING:
    from steersman.controlplane.encryption import Encryption
    from steersman.controlplane.etcd_cluster import EtcdClusters
    from steersman.controlplane.stores import Stores

logger = logging.getLogger(__name__)


def make_data_folder(options: Options) -> None:
    """Create the folder if it is missing, and check the owner of it and its files. Raises OptionsError."""
    path = options.data_dir
    try:
        make_private_folder(path)
        check_files(path)
    except OSError as error:
        why = f"the folder {path} cannot be made: {error.strerror}" if error.strerror else error
        raise OptionsError(f"--data-dir: {why}") from None


def file_of(options: Options) -> Path | None:
    """Return the path of the storage file, None for storage in etcd or in memory."""
    return None if options.etcd_servers or options.storage == "memory" else options.data_dir / FILE


def etcd_clusters(options: Options, registry: Registry) -> EtcdClusters | None:
    """Return the etcd clusters of the flags, None without them. Raises OptionsError."""
    if not options.etcd_servers:
        if options.etcd_servers_overrides:
            raise OptionsError("--etcd-servers-overrides: --etcd-servers must be specified")
        return None
    from steersman.controlplane.etcd_cluster import EtcdClusters  # which most servers never need

    return EtcdClusters(options, registry)


async def fill(stores: Stores, options: Options) -> None:
    """Fill the watch caches.

    After `--storage-initialization-timeout` the start continues without the unfilled ones, as upstream does: requests
    that need one of them wait for it or are refused. Raises the storage's errors before that time.
    """
    limit = options.storage_initialization_timeout
    try:
        async with asyncio.timeout(limit or None):
            await stores.start()
    except StorageDamaged as error:
        file = file_of(options)
        raise error if file is None else StorageDamaged(f"{file}: {error}{advice(file)}") from error
    except TimeoutError:
        logger.warning(
            "after %g seconds (--storage-initialization-timeout) the start goes on without the caches of %s",
            limit,
            ", ".join(str(store.resource.group_resource) for store in stores if not store.cacher.ready),
        )
        stores.fill_later()


async def open_storage(options: Options, clusters: EtcdClusters | None = None) -> Storage:
    """Open the storage, which locks out other processes. Raises the storage's errors and OSError."""
    clusters = clusters or etcd_clusters(options, Registry())
    return await (open_own_storage(options) if clusters is None else clusters.open())


async def open_own_storage(options: Options) -> OwnStorage:
    """Open the storage in the folder or in memory, which locks out other processes. Raises the storage's errors,
    OSError.
    """
    interval = options.etcd_compaction_interval
    if options.storage == "memory":
        from steersman.storage.memory import MemoryStorage

        return await MemoryStorage.open(compaction_interval=interval)
    durable = not options.unsafe_no_fsync
    return await SQLiteStorage.open(
        options.data_dir / FILE,
        compaction_interval=interval,
        durable=durable,
        retention=options.history if options.history.keeps else None,
    )


async def encryption_of(options: Options, registry: Registry, running: AsyncExitStack) -> Encryption | None:
    """Return the encryption at rest, None without a configuration; `running` stops it. Raises OptionsError."""
    if not options.encryption_provider_config:
        if options.encryption_provider_config_automatic_reload:
            raise OptionsError(
                "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
            )
        return None
    from steersman.controlplane.encryption import Encryption  # which most servers never need

    made = Encryption(options, registry)
    running.push_async_callback(made.stop)
    await made.start()
    return made


def any_keys(folder: Path) -> bool:
    """Return True if the folder has any key or certificate."""
    files = CertificateFiles(folder)
    return any(path.exists() for path in (files.ca, files.ca_key, files.note, folder / TOKEN_KEY))


def certificate_files(options: Options, *hosts: str) -> CertificateFiles:
    """Return the certificates in the folder; make missing ones for these host names and addresses. Raises
    OptionsError.
    """
    try:
        return ensure_certificates(options.data_dir, list(hosts))
    except CertificateError as error:
        raise OptionsError(str(error)) from None


def unreadable(options: Options, stores: Iterable[Store[Any]]) -> list[str]:
    """Return a text with advice for each store whose cache found unreadable data."""
    file = file_of(options)
    return [_unreadable_text(file, store) for store in stores if store.cacher.unreadable]


def _unreadable_text(file: Path | None, store: Store[Any]) -> str:
    why = store.cacher.unreadable
    where = "etcd" if file is None else file
    if store.cacher.undecryptable is not None:
        return (
            f"in {where} {why}: lists of {store.resource.group_resource} are refused until "
            "--encryption-provider-config names what it was encrypted with, and a KMS plugin that it names answers"
        )
    if file is None:
        return (
            f"in etcd the object {why}: nothing under {store.prefix} is served until it is removed there, with etcdctl "
            "del, or a good backup is restored"
        )
    return (
        f"in {file} the object {why}: nothing under {store.prefix} is served until a good copy of the file is put "
        "back, or the object is removed from it while the server is stopped: "
        f"sqlite3 {file} \"DELETE FROM log WHERE key = '{why.partition(' ')[0]}'\""
    )


def is_storage_unavailable(error: BaseException) -> bool:
    """Return True if unavailable storage is the only cause of an error."""
    if isinstance(error, BaseExceptionGroup):  # of the hooks, which run concurrently
        return all(map(is_storage_unavailable, error.exceptions))
    return isinstance(error, StorageUnavailable | StorageNotReady)
