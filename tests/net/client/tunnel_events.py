"""Recorder of tunnel events."""

from __future__ import annotations


class Events:
    """Recorded tunnel events."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def started(self) -> None:
        self.told.append("started")

    def failed(self, stage: str) -> None:
        self.told.append(f"failed at {stage}")

    def succeeded(self, seconds: float) -> None:
        assert 0 <= seconds < 30
        self.told.append("made")
