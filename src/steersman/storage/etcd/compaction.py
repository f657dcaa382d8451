"""Compaction of etcd, coordinated between servers by one key (upstream's `etcd3/compact.go`)."""

from __future__ import annotations

from typing import Final

from steersman.net.ascii import is_digits
from steersman.net.client.grpc import CallError, Code
from steersman.storage.etcd import messages
from steersman.storage.etcd.members import Members

KEY: Final = b"compact_rev_key"
"""The key, whose version counts the compactions and whose value is the revision of the last one. It has no prefix,
because etcd can only be compacted as a whole.
"""
_MOST_DIGITS: Final = 19


class Compactor:
    """A job that compacts etcd to its revision of one interval ago, unless another server has done so in the meantime."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._rounds = 0
        """The number of compactions by all servers, as far as known."""
        self._revision = 0
        """The newest revision at the last interval."""
        self.compacted = 0
        """The revision up to which history has been removed, as far as known."""

    async def tick(self) -> None:
        """Compact once. To be called at every interval. Raises CallError."""
        target, told = self._revision, str(self._revision).encode()
        request = messages.put_if_version(KEY, told, version=self._rounds)
        answer = messages.read_txn(await self._members.call(messages.TXN, request, repeatable=False))
        self._revision = answer.revision
        if not answer.succeeded:
            if answer.found is not None:  # another server was first, or this one has just started
                self._rounds = answer.found.version
                self.learn(answer.found.value)
            return
        self._rounds += 1
        if target:
            try:
                await self._members.call(messages.COMPACT, messages.compaction(target), repeatable=False)
            except CallError as error:
                if error.code is not Code.OUT_OF_RANGE:  # it is compacted already
                    raise
            self.compacted = max(self.compacted, target)

    def learn(self, value: bytes) -> None:
        """Record the revision in the key's value, if it is a revision that etcd has reached."""
        if is_digits(value.decode(errors="replace")) and len(value) <= _MOST_DIGITS and int(value) <= self._revision:
            self.compacted = max(self.compacted, int(value))
