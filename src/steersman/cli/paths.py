"""Folders of a user's data (XDG Base Directory Specification), and paths of the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click

DEFAULT_DATA_DIR: Final = "~/.local/state/steersman"
"""The default folder, as help names it."""


def default_data_dir() -> Path:
    """`$XDG_STATE_HOME/steersman`, by default `~/.local/state/steersman`."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return absolute((Path(base) if base else Path.home() / ".local" / "state") / "steersman")


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return a path from the root on, so that it is true in whatever folder it is read. Links stay."""
    return Path(os.path.abspath(path))


class AbsolutePath(click.Path):
    """A path of the command line, from the root on."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(path_type=Path, **attributes)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("the name of a file or a folder is needed", param, ctx)
        return absolute(os.fsdecode(super().convert(value, param, ctx)))


cluster_data_dir: Final = click.option(
    "--data-dir",
    type=AbsolutePath(file_okay=False),
    metavar="folder",
    default=default_data_dir,
    show_default=False,
    help=f"the cluster's folder  [default: {DEFAULT_DATA_DIR}]",
)
"""Decorates commands that are about the folder of a cluster."""
