"""`steersman`: the group of all commands."""

from __future__ import annotations

import click

import steersman
from steersman.cli.completion import completion
from steersman.cli.controllers import controllers
from steersman.cli.crd import crd
from steersman.cli.envtest.command import envtest
from steersman.cli.kubeconfig import kubeconfig
from steersman.cli.program import Program
from steersman.cli.scheduler import scheduler
from steersman.cli.serve_command import serve
from steersman.cli.storage import storage
from steersman.cli.up.commands import down, status, up
from steersman.cli.up.reset import reset


@click.group(
    name="steersman",
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110},
)
@click.version_option(steersman.__version__, prog_name="steersman")
def main() -> None:
    """The Kubernetes API server in Python, and whole simulated clusters.

    \b
    steersman up                 a cluster with nodes, in this process, until it is interrupted
    steersman kubeconfig         lets kubectl talk to it
    """


for each in (up, status, down, reset, kubeconfig, serve, controllers, scheduler, storage, envtest, crd, completion):
    main.add_command(each)
