"""`steersman`: the group of all commands."""

from __future__ import annotations

import click

import steersman
from steersman.cli.controllers import controllers
from steersman.cli.crd import crd
from steersman.cli.envtest.command import envtest
from steersman.cli.kubeconfig import kubeconfig
from steersman.cli.scheduler import scheduler
from steersman.cli.serve import serve
from steersman.cli.up.commands import down, status, up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(steersman.__version__, prog_name="steersman")
def main() -> None:
    """The Kubernetes API server in Python."""


main.add_command(serve)
main.add_command(up)
main.add_command(status)
main.add_command(down)
main.add_command(controllers)
main.add_command(scheduler)
main.add_command(kubeconfig)
main.add_command(envtest)
main.add_command(crd)
