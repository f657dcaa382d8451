"""`steersman crd`: prints the CustomResourceDefinitions of classes that are declared with @resource."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

import click

from steersman.machinery.suggestions import did_you_mean


@click.command()
@click.argument("where", metavar="MODULE[:CLASS]")
def crd(where: str) -> None:
    """Print the CustomResourceDefinitions of a module's classes, or of one class, as YAML for kubectl apply."""
    from steersman.library.checked import check_definition
    from steersman.library.declaration import Declaration, declaration_of
    from steersman.library.definition import definition_yaml
    from steersman.library.definition_error import DefinitionError

    name, _, wanted = where.partition(":")
    declared: dict[str, Declaration] = {}
    models: dict[str, type] = {}
    for each, model in vars(_module(name)).items():
        if not isinstance(model, type):
            continue
        try:
            declared[each] = declaration_of(model)
        except TypeError:  # not a declared class, or a further version of one
            continue
        models[each] = model
    hint = did_you_mean(wanted, models) if wanted else ""
    if wanted:
        models = {each: model for each, model in models.items() if each == wanted}
    if not models:
        raise click.ClickException(f"{where}: no class in it is declared with @resource{hint}")
    texts: dict[str, str] = {}
    for each, model in models.items():
        try:
            check_definition(declared[each])
            texts[declared[each].plural + "." + declared[each].group] = definition_yaml(model)
        except DefinitionError as error:
            raise click.ClickException(f"{each}: {error}") from None
    click.echo("---\n".join(texts.values()), nl=False)


def _module(name: str) -> ModuleType:
    """Import a module, which may be in the current folder."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            meant = name.removesuffix(".py").replace("/", ".")
            hint = f", did you mean {meant}?" if name.endswith(".py") else ""
            raise click.ClickException(f"there is no module {name}{hint}") from None
        raise
