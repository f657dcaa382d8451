"""Objects as upstream prints them in messages: JSON of its internal types.

Internal types have Go's field names, no omitted fields, and host namespaces inside the security context. Clients see
this form in the values of field errors and in the diff of a refused update.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.field import Verbatim
from steersman.machinery.go.strings import to_upper
from steersman.machinery.sorted_maps import presorted

_NAMES: Final = {
    "apiGroup": "APIGroup",
    "apiGroups": "APIGroups",
    "apiVersion": "APIVersion",
    "awsElasticBlockStore": "AWSElasticBlockStore",
    "cel": "CEL",
    "cephfs": "CephFS",
    "chapAuthDiscovery": "DiscoveryCHAPAuth",
    "chapAuthSession": "SessionCHAPAuth",
    "csi": "CSI",
    "diskURI": "DataDiskURI",
    "dnsConfig": "DNSConfig",
    "dnsPolicy": "DNSPolicy",
    "endpoints": "EndpointsName",
    "fc": "FC",
    "fsGroup": "FSGroup",
    "fsGroupChangePolicy": "FSGroupChangePolicy",
    "fsType": "FSType",
    "gcePersistentDisk": "GCEPersistentDisk",
    "gmsaCredentialSpec": "GMSACredentialSpec",
    "gmsaCredentialSpecName": "GMSACredentialSpecName",
    "grpc": "GRPC",
    "httpGet": "HTTPGet",
    "httpHeaders": "HTTPHeaders",
    "ip": "IP",
    "iqn": "IQN",
    "iscsi": "ISCSI",
    "iscsiInterface": "ISCSIInterface",
    "nfs": "NFS",
    "os": "OS",
    "pdName": "PDName",
    "rbd": "RBD",
    "seLinuxChangePolicy": "SELinuxChangePolicy",
    "seLinuxOptions": "SELinuxOptions",
    "sslEnabled": "SSLEnabled",
    "storageos": "StorageOS",
    "tcpSocket": "TCPSocket",
    "tty": "TTY",
    "uid": "UID",
    "wwids": "WWIDs",
}
"""JSON names whose Go name is not simply capitalized."""

_RBD_NAMES: Final = {"monitors": "CephMonitors", "image": "RBDImage", "pool": "RBDPool", "user": "RadosUser"}

_ABSENT_FROM_SPEC: Final = (
    "service_account",
    "host_network",
    "host_pid",
    "host_ipc",
    "share_process_namespace",
    "host_users",
)
_MOVED_IN_SPEC: Final = (
    ("set_hostname_as_fqdn", "subdomain"),
    ("preemption_policy", "priority"),
    ("dns_config", "preemption_policy"),
    ("overhead", "runtime_class_name"),
)
"""Fields of a PodSpec that directly follow another field, unlike in v1."""


@lru_cache(maxsize=512)
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a type in internal order, with their Go names."""
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    order = list(names)
    if kind is core.PodSpec:
        order = [name for name in order if name not in _ABSENT_FROM_SPEC]
        for name, before in _MOVED_IN_SPEC:
            order.remove(name)
            order.insert(order.index(before) + 1, name)
    elif kind is core.Volume:
        order.remove("quobyte")
        order.insert(order.index("rbd") + 1, "quobyte")
    elif kind is core.PersistentVolumeSpec:
        for name, before in (("quobyte", "rbd"), ("flex_volume", "iscsi")):
            order.remove(name)
            order.insert(order.index(before) + 1, name)
    elif kind is core.PodSecurityContext:
        order.remove("fs_group_change_policy")
        order.insert(order.index("fs_group") + 1, "fs_group_change_policy")
    special = _RBD_NAMES if kind in (core.RBDVolumeSource, core.RBDPersistentVolumeSource) else {}
    return tuple((name, special.get(names[name]) or _go_name(names[name])) for name in order)


def _go_name(name: str) -> str:
    return _NAMES.get(name) or to_upper(name[0]) + name[1:]


def internal_form(value: Any) -> Any:
    """Return a Struct, or lists and maps of Structs, as plain data in the order in which upstream prints it."""
    if isinstance(value, msgspec.Struct):
        if isinstance(value, LabelSelector | ObjectMeta):
            return _plain(value)
        if isinstance(value, core.PodSpec):
            return _spec_form(value)
        form: dict[str, Any] = {}
        for attribute, name in _fields(type(value)):
            member = getattr(value, attribute)
            if isinstance(member, ObjectMeta):
                form = _plain(member)  # the internal form of a whole object has no name for its metadata
            else:
                form[name] = internal_form(member)
        return form
    if isinstance(value, list):
        return [internal_form(item) for item in value] if value else None
    if isinstance(value, dict):
        # Go prints maps in key order.
        return {key: internal_form(value[key]) for key in sorted(value)} if value else None
    return value


def _plain(value: Any) -> Any:
    """Return a value whose form is the same in every version as plain data, with maps in key order."""
    return msgspec.to_builtins(presorted(value), enc_hook=msgspec.json.decode, order="deterministic")


def internal_text(value: Any) -> Verbatim:
    """Return `value`, a Struct or plain data in the right order, as the value of a field error."""
    return Verbatim(encode_in_order(internal_form(value)).decode())


def _spec_form(spec: core.PodSpec) -> dict[str, Any]:
    form = {name: internal_form(getattr(spec, attribute)) for attribute, name in _fields(core.PodSpec)}
    context = spec.security_context or core.PodSecurityContext()
    form["SecurityContext"] = {
        "HostNetwork": spec.host_network,
        "HostPID": spec.host_pid,
        "HostIPC": spec.host_ipc,
        "ShareProcessNamespace": spec.share_process_namespace,
        "HostUsers": spec.host_users,
        **internal_form(context),
    }
    return form


def internal_diff(old: Any, new: Any) -> str:
    """Return a unified diff of the internal forms of two values, as lines of indented JSON."""
    from steersman.registry.printing.diff import unified_diff  # needed only for refused updates

    return unified_diff(_lines(old), _lines(new))


def _lines(value: Any) -> list[str]:
    text = msgspec.json.format(encode_in_order(internal_form(value)), indent=1).decode()
    return [line + "\n" for line in text.split("\n")]
