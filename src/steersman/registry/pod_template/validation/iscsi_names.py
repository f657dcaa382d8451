"""Names of iSCSI nodes (RFC 3720 section 3.2.6), as Kubernetes validates them."""

from __future__ import annotations

import re
from typing import Final

from steersman.work.patterns import late_pattern

_RUN: Final = late_pattern(r"[a-zA-Z0-9.-]++")
_AUTHORITY: Final = late_pattern(r"iqn\.[0-9]{4}-[0-9]{2}\.[a-zA-Z0-9.-]")
_NOT_IN_REST: Final = late_pattern(r"[,;*&$|\t\n\f\r ]")
_is_eui: Final = re.compile(r"eui.[a-zA-Z0-9]{16}").fullmatch
_is_naa: Final = re.compile(r"naa.[a-zA-Z0-9]{32}").fullmatch

FORMATS: Final = ("iqn", "eui", "naa")
"""The prefixes of names."""
_LONGEST_INTERFACE: Final = 64
INTERFACE_TOO_LONG: Final = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
"""Upstream's error about an interface of an initiator."""


def is_interface_too_long(volume: str, portal: str) -> bool:
    """Return True if the name of an initiator's interface, of a volume's name and a portal, is too long."""
    return len(f"{volume}:{portal}".encode()) > _LONGEST_INTERFACE


def is_iscsi_name(name: str) -> bool:
    """Return True if `name` has one of the three formats."""
    match name[:3]:
        case "iqn":
            return _is_qualified(name)
        case "eui":
            return _is_eui(name) is not None
        case "naa":
            return _is_naa(name) is not None
    return False


def _is_qualified(name: str) -> bool:
    """Return True if `name` ends with `iqn.YEAR-MONTH.AUTHORITY:REST`; like upstream, ignore the text before it."""
    last = max((found.start() for found in _NOT_IN_REST.finditer(name)), default=-1)
    for run in _RUN.finditer(name):
        colon = run.end()
        rest_follows = name[colon : colon + 1] == ":" and last < colon < len(name) - 1
        if rest_follows and _AUTHORITY.search(name, run.start(), colon):
            return True
    return False
