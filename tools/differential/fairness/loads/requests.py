"""Requests to a server over connections that are kept."""

from __future__ import annotations

import asyncio
import ssl
import urllib.parse
from collections.abc import Mapping
from typing import Final

_REPLY = tuple[int, dict[str, str]]
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Requests:
    """To one server, as its administrator."""

    def __init__(self, found: Mapping[str, str]) -> None:
        parts = urllib.parse.urlsplit(found["url"])
        self._host: Final = parts.hostname or ""
        self._port: Final = parts.port
        self._tls: Final = ssl.create_default_context(cafile=found["ca"])
        self._token: Final = found["token"]
        self._idle: list[Connection] = []

    async def warm_up(self, connections: int, path: str) -> None:
        """Opens connections, for requests to come without delay."""
        opened = [await self._open() for _ in range(connections)]
        for each in opened:
            self._idle.append(each)
            await self.delete(path, {})

    async def _open(self) -> Connection:
        return await asyncio.open_connection(self._host, self._port, ssl=self._tls)

    async def delete(self, path: str, fields: Mapping[str, str]) -> _REPLY:
        """The code and the head of the answer. Who cancels it hangs up, of which Go finds out as there is no body."""
        while self._idle and self._idle[-1][0].at_eof():
            self._idle.pop()[1].close()  # the server has closed it
        connection = self._idle.pop() if self._idle else await self._open()
        reader, writer = connection
        try:
            head = {"Host": self._host, "Authorization": f"Bearer {self._token}", **fields}
            lines = [f"DELETE {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
            writer.write("\r\n".join(lines).encode())
            status, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            found = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
            await reader.readexactly(int(found["content-length"]))
        except BaseException:
            writer.transport.abort()
            raise
        if found.get("connection") == "close":
            writer.close()
        else:
            self._idle.append(connection)
        return int(status.split()[1]), found

    def close(self) -> None:
        for _, writer in self._idle:
            writer.transport.abort()
