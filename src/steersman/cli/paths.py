"""Default data folder (XDG Base Directory Specification), and absolute paths as command line arguments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click

DEFAULT_DATA_DIR: Final = "~/.local/state/steersman"
"""The default folder in help texts."""


def default_data_dir() -> Path:
    """Return `$XDG_STATE_HOME/steersman`, by default `~/.local/state/steersman`."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return absolute((Path(base) if base else Path.home() / ".local" / "state") / "steersman")


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path, with symbolic links unresolved."""
    return Path(os.path.abspath(path))


class AbsolutePath(click.Path):
    """Parameter type of a path, which is made absolute."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(path_type=Path, **attributes)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("an empty path is not allowed", param, ctx)
        return absolute(os.fsdecode(super().convert(value, param, ctx)))


class OutputFile(AbsolutePath):
    """Parameter type of a file to write, whose folder exists."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if not path.parent.is_dir():
            self.fail(f"there is no folder {path.parent}", param, ctx)
        return path


cluster_data_dir: Final = click.option(
    "--data-dir",
    type=AbsolutePath(file_okay=False),
    metavar="folder",
    default=default_data_dir,
    show_default=False,
    help=f"the cluster's folder  [default: {DEFAULT_DATA_DIR}]",
)
"""Decorator that adds --data-dir to a command about a cluster's folder."""
