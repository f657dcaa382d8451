"""`steersman scheduler`: the scheduler on an API server elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from steersman.cli.command import Option, SectionedCommand
from steersman.cli.elsewhere import run_on


@click.command(cls=SectionedCommand)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    cls=Option,
    section="Generic",
    help="Where the API server is, and who this is to it.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    cls=Option,
    section="Leader election",
    help="Work only while no other instance does.",
)
def scheduler(kubeconfig: Path, leader_elect: bool) -> None:
    """Run the scheduler on any API server.

    The lease kube-system/kube-scheduler says which instance works: beside a kube-scheduler that runs, this one waits;
    it ends when it loses the lease.
    """
    from steersman.scheduler.standalone import Standalone

    run_on(kubeconfig, Standalone(leader_elect=leader_elect).run)
