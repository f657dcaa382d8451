"""Stand-in for the `etcd` beside the `kube-apiserver` of `steersman envtest`: lends out its data folder.

It is not an etcd, and stores no data itself. On its client URLs it answers `GET /health` as etcd does, and `POST
/steersman/claim`. By such a claim a kube-apiserver gets the path of the data folder, for exclusive use while the
connection lasts. The claim contains a secret from a file in that folder, which only the same user can read; a claim
without the secret is answered with the file's path. Other requests, including etcd's own protocol, get 404 or a closed
connection. Flags are etcd's: `-name value`, `--name=value`.

The file runs as a stand-alone program, without the rest of the package and without `site`, since tools wait for its
start. It only imports modules that load quickly.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial

VERSION = "3.6.8"
"""Version of the etcd whose flags are accepted."""
CLAIM = b"POST /steersman/claim "
CLAIM_FILE = "etcd.claim"
"""Name of the file in the data folder with the secret for claims."""
_HEALTHY = b'{"health":"true","reason":""}'
_HEAD_LIMIT = 16 << 10


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


IN_USE = {
    "data-dir": 'data folder, created if it does not exist (default "NAME.etcd")',
    "listen-client-urls": 'http://ADDRESS:PORT to listen on, comma-separated (default "http://localhost:2379")',
    "name": 'name of the default data folder (default "default")',
    "unsafe-no-fsync": "acknowledge writes before they are on the disk",
    "version": "print the version and exit",
    "help": "print this help and exit",
}
"""Flags with an effect."""
WITHOUT_EFFECT = names(
    "advertise-client-urls auth-token auth-token-ttl auto-compaction-mode auto-compaction-retention "
    "backend-batch-interval backend-batch-limit backend-bbolt-freelist-type bcrypt-cost "
    "bootstrap-defrag-threshold-megabytes compact-hash-check-enabled compact-hash-check-time compaction-batch-limit "
    "compaction-sleep-interval corrupt-check-time cors downgrade-check-time election-timeout enable-grpc-gateway "
    "enable-log-rotation enable-pprof force-new-cluster grpc-keepalive-interval grpc-keepalive-min-time "
    "grpc-keepalive-timeout heartbeat-interval host-whitelist initial-advertise-peer-urls initial-cluster "
    "initial-cluster-state initial-cluster-token initial-election-tick-advance listen-metrics-urls listen-peer-urls "
    "log-format log-level log-outputs log-rotation-config-json logger max-concurrent-streams max-learners "
    "max-request-bytes max-snapshots max-txn-ops max-wals memory-mlock metrics pre-vote quota-backend-bytes "
    "raft-read-timeout raft-write-timeout snapshot-catchup-entries snapshot-count socket-reuse-address "
    "socket-reuse-port strict-reconfig-check v2-deprecation wal-dir warning-apply-duration "
    "warning-unary-request-duration watch-progress-notify-interval"
)
"""Flags without effect: about peers, the log, limits and intervals of an etcd."""
_BOOLEAN = names(
    "compact-hash-check-enabled enable-grpc-gateway enable-log-rotation enable-pprof force-new-cluster help "
    "initial-election-tick-advance memory-mlock pre-vote socket-reuse-address socket-reuse-port strict-reconfig-check "
    "unsafe-no-fsync version"
)


class Refused(Exception):
    """The command line is invalid, or a folder or address cannot be used; the text is one line for the user."""


def parse(arguments: list[str]) -> dict[str, str]:
    """Parse flags as Go's package `flag` does, and return their values by name. Raises Refused.

    A boolean flag without a value is "true".
    """
    values: dict[str, str] = {}
    waiting = list(arguments)
    while waiting:
        text = waiting.pop(0)
        name, given, value = text.removeprefix("-").removeprefix("-").partition("=")
        if not text.startswith("-") or not name or name.startswith("-"):
            raise Refused(f"'{text}' is not a valid flag")
        if name == "h":
            name = "help"
        if name not in IN_USE and name not in WITHOUT_EFFECT:
            raise Refused(f"--{name} is not a flag of etcd, or not supported by steersman's etcd{_meant(name)}")
        if not given:
            if name in _BOOLEAN:
                value = "true"
            elif waiting:
                value = waiting.pop(0)
            else:
                raise Refused(f"flag needs an argument: --{name}")
        values[name] = value
    return values


def _meant(name: str) -> str:
    """Return `, did you mean --NAME?` for a similar flag, or ""."""
    from difflib import get_close_matches  # which no start needs

    near = get_close_matches(name[:100], [*IN_USE, *sorted(WITHOUT_EFFECT)], 1)
    return f", did you mean --{near[0]}?" if near else ""


def address(url: str) -> tuple[str, int]:
    """Return host and port of a client URL. Raises Refused."""
    scheme, _, rest = url.partition("://")
    if scheme != "http":
        raise Refused(f"--listen-client-urls: {url} is not of the form http://ADDRESS:PORT")
    host, _, port = rest.rstrip("/").rpartition(":")
    if not (host and port.isascii() and port.isdecimal() and int(port) < 65536):
        raise Refused(f"--listen-client-urls: {url} is not of the form http://ADDRESS:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def listen(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of the host. Raises Refused."""
    listeners = []
    try:
        for family, kind, protocol, _, place in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0):
            listener = socket.socket(family, kind, protocol)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(place)
            listener.listen(128)
            listener.setblocking(False)
            listeners.append(listener)
    except OSError as error:
        raise Refused(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listeners


def hold(folder: str) -> bytes:
    """Create and lock the data folder until this process ends, and return a new secret for claims. Raises Refused.

    The secret is in a file that only this user can read, so that knowing it proves to be this user.
    """
    try:
        make_folders(os.path.abspath(folder))
        check_owner(folder, os.stat(folder))
        lock = open_own(os.path.join(folder, "etcd.lock"), os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        word = os.urandom(16).hex().encode()
        file = open_own(os.path.join(folder, CLAIM_FILE), os.O_RDWR | os.O_CREAT)
        os.fchmod(file, 0o600)
        os.ftruncate(file, 0)
        os.write(file, word)
        os.close(file)
    except BlockingIOError:
        raise Refused(f"--data-dir: {folder} is in use by another etcd") from None
    except OSError as error:
        raise Refused(f"--data-dir: {folder} cannot be used: {error.strerror or error}") from None
    return word


def make_folders(path: str) -> None:
    """Create a folder and its missing parents, with mode 0700 whatever the umask. Raises OSError."""
    if not os.path.lexists(path):
        make_folders(os.path.dirname(path))
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def open_own(path: str, flags: int) -> int:
    """Open a file that belongs to this user or root, without following a link. Raises OSError."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        check_owner(path, os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def check_owner(path: str, status: os.stat_result) -> None:
    """Raise OSError if a file belongs to another user."""
    if status.st_uid not in (os.geteuid(), 0):
        raise OSError(f"{path} belongs to another user (uid {status.st_uid}), who could have put anything there")


class Service:
    """HTTP server on its listeners. At most one connection at a time holds the claim on the folder."""

    def __init__(self, listeners: list[socket.socket], folder: str, word: bytes, *, fsync: bool) -> None:
        self._folder = folder
        self._word = word
        self._fsync = fsync
        self._claimed_by: socket.socket | None = None
        self._heads: dict[socket.socket, bytes] = {}
        self._selector = selectors.DefaultSelector()
        for listener in listeners:
            self._watch(listener, partial(self._accept, listener))

    def run(self) -> None:
        """Serve until the process ends."""
        while True:
            for key, _ in self._selector.select():
                readable, act = key.data
                try:
                    if readable.fileno() >= 0:  # not closed by an earlier event of this loop
                        act()
                except BlockingIOError:
                    continue
                except OSError:  # an error of one connection, or too many open files; the others continue
                    if readable in self._heads:
                        self._end(readable)

    def _watch(self, readable: socket.socket, act: Callable[[], None]) -> None:
        self._selector.register(readable, selectors.EVENT_READ, (readable, act))

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.setblocking(False)
        self._heads[connection] = b""
        self._watch(connection, partial(self._read, connection))

    def _read(self, connection: socket.socket) -> None:
        data = connection.recv(_HEAD_LIMIT)
        if not data or connection is self._claimed_by:
            self._end(connection)
            return
        head = self._heads[connection] = self._heads[connection] + data
        if b"\r\n\r\n" in head or len(head) > _HEAD_LIMIT:
            self._answer(connection, head)

    def _answer(self, connection: socket.socket, head: bytes) -> None:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method in (b"GET", b"HEAD") and path == b"/health":
            self._send(connection, "200 OK", b"" if method == b"HEAD" else _HEALTHY)
        elif not head.startswith(CLAIM):
            self._send(connection, "404 Not Found", b"404 page not found\n")
        elif not self._knows_word(head):
            self._send(connection, "401 Unauthorized", self._where_word_is())
        elif self._is_claimed():
            self._send(connection, "409 Conflict", b'{"message":"another kube-apiserver keeps its data here"}')
        else:
            self._claimed_by = connection
            self._heads[connection] = b""
            self._send(connection, "200 OK", self._claim_answer(), keep=True)
            return
        self._end(connection)

    def _knows_word(self, head: bytes) -> bool:
        """Return True if a claim has the right secret, which only this user can read; others can connect too."""
        lines = head.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        given = fields.get(b"authorization", b"").removeprefix(b"Bearer ")
        return len(given) == len(self._word) and not sum(a ^ b for a, b in zip(given, self._word, strict=True))

    def _where_word_is(self) -> bytes:
        import json

        return json.dumps({"claimFile": os.path.abspath(os.path.join(self._folder, CLAIM_FILE))}).encode()

    def _is_claimed(self) -> bool:
        """Return True if the claiming connection is still open, checked by reading from it."""
        holder = self._claimed_by
        if holder is None:
            return False
        try:
            gone = not holder.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            gone = True
        if gone:
            self._end(holder)
        return not gone

    def _claim_answer(self) -> bytes:
        import json  # takes a third of the start

        return json.dumps({"dataDir": os.path.abspath(self._folder), "fsync": self._fsync}).encode()

    def _send(self, connection: socket.socket, status: str, body: bytes, *, keep: bool = False) -> None:
        lines = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        end = "\r\n" if keep else "Connection: close\r\n\r\n"
        connection.sendall((lines + end).encode() + body)

    def _end(self, connection: socket.socket) -> None:
        if connection is self._claimed_by:
            self._claimed_by = None
        del self._heads[connection]
        self._selector.unregister(connection)
        connection.close()


def help_text() -> str:
    """Return the help, with one line per flag, as tools search it for supported flags."""
    in_use = (f"  --{name}\n    {text}." for name, text in IN_USE.items())
    others = (f"  --{name}" for name in sorted(WITHOUT_EFFECT))
    return "\n".join(("The etcd of `steersman envtest`.", "", *in_use, "", "Without effect:", "", *others))


def version_text() -> str:
    """Return the output of `etcd --version`."""
    return f"etcd Version: {VERSION}\nGit SHA: none, as this is the etcd of `steersman envtest`"


def main(arguments: list[str]) -> int:
    """Run the program and return its exit code. After a successful start only a signal ends it, as with etcd."""
    try:
        values = parse(arguments)
        if "help" in values:
            print(help_text())
            return 0
        if "version" in values:
            print(version_text())
            return 0
        folder = values.get("data-dir", f"{values.get('name', 'default')}.etcd")
        urls = values.get("listen-client-urls", "http://localhost:2379").split(",")
        places = [address(url) for url in urls]
        word = hold(folder)
        listeners = [listener for place in places for listener in listen(*place)]
    except Refused as refused:
        print(f"etcd: {refused}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fsync = values.get("unsafe-no-fsync") not in ("true", "1", "t", "T", "TRUE", "True")
    Service(listeners, folder, word, fsync=fsync).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
