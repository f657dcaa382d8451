"""The etcd cluster that the flags name, as storage."""

from __future__ import annotations

import ssl

from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.go.os_errors import reason
from steersman.net.client.tls import HTTP2, client_context
from steersman.storage.etcd import EtcdStorage


async def open_etcd(options: Options) -> EtcdStorage:
    """Raises OptionsError, StorageUnavailable."""
    if options.storage == "memory":
        raise OptionsError("--storage=memory and --etcd-servers contradict each other")
    if bool(options.etcd_certfile) != bool(options.etcd_keyfile):
        raise OptionsError("--etcd-certfile and --etcd-keyfile are given together")
    if not options.etcd_prefix.strip("/"):
        raise OptionsError("--etcd-prefix: something is to stand before all keys")
    try:
        return await EtcdStorage.open(
            options.etcd_servers, tls=_context(options), root=f"/{options.etcd_prefix.strip('/')}",
            compaction_interval=options.etcd_compaction_interval,
        )  # fmt: skip
    except ValueError as error:
        raise OptionsError(f"--etcd-servers: {error}") from None


def _context(options: Options) -> ssl.SSLContext | None:
    """For members whose URL says https. Raises OptionsError."""
    if not any(each.startswith(("https:", "unixs:")) for each in options.etcd_servers):
        return None
    context = client_context(HTTP2)
    context.set_alpn_protocols(["h2"])  # whatever the environment says of HTTP
    try:
        if options.etcd_cafile:
            context.load_verify_locations(cafile=options.etcd_cafile)
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    except OSError as error:
        raise OptionsError(f"--etcd-cafile: {_why(error)}") from None
    try:
        if options.etcd_certfile:
            # Without a password to try, OpenSSL would ask for one at the terminal.
            context.load_cert_chain(options.etcd_certfile, options.etcd_keyfile, lambda: "")
    except (OSError, ValueError) as error:
        raise OptionsError(f"--etcd-certfile: {_why(error)}") from None
    return context


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        return reason(error)
    return "no certificates, or a key that is not theirs"
