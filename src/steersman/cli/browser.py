"""Opening an address that holds a secret in the user's browser."""

from __future__ import annotations

import html
import tempfile
import webbrowser
from pathlib import Path
from typing import Final

from steersman.machinery.private_files import write_new

_FILE: Final = "open.html"


class PrivateAddress:
    """A file that leads a browser to an address: `open`, and `forget` once the browser was there.

    Arguments of processes are visible to all users of a machine, so that the browser's process is not given the address
    itself. The file is in a folder that only this user can read.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def open(self, address: str) -> bool:
        """Open the address and return False if there is no browser. Raises OSError."""
        self.forget()
        self._folder = tempfile.TemporaryDirectory(prefix="steersman-")
        file = Path(self._folder.name, _FILE)
        shown = html.escape(address)
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0;url={shown}"><title>Steersman</title>'
            f'<p><a href="{shown}">Continue</a></p></html>\n'
        )
        write_new(file, page.encode())
        return webbrowser.open(file.as_uri())

    def forget(self) -> None:
        """Remove the file, if there is one."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
