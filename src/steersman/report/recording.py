"""Requests in files: servers of tests write lines into a folder, and a report is made of them afterwards."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Final

import msgspec

from steersman.machinery.private_files import make_own_folder
from steersman.report.tally import Request, Tally
from steersman.tracing.documents import summary
from steersman.tracing.readers import EveryRequest, Readers
from steersman.tracing.trace import Trace
from steersman.work.offloading import offload_if
from steersman.work.periodic import Periodic

VARIABLE: Final = "STEERSMAN_REPORT"
"""Environment variable with the folder into which servers of tests write their requests."""
MOST_LINES: Final = 1_000_000
"""Requests of a server that are written; further ones are counted."""
LONGEST_LINE: Final = 256 << 10
"""Bytes of a line that is read."""
MOST_FILES: Final = 100_000
"""Files of a folder that are read."""
SUFFIX: Final = ".requests"
_INTERVAL: Final = 0.2
"""Seconds between two writes, as some tools kill their servers."""
_MOST_WAITING: Final = 50_000
"""Requests that wait to be written; further ones are counted."""
_ENCODER: Final = msgspec.json.Encoder()


class RecordingError(ValueError):
    """A file has lines that are not about requests."""


def recording_of_environment() -> Recording | None:
    """Return a recording into the folder of the environment variable; None if it is not set."""
    folder = os.environ.get(VARIABLE, "")
    return Recording(Path(folder)) if folder else None


class Recording:
    """Writes the requests of a server into a file of its own in a folder, between `start` and `stop`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: list[Request] = []
        self._written = 0
        self._dropped = 0
        self._path = folder
        self._writes = Periodic("the record of requests", self._write, _INTERVAL, expected=(OSError,))

    def start(self, traces: Readers) -> None:
        """Begin to write the requests that these readers see. Raises OSError."""
        make_own_folder(self._folder)
        descriptor, path = mkstemp(SUFFIX, "server-", self._folder)
        os.close(descriptor)
        self._path = Path(path)
        self._leave = traces.add(EveryRequest(self._take))
        self._writes.start()

    async def stop(self) -> None:
        """Write what waits, and end. Raises OSError."""
        self._leave()
        await self._writes.stop()
        await self._write()

    def _take(self, trace: Trace, is_open: bool) -> None:
        if self._written + len(self._waiting) >= MOST_LINES or len(self._waiting) >= _MOST_WAITING:
            self._dropped += 1
            return
        self._waiting.append(msgspec.convert(summary(trace, is_open=is_open), Request).bounded())

    async def _write(self) -> None:
        taken, self._waiting = self._waiting, []
        dropped, self._dropped = self._dropped, 0
        self._written += len(taken)
        if taken or dropped:
            await offload_if(True, self._append, taken, dropped)

    def _append(self, taken: list[Request], dropped: int) -> None:
        data = b"".join(map(_line, taken)) + (_ENCODER.encode({"dropped": dropped}) + b"\n" if dropped else b"")
        try:
            with self._path.open("ab") as file:
                file.write(data)
        except OSError:
            self._dropped += len(taken) + dropped
            raise


def _line(request: Request) -> bytes:
    try:
        return _ENCODER.encode(request) + b"\n"
    except UnicodeEncodeError:  # a header field or name that is not UTF-8
        return json.dumps(msgspec.to_builtins(request), ensure_ascii=False).encode(errors="replace") + b"\n"


def recorded_requests(path: Path, tally: Tally | None = None) -> Tally:
    """Count the requests in a file, or in all files of a folder, and return the counts, which are added to `tally`.

    Raises OSError, RecordingError.
    """
    tally = Tally() if tally is None else tally
    for each in _files(path):
        tally.begin_server()
        with each.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
                if not line.endswith(b"\n"):
                    if len(line) < LONGEST_LINE:
                        break  # the server was killed while it wrote
                    raise RecordingError(f"{each}:{number}: the line has more than {LONGEST_LINE} bytes")
                try:
                    tally.add(msgspec.json.decode(line, type=dict[str, Any]))
                except (ValueError, RecursionError) as error:
                    raise RecordingError(f"{each}:{number}: {error}") from None
    return tally


def _files(path: Path) -> list[Path]:
    """Return the file, or the files of the folder in order. Raises OSError, RecordingError."""
    if not path.is_dir():
        return [path]
    found = sorted(islice((each for each in path.iterdir() if each.suffix == SUFFIX), MOST_FILES + 1))
    if len(found) > MOST_FILES:
        raise RecordingError(f"{path} has more than {MOST_FILES} files of requests")
    if not found:
        raise RecordingError(f"{path} has no file of requests")
    return found
