"""Files with the output of programs, which stay small however much a program prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from steersman.work.periodic import Periodic

MOST_OUTPUT: Final = 16 << 20
"""Bytes of a file beyond which its beginning is dropped."""
MOST_SHOWN: Final = 4 << 10
"""Bytes of the end of an output that are kept and shown."""
_INTERVAL: Final = 0.2
"""Seconds between two looks at the sizes."""


class OutputFiles:
    """Files to which programs append: `async with OutputFiles(paths)`. Files of earlier runs are removed first."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._shortening = Periodic("output of programs", self._shorten, _INTERVAL, expected=(OSError,))

    async def __aenter__(self) -> OutputFiles:
        for each in self._paths:
            each.unlink(missing_ok=True)
        self._shortening.start()
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self._shortening.stop()

    async def _shorten(self) -> None:
        for each in self._paths:
            shorten(each)


def shorten(path: Path) -> None:
    """Drop the beginning of a file of more than MOST_OUTPUT bytes. Raises OSError.

    Programs go on at the new end, as they append.
    """
    if not path.exists() or path.stat().st_size <= MOST_OUTPUT:
        return
    end = last_bytes(path)
    with path.open("ab") as file:
        file.truncate(0)
        file.write(end)


def last_bytes(path: Path) -> bytes:
    """Return the last MOST_SHOWN bytes of a file, b"" if it does not exist. Raises OSError."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - MOST_SHOWN))
            return file.read(MOST_SHOWN)
    except FileNotFoundError:
        return b""
