"""`steersman scheduler`: runs the scheduler against another API server."""

from __future__ import annotations

from pathlib import Path

import click

from steersman.cli.command import SectionedCommand
from steersman.cli.elsewhere import kubeconfig_option, leader_elect_option, log_options, run_on


@click.command(cls=SectionedCommand)
@kubeconfig_option
@log_options
@leader_elect_option
def scheduler(kubeconfig: Path, leader_elect: bool, verbosity: int, logging_format: str) -> None:
    """Run the scheduler on any API server.

    Instances elect a leader by the lease kube-system/kube-scheduler. While another instance or a kube-scheduler is the
    leader, this one waits. It exits if it loses the lease.
    """
    from steersman.scheduler.standalone import Standalone

    run_on(kubeconfig, Standalone(leader_elect=leader_elect).run, verbosity, logging_format)
