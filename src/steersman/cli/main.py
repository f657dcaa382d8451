"""`steersman`: the group of all commands."""

from __future__ import annotations

from typing import Final

import click

import steersman
from steersman.cli.completion import completion
from steersman.cli.controllers import controllers
from steersman.cli.crd import crd
from steersman.cli.envtest.command import envtest
from steersman.cli.kubeconfig import kubeconfig
from steersman.cli.scheduler import scheduler
from steersman.cli.serve import serve
from steersman.cli.storage import storage
from steersman.cli.up.commands import down, status, up

_WHOLE: Final = 1000
"""Characters after which click would cut a sentence."""


class InOrder(click.Group):
    """Lists its commands as they were added, each with the whole first sentence of its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, each.get_short_help_str(_WHOLE)) for name, each in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110},
)
@click.version_option(steersman.__version__, prog_name="steersman")
def main() -> None:
    """The Kubernetes API server in Python, and whole simulated clusters.

    \b
    steersman up                 a cluster with nodes, in this process, until it is interrupted
    steersman kubeconfig         lets kubectl talk to it
    """


for each in (up, status, down, kubeconfig, serve, controllers, scheduler, storage, envtest, crd, completion):
    main.add_command(each)
