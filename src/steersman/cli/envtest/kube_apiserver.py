"""`kube-apiserver` of `steersman envtest`: kube-apiserver's command line for the server of `steersman serve`.

Its data is in the folder of the `etcd` in --etcd-servers (claim.py). Flags of kube-apiserver that `steersman serve` has
work as there. Some others are accepted without effect; the rest are errors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from steersman.cli.envtest.claim import claim
from steersman.cli.envtest.etcd import names
from steersman.cli.flags import arguments_by_flag, parse
from steersman.cli.program import fail
from steersman.cli.serve import Service, run
from steersman.controlplane.options import FLAGS, Options, OptionsError

if TYPE_CHECKING:
    from steersman.cli.envtest.role import Adapt
    from steersman.stress.drop_in import Notes
    from steersman.work.parts import Part

ROLE: Final = "STEERSMAN_ENVTEST_ROLE"
"""Environment variable with a file of ClusterRoles: clients with certificates of system:masters have these rights."""
STRESS_FOLDER: Final = "STEERSMAN_STRESS_FOLDER"
"""Environment variable of `steersman stress` (stress.drop_in)."""
NOT_UPSTREAM: Final = frozenset(name for name, flag in FLAGS.items() if flag.is_own)
"""Flags of `steersman serve` that kube-apiserver does not have."""
OWN: Final = {
    "etcd-servers": "http://ADDRESS:PORT of the etcd whose data folder is used",
    "cert-dir": "folder for apiserver.crt and apiserver.key, created unless --tls-cert-file is given",
    "help": "print this help and exit",
    "version": "print the version and exit",
}
WITHOUT_EFFECT: Final = names(
    "default-watch-cache-size delete-collection-workers enable-garbage-collector "
    "enable-logs-handler etcd-cafile etcd-certfile "
    "etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix "
    "etcd-readycheck-timeout lease-reuse-duration-seconds livez-grace-period log-flush-frequency "
    "log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream "
    "max-connection-bytes-per-sec shutdown-watch-termination-grace-period storage-backend "
    "storage-initialization-timeout vmodule watch-cache watch-cache-sizes"
)
"""Flags about features that do not exist here: klog's log format, a real etcd, an optional watch cache, and rates."""
LEGACY: Final = {"insecure-port": "0", "insecure-bind-address": None}
"""Flags of former versions of kube-apiserver with the only accepted value (None for any). Old templates use them."""
_BARE: Final = names(
    "enable-garbage-collector enable-logs-handler help log-json-split-stream log-text-split-stream version watch-cache"
)


def main(arguments: list[str] | None = None, *, nodes: int | None = None) -> None:
    """Run the server until a signal, or until its etcd ends.

    With `nodes` it runs controllers; with more than 0 nodes also a scheduler and that number of simulated nodes. Prints
    one line and exits with 1 if it cannot start.
    """
    try:
        options, own = read(sys.argv[1:] if arguments is None else arguments)
        if "help" in own:
            sys.stdout.write(help_text())
            return
        if "version" in own:
            print(version_line())
            return
        held = claim(own.get("etcd-servers", ""))
        options = replace(options, data_dir=held.folder, unsafe_no_fsync=not held.fsync)
        options = with_certificates(options, own.get("cert-dir", ""))
    except OptionsError as error:
        fail(str(error), program="kube-apiserver")
    if nodes is not None:
        options = replace(options, controllers=("*",))
    run(options, program="kube-apiserver", tied_to=held.connection, make=partial(_service, nodes))


def _notes() -> Notes | None:
    """Return the faults of a run of `steersman stress` that this server takes part in, None if it does not.

    Raises OptionsError.
    """
    folder = os.environ.get(STRESS_FOLDER)
    if not folder:
        return None
    from steersman.stress.drop_in import Notes

    try:
        return Notes(Path(folder))
    except (OSError, msgspec.MsgspecError) as error:
        raise OptionsError(f"{STRESS_FOLDER}: {error}") from None


def _service(nodes: int | None, options: Options) -> Service:
    """Return the server, as the environment variables want it. Raises OptionsError."""
    from steersman.report.recording import recording_of_environment

    changes: list[Adapt] = []
    if file := os.environ.get(ROLE):
        from steersman.cli.envtest.role import restriction

        changes.append(restriction(Path(file)))
    if (recording := recording_of_environment()) is not None:
        from steersman.cli.envtest.recorded import with_record

        changes.append(partial(with_record, recording))
    notes = _notes()
    if nodes is not None:
        return _cluster(nodes, options, changes, notes)
    from steersman.controlplane.control_plane import PARTS, ControlPlane

    faults = None if notes is None else notes.fault_set
    plane = ControlPlane(options, owns_process=True, faults=faults, parts=_adapted(changes, PARTS))
    if notes is not None:
        notes.attach(plane)
    return plane


def _cluster(nodes: int, options: Options, changes: list[Adapt], notes: Notes | None) -> Service:
    from steersman.cluster.cluster import Cluster
    from steersman.cluster.configuration import Configuration, NodeGroup

    configuration = Configuration((NodeGroup(count=nodes),), schedules=nodes > 0)
    faults = None if notes is None else notes.fault_set
    cluster = Cluster(options, configuration, faults=faults, adapt=partial(_adapted, changes))
    if notes is not None:
        notes.attach(cluster.plane)
    return cluster


def _adapted(changes: Iterable[Adapt], parts: Sequence[type[Part]]) -> Sequence[type[Part]]:
    for change in changes:
        parts = change(parts)
    return parts


def read(arguments: list[str]) -> tuple[Options, dict[str, str]]:
    """Return the server's options, and the values of the flags in OWN by name. Raises OptionsError."""
    passed_on, own = [], {}
    for name, value, text in arguments_by_flag([each for each in arguments if each], _BARE):
        if name in OWN:
            own[name] = value
        elif name in LEGACY:
            if LEGACY[name] not in (None, value):
                raise OptionsError(f"--{name}: kube-apiserver serves only TLS, so {value!r} is not supported")
        elif name in NOT_UPSTREAM:
            raise OptionsError(f"unknown flag: --{name}")
        elif name not in WITHOUT_EFFECT:
            passed_on += text
    return parse(passed_on, Path()), own


def with_certificates(options: Options, folder: str) -> Options:
    """Return options with the certificate in the folder of --cert-dir, which is created if missing, as upstream does.

    Returns `options` unchanged without --cert-dir or with --tls-cert-file. Raises OptionsError.
    """
    if options.tls_cert_file or not folder:
        return options
    certificate, key = Path(folder) / "apiserver.crt", Path(folder) / "apiserver.key"
    if not (certificate.exists() and key.exists()):
        _make_pair(options, certificate, key)
    return replace(options, tls_cert_file=str(certificate), tls_private_key_file=str(key))


def _make_pair(options: Options, certificate: Path, key: Path) -> None:
    from steersman.controlplane.addresses import public_address, service_ranges
    from steersman.controlplane.data_folder import certificate_files, make_data_folder
    from steersman.machinery.private_files import make_folders, write_whole
    from steersman.server.certificates import LOOPBACK_NAME

    make_data_folder(options)
    host = public_address(options)
    names = (host, options.bind_address, str(service_ranges(options)[0][1]), LOOPBACK_NAME)
    made = certificate_files(options, *names)
    try:
        make_folders(certificate.parent)
        write_whole(key, made.server_key.read_bytes())
        write_whole(certificate, made.server.read_bytes() + made.ca.read_bytes(), 0o644)
    except OSError as error:
        raise OptionsError(f"--cert-dir: {error}") from None


def version_line() -> str:
    """Return the output of `kube-apiserver --version`."""
    from steersman.server.version import MAJOR, MINOR, PATCH

    return f"Kubernetes v{MAJOR}.{MINOR}.{PATCH}"


def help_text() -> str:
    """Return the help, with one line per flag, as tools search it for supported flags."""
    helps = {name: flag.help for name, flag in FLAGS.items() if name not in NOT_UPSTREAM | WITHOUT_EFFECT} | OWN
    lines = [f"      --{name:<42} {helps.get(name, 'has no effect')}" for name in sorted({*helps, *WITHOUT_EFFECT})]
    return "\n".join(
        (
            "The kube-apiserver of `steersman envtest`.",
            "",
            "Usage:",
            "  kube-apiserver [flags]",
            "",
            "Flags:",
            *lines,
            "",
        )
    )
