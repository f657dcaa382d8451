"""Preparation of a cluster that begins with a dump, or began with one: its options, configuration and parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steersman.cluster.configuration import PODS, Configuration, ConfigurationError
from steersman.cluster.opening.note import Note, read_note, remove_note, write_note
from steersman.controlplane.control_plane import PARTS
from steersman.controlplane.data_folder import file_of, make_data_folder
from steersman.controlplane.options import Options, OptionsError
from steersman.work.parts import Part

if TYPE_CHECKING:
    from steersman.dumps.reading import Dump


class Prepared(NamedTuple):
    """Options, configuration and parts of a cluster."""

    options: Options
    configuration: Configuration
    parts: Sequence[type[Part]]
    notes: Sequence[str]
    """Notes for the user, complete once the cluster has started."""


def prepare(options: Options, configuration: Configuration) -> Prepared:
    """Return what a cluster is started with. Raises ConfigurationError."""
    notes: list[str] = []
    if configuration.dump is None and configuration.begins_with is None:
        note = read_note(options.data_dir) if file_of(options) is not None else None
        if note is None:
            return Prepared(options, configuration, PARTS, notes)
        if not note.complete:
            raise ConfigurationError(
                f"the opening of a dump in {options.data_dir} was interrupted: delete what there is with `steersman reset`, "
                "and open it again"
            )
        return Prepared(*_as_noted(options, configuration, note), PARTS, notes)
    return _with_dump(options, configuration, notes)


def _with_dump(options: Options, configuration: Configuration, notes: list[str]) -> Prepared:
    # Other clusters start without what reads dumps.
    from steersman.cluster.opening.addresses import pod_range_for, service_range_of
    from steersman.cluster.opening.part import parts_with

    dump = configuration.begins_with
    if dump is None:
        assert configuration.dump is not None
        with _marked(options):
            dump = _read(configuration.dump, notes)
    configuration = replace(configuration, begins_with=None)  # it is large
    note = Note(service_range=service_range_of(dump.objects), pod_range=str(pod_range_for(dump.objects)))
    return Prepared(*_as_noted(options, configuration, note), parts_with(dump, note, notes), notes)


@contextmanager
def _marked(options: Options) -> Iterator[None]:
    """Mark a folder without storage as that of an opening, and remove the mark if the block raises an error.

    Otherwise the next start would take the folder of a process that was killed in the block for that of a new cluster.
    Raises ConfigurationError.
    """
    file = file_of(options)
    if file is None or file.exists():
        yield
        return
    try:
        make_data_folder(options)
        write_note(options.data_dir, Note())
    except (OSError, OptionsError) as error:
        raise ConfigurationError(str(error)) from None
    try:
        yield
    except BaseException:
        remove_note(options.data_dir)
        raise


def _read(path: Path, notes: list[str]) -> Dump:
    """Return the objects of a dump or of a snapshot of etcd. Raises ConfigurationError."""
    from steersman.cluster.opening.etcd_snapshot import is_etcd_snapshot, read_etcd_snapshot
    from steersman.dumps.errors import DumpError
    from steersman.dumps.reading import read_dump

    try:
        return read_etcd_snapshot(path, notes) if is_etcd_snapshot(path) else read_dump(path)
    except DumpError as error:
        raise ConfigurationError(str(error)) from None


def _as_noted(options: Options, configuration: Configuration, note: Note) -> tuple[Options, Configuration]:
    if (
        note.service_range
        and options.service_cluster_ip_range == Options(data_dir=options.data_dir).service_cluster_ip_range
    ):
        options = replace(options, service_cluster_ip_range=note.service_range)
    pods = IPv4Network(note.pod_range) if note.pod_range else PODS
    return options, replace(configuration, answer_webhooks=True, pod_range=pods)
