"""The authorities of a kind of clients, where the handshake of TLS trusts those of other kinds too."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Final, Protocol

from steersman.machinery.go.pem import blocks

logger = logging.getLogger(__name__)

_CHECK_EVERY: Final = 2.0
"""Seconds between looks at the files."""


class Vouching(Protocol):
    """Authorities, wherever they come from."""

    def vouch_for(self, chain: Sequence[bytes]) -> bool:
        """Whether one of them is in a verified chain (DER, the client's own certificate first)."""
        ...


class Authorities:
    """The certificates in PEM files, read anew when these change. Raises OSError if they cannot be read at first."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = tuple(files)
        self._checked = monotonic()
        self._stamps = self._look()
        self._certificates = self._read()

    def vouch_for(self, chain: Sequence[bytes]) -> bool:
        """See Vouching."""
        self._refresh()
        return any(each in self._certificates for each in chain)

    def share(self, other: Authorities) -> bool:
        """Whether both have a certificate in common."""
        return not self._certificates.isdisjoint(other._certificates)

    def _refresh(self) -> None:
        if monotonic() - self._checked < _CHECK_EVERY:
            return
        self._checked = monotonic()
        try:
            stamps = self._look()
            if stamps == self._stamps:
                return
            found = self._read()
        except OSError as error:
            logger.warning("authorities of clients cannot be read, those read before count: %s", error)
            return
        if found:
            self._stamps, self._certificates = stamps, found

    def _look(self) -> list[tuple[int, int, int]]:
        found = [os.stat(name) for name in self._files]
        return [(each.st_mtime_ns, each.st_size, each.st_ino) for each in found]

    def _read(self) -> frozenset[bytes]:
        return frozenset(
            each.content for name in self._files for each in blocks(Path(name).read_bytes())
            if each.type == "CERTIFICATE"
        )  # fmt: skip
