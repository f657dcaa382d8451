"""Packages that only some features need, installed as extras: `pip install 'steersman[tracing]'`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class MissingExtra(ImportError):
    """A feature needs a package that is not installed. The message names the package, and the extra that brings it."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        """`feature` begins the message, such as "stages of simulated nodes"."""
        super().__init__(
            f"{feature} need the package {package}, which is not installed; pip install 'steersman[{extra}]' installs it",
            name=package,
        )


def require(module: str, *, feature: str, package: str, extra: str) -> ModuleType:
    """Import and return a module of an optional package. Raises MissingExtra if the package is not installed.

    `feature` is a plural that begins the message of the error.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtra(feature, package, extra) from None
