"""Access to the page: a one-time token, the session's cookie, and checks of where a request comes from.

Other pages in the same browser can send requests to loopback addresses. They must not get a response, or change
anything:

- a name that an attacker's DNS server resolves to 127.0.0.1 is refused by its Host header;
- requests of other origins, other ports of this machine included, are refused by Origin and Sec-Fetch-Site, and because
  a page of another origin cannot send `HEADER` without a preflight, which is refused;
- the cookie is SameSite=Strict and HttpOnly.
"""

from __future__ import annotations

import hmac
import secrets
from collections import deque
from collections.abc import Callable
from typing import Final

from steersman.net.message import Headers

HEADER: Final = "x-steersman-inspector"
"""Header that all requests of the page's scripts carry."""
_MOST_SESSIONS: Final = 16
"""Sessions of one front. A further one ends the oldest."""
_LONGEST_COOKIES: Final = 8 << 10
"""Longest Cookie header in characters: other servers on 127.0.0.1 set cookies that browsers send to all ports."""
_OWN_SITES: Final = ("same-origin", "none")


class Refused(Exception):
    """A request that gets no response from the front: an HTTP status and a sentence for the user."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status: Final = status


class Guard:
    """Token and sessions of one front.

    `announce` is called with each new token: the first one, and one after each use, as a token opens one session.
    """

    def __init__(self, port: int, announce: Callable[[str], None]) -> None:
        self._port = port
        self._hosts = frozenset((f"127.0.0.1:{port}", f"localhost:{port}"))
        self._cookie = f"steersman-inspector-{port}"  # cookies of all ports are in one jar
        self._announce = announce
        self._sessions: deque[str] = deque(maxlen=_MOST_SESSIONS)
        self._token = ""
        self._renew()

    def _renew(self) -> None:
        self._token = secrets.token_urlsafe(32)
        self._announce(self._token)

    def check_host(self, host: str) -> None:
        """Raise Refused unless the request was sent to this front by an address of its own."""
        if host not in self._hosts:
            raise Refused(421, f"This page is at http://127.0.0.1:{self._port}/ only.")

    def open_session(self, token: str) -> str:
        """Use up a token and return the Set-Cookie header of a new session. Raises Refused for a wrong token."""
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            raise Refused(
                403, "This address was used before, or is of an earlier start. The terminal shows the new one."
            )
        session = secrets.token_urlsafe(32)
        self._sessions.append(session)
        self._renew()
        return f"{self._cookie}={session}; Path=/; HttpOnly; SameSite=Strict"

    def check_session(self, headers: Headers) -> None:
        """Raise Refused unless the request carries the cookie of a session."""
        text = headers.joined("cookie")
        if len(text) <= _LONGEST_COOKIES:
            for part in text.replace(",", ";").split(";"):
                name, _, value = part.strip(" ").partition("=")
                if name == self._cookie and self._is_open(value):
                    return
        raise Refused(401, "Open the address with a token that the terminal shows.")

    def _is_open(self, session: str) -> bool:
        given = session.encode()
        return any(hmac.compare_digest(given, each.encode()) for each in self._sessions)

    def check_script(self, headers: Headers, host: str) -> None:
        """Raise Refused unless a script of the page sent the request."""
        if HEADER not in headers:
            raise Refused(403, f"Requests need the header {HEADER}.")
        self._check_origin(headers, host)

    def check_channel(self, headers: Headers, host: str) -> None:
        """Raise Refused unless the page opened the WebSocket: browsers add no header of ours, but always Origin."""
        if "origin" not in headers:
            raise Refused(403, "A WebSocket needs an Origin.")
        self._check_origin(headers, host)

    def _check_origin(self, headers: Headers, host: str) -> None:
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            raise Refused(403, "Requests of other pages are refused.")
        if headers.get("sec-fetch-site", "same-origin") not in _OWN_SITES:
            raise Refused(403, "Requests of other pages are refused.")
