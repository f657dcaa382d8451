"""Compaction of etcd, agreed upon between servers by way of one key (upstream's `etcd3/compact.go`)."""

from __future__ import annotations

from typing import Final

from steersman.net.ascii import is_digits
from steersman.net.client.grpc import CallError, Code
from steersman.storage.etcd import messages
from steersman.storage.etcd.members import Members

KEY: Final = b"compact_rev_key"
"""Its version counts the compactions; its value is the revision of the last one. It has no prefix: etcd is compacted as
a whole."""
_MOST_DIGITS: Final = 19


class Compactor:
    """Compacts to where etcd was one round ago, unless another server has done so meanwhile."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._rounds = 0
        """How often was compacted, by whomever, as far as is known."""
        self._revision = 0
        """The newest revision at the last round."""
        self.compacted = 0
        """Up to where history is gone, as far as is known."""

    async def tick(self) -> None:
        """One round, to be called every interval. Raises CallError."""
        target, told = self._revision, str(self._revision).encode()
        request = messages.put_if_version(KEY, told, version=self._rounds)
        answer = messages.read_txn(await self._members.call(messages.TXN, request, repeatable=False))
        self._revision = answer.revision
        if not answer.succeeded:
            if answer.found is not None:  # another server was first, or this one has just begun
                self._rounds = answer.found.version
                self.learn(answer.found.value)
            return
        self._rounds += 1
        if target:
            try:
                await self._members.call(messages.COMPACT, messages.compaction(target), repeatable=False)
            except CallError as error:
                if error.code is not Code.OUT_OF_RANGE:  # which says that it is compacted already
                    raise
            self.compacted = max(self.compacted, target)

    def learn(self, value: bytes) -> None:
        """Takes what the key holds, if that is a revision that there has been."""
        if is_digits(value.decode(errors="replace")) and len(value) <= _MOST_DIGITS and int(value) <= self._revision:
            self.compacted = max(self.compacted, int(value))
