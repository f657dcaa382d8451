"""Pod specs as upstream prints them in messages: JSON of its internal types.

Those have Go's field names, no omitted fields, and the host's namespaces inside the security context. Clients see this
form in the values of field errors and in the diff of a refused update.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

import msgspec

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.machinery.errors.field import Verbatim
from steersman.machinery.go.strings import to_upper
from steersman.machinery.sorted_maps import presorted

LONGEST_DIFF: Final = 4000
"""Lines of a spec up to which the diff is the shortest there is; finding that takes quadratic time."""

_MAX_COMPARED: Final = 3_000_000
"""Equal pairs of lines that are looked at for the shortest diff."""

_CONTEXT: Final = 3

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
"""JSON names whose Go name is not the same with a capital."""

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
"""Fields of a PodSpec that come right after another one, unlike in v1."""


@lru_cache(maxsize=512)
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Attributes of a type in internal order, with their Go names."""
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
    """`value` (a Struct of core/v1, or lists and maps of such) as plain data in the order upstream prints it."""
    if isinstance(value, msgspec.Struct):
        if isinstance(value, LabelSelector | ObjectMeta):
            return _plain(value)
        if isinstance(value, core.PodSpec):
            return _spec_form(value)
        form: dict[str, Any] = {}
        for attribute, name in _fields(type(value)):
            member = getattr(value, attribute)
            if isinstance(member, ObjectMeta):
                form = _plain(member)  # the internal form of a whole object does not say what it is
            else:
                form[name] = internal_form(member)
        return form
    if isinstance(value, list):
        return [internal_form(item) for item in value] if value else None
    if isinstance(value, dict):
        # Go prints maps in the order of their keys.
        return {key: internal_form(value[key]) for key in sorted(value)} if value else None
    return value


def _plain(value: Any) -> Any:
    """What has the same form in every version; maps by their keys, as Go prints them."""
    return msgspec.to_builtins(presorted(value), enc_hook=msgspec.json.decode, order="deterministic")


def internal_text(value: Any) -> Verbatim:
    """`value` as the value of a field error."""
    return Verbatim(_escaped(json.dumps(internal_form(value), ensure_ascii=False, separators=(",", ":"))))


def _escaped(text: str) -> str:
    """Go's JSON encoder escapes what HTML knows."""
    for char in "<>&":
        if char in text:
            text = text.replace(char, f"\\u{ord(char):04x}")
    return text


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
    """A unified diff of the internal forms of two values, as lines of indented JSON."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > LONGEST_DIFF:
        return _rough_diff(before, after)
    try:
        return "".join(_unified_diff(_BoundedMatcher(before, after)))
    except _TooDifferent:
        return _rough_diff(before, after)


class _TooDifferent(Exception):
    """Finding the shortest diff would take too long."""


class _BoundedMatcher(difflib.SequenceMatcher[str]):
    """Looks at a limited number of pairs. Every method that compares raises _TooDifferent beyond that."""

    def __init__(self, before: list[str], after: list[str]) -> None:
        super().__init__(None, before, after)
        self.before, self.after = before, after
        places: dict[str, list[int]] = vars(self)["b2j"]  # which the stubs leave out
        self._pairs = list(accumulate((1 + len(places.get(line, ())) for line in before), initial=0))
        self._left = _MAX_COMPARED

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Any:
        self._left -= self._pairs[-1 if ahi is None else ahi] - self._pairs[alo]
        if self._left < 0:
            raise _TooDifferent
        return super().find_longest_match(alo, ahi, blo, bhi)


def _unified_diff(matcher: _BoundedMatcher) -> Iterator[str]:
    """The hunks of a unified diff, without the names of files before them."""
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@\n"
        for tag, first, last, new_first, new_last in group:
            if tag == "equal":
                yield from (f" {line}" for line in matcher.before[first:last])
                continue
            yield from (f"-{line}" for line in matcher.before[first:last])
            yield from (f"+{line}" for line in matcher.after[new_first:new_last])


def _range(start: int, end: int) -> str:
    """Lines in the header of a hunk, the first of which is 1."""
    length = end - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"


def _lines(value: Any) -> list[str]:
    text = _escaped(json.dumps(internal_form(value), indent=1, ensure_ascii=False))
    return [line + "\n" for line in text.split("\n")]


def _rough_diff(before: list[str], after: list[str]) -> str:
    """All lines from the first to the last that differ, in one hunk."""
    shorter = min(len(before), len(after))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    end = next((i for i in range(shorter - start) if before[-1 - i] != after[-1 - i]), shorter - start)
    removed, added = before[start : len(before) - end], after[start : len(after) - end]
    header = f"@@ -{start + 1},{len(removed)} +{start + 1},{len(added)} @@\n"
    return header + "".join([f"-{line}" for line in removed] + [f"+{line}" for line in added])
