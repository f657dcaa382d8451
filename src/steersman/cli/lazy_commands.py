"""Lazy import of commands, since a process runs only one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click

from steersman.work.no_collections import no_collections


class LazyCommands(MutableMapping[str, click.Command]):
    """Mapping of names to commands; each command is imported from a module of `package` at its first access.

    A module's command has the name of the mapping, unless another attribute follows after a colon.
    """

    def __init__(self, package: str, modules: Mapping[str, str]) -> None:
        self._package = package
        self._modules = dict(modules)
        self._added: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name in self._added:
            return self._added[name]
        with no_collections(freeze=True):
            module, _, attribute = self._modules[name].partition(":")
            found: click.Command = getattr(
                import_module(f"{self._package}.{module}"), attribute or name.replace("-", "_")
            )
        return found

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._added[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands cannot be removed")

    def __iter__(self) -> Iterator[str]:
        yield from self._modules
        yield from self._added

    def __len__(self) -> int:
        return len(self._modules) + len(self._added)
