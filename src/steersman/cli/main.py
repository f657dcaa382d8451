"""`steersman`: the group of all commands."""

from __future__ import annotations

from typing import Final

import click

from steersman.cli.lazy_commands import LazyCommands
from steersman.cli.program import Program
from steersman.server.version import SHOWN_VERSION

_COMMANDS: Final = {
    "up": "up.commands",
    "status": "up.commands",
    "scale": "up.scale",
    "clock": "clock",
    "down": "up.commands",
    "reset": "up.reset",
    "kubeconfig": "kubeconfig",
    "why": "why",
    "what-if": "what_if",
    "trace": "trace",
    "serve": "serve_command",
    "controllers": "controllers",
    "scheduler": "scheduler",
    "history": "history.command",
    "diff": "history.diff_command",
    "fork": "history.fork_command",
    "import": "import_command:import_",
    "record": "record",
    "replay": "replay",
    "storage": "storage",
    "envtest": "envtest.command",
    "inspect": "inspect",
    "check": "check",
    "report": "report",
    "stress": "stress",
    "crd": "crd",
    "completion": "completion",
}
"""Modules of the commands, relative to this package."""


@click.group(
    name="steersman",
    cls=Program,
    commands=LazyCommands("steersman.cli", _COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110},
)
@click.version_option(SHOWN_VERSION, prog_name="steersman")
def main() -> None:
    """The Kubernetes API server in Python, and whole simulated clusters.

    \b
    steersman up                 a cluster with nodes, in this process, until it is interrupted
    steersman kubeconfig         configures kubectl for it
    """
