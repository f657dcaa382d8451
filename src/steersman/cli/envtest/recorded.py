"""The record of the requests to envtest's server in a folder, for `steersman report`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from steersman.controlplane.parts.serving import GenericServer
from steersman.report.recording import Recording
from steersman.work.parts import Part


class RecordedRequests(Part):
    """A record of all requests, from the first one on. Raises OSError for a folder that cannot be written to."""

    generic: GenericServer
    recording: Recording | None = None

    async def start(self, ending: AsyncExitStack) -> None:
        assert self.recording is not None
        self.recording.start(self.generic.server.traces)
        ending.push_async_callback(self.recording.stop)


def with_record(recorded: Recording, parts: Sequence[type[Part]]) -> Sequence[type[Part]]:
    """Return the parts of a control plane that records its requests."""

    class RecordOfFolder(RecordedRequests):
        """The record in the folder."""

        recording = recorded

    after = parts.index(GenericServer) + 1
    return [*parts[:after], RecordOfFolder, *parts[after:]]
