"""Addresses of a control plane: the ranges of Services, and the addresses at which the server itself is reached."""

from __future__ import annotations

import errno
import os
import socket
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Final

from msgspec import Struct

from steersman.controlplane.data_files import has_data
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.go.strings import trim_space
from steersman.machinery.validation.ip import unmapped
from steersman.net.ascii import is_digits
from steersman.net.server import listening_socket
from steersman.server.server import Server

_LEAST_ADDRESSES: Final = 8
"""Smallest size of a Service range, as upstream: the server's own address and some for Services."""


class Address(Struct, frozen=True):
    """The address of a started control plane, and the files that clients need."""

    url: str
    kubeconfig: Path
    ca: Path
    ca_key: Path


_LAST_PORT: Final = 65535


def service_ranges(options: Options) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the IP ranges of Services, the primary range first. Raises OptionsError."""
    try:
        ranges = tuple(ip_network(trim_space(each)) for each in options.service_cluster_ip_range.split(","))
    except ValueError as error:
        raise OptionsError(f"--service-cluster-ip-range: {error}") from None
    for each in ranges:
        if each.num_addresses < _LEAST_ADDRESSES:
            raise OptionsError(
                f"--service-cluster-ip-range: {each} has {each.num_addresses} addresses; "
                f"the service cluster IP range must be at least {_LEAST_ADDRESSES} IP addresses"
            )
    return ranges


def service_node_ports(options: Options) -> range:
    """Return the range of node ports of Services. Raises OptionsError."""
    text = options.service_node_port_range
    first, dash, last = trim_space(text).partition("-")
    first, plus, more = (first, "", "") if dash else first.partition("+")
    low = _port(first)
    high = _port(last) if dash else low + _port(more) if plus else low
    if not 0 < low <= high <= _LAST_PORT:
        raise OptionsError(f"--service-node-port-range: {text!r} is not a range of ports such as 30000-32767")
    return range(low, high + 1)


def _port(text: str) -> int:
    """Return the number in `text`; for text that is no port number, return a number above the last port."""
    return int(text) if is_digits(text) and len(text) <= len(str(_LAST_PORT)) else _LAST_PORT + 1


def public_address(options: Options) -> str:
    """Return the address that others reach this server by: the flag's, or one of this host's if the flag names none."""
    advertised = options.advertise_address
    return (
        advertised
        if advertised and not ip_address(advertised).is_unspecified
        else advertised_address(options.bind_address)
    )


def advertised_address(bind_address: str) -> str:
    """Return the address that others reach this host by."""
    if bind_address:
        address = unmapped(ip_address(bind_address))
        if not (address.is_unspecified or address.is_loopback):
            return bind_address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def reachable_address(bind_address: str) -> str:
    """Return the address for clients on this host."""
    if bind_address in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{bind_address}]" if ":" in bind_address else bind_address


def check_port(options: Options) -> None:
    """Raise OptionsError if the port is not available, before a start makes keys in a new folder.

    A folder with data may belong to a running server; the lock of the folder gives a better error for that case.
    """
    if not options.listen or not options.secure_port or has_data(options.data_dir):
        return
    try:
        listening_socket(options.bind_address, options.secure_port, shares_port=options.permit_port_sharing).close()
    except OSError as error:
        raise cannot_listen(options, error) from None


async def listen(server: Server, options: Options) -> None:
    """Start the listener. Raises OptionsError, whose text says what to do."""
    try:
        await server.start()
    except OSError as error:
        raise cannot_listen(options, error) from None


def cannot_listen(options: Options, error: OSError) -> OptionsError:
    """Return the error for a failed start of the listener; its text says what to do."""
    address, port = options.bind_address, options.secure_port
    match error.errno:
        case errno.EADDRINUSE:
            why = f"port {port} of {address} is in use by another process: end it, or take another --secure-port"
        case errno.EADDRNOTAVAIL:
            why = f"{address} is not an address of this machine: --bind-address must be one, or 0.0.0.0 for all"
        case errno.EACCES | errno.EPERM:
            why = f"this user may not listen on port {port}: take a --secure-port of 1024 or more"
        case _:
            why = f"cannot listen on port {port} of {address}: {os.strerror(error.errno or 0)}"
    return OptionsError(why)
