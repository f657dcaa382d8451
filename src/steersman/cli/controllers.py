"""`steersman controllers`: runs controllers against another API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from steersman.cli.command import Option, SectionedCommand
from steersman.cli.controller_settings import SettingsError, settings_flags, settings_of
from steersman.cli.elsewhere import kubeconfig_option, leader_elect_option, log_options, run_on
from steersman.cli.program import fail


@click.command(cls=SectionedCommand)
@kubeconfig_option
@click.option(
    "--controllers",
    "names",
    multiple=True,
    default=("*",),
    cls=Option,
    section="Generic",
    help="Controllers to run: * for all that are on by default, foo to enable foo, -foo to disable foo.",
)
@settings_flags
@click.option(
    "--use-service-account-credentials",
    is_flag=True,
    cls=Option,
    section="Generic",
    help="Use a service account per controller.",
)
@log_options
@leader_elect_option
def controllers(
    kubeconfig: Path,
    names: tuple[str, ...],
    use_service_account_credentials: bool,
    leader_elect: bool,
    verbosity: int,
    logging_format: str,
    **given: Any,
) -> None:
    """Run the controllers of kube-controller-manager on any API server.

    Instances elect a leader by the lease kube-system/kube-controller-manager. While another instance or a
    kube-controller-manager is the leader, this one waits. It exits if it loses the lease.
    """
    from steersman.controllers.selection import selected
    from steersman.controllers.standalone import Standalone

    try:
        chosen = selected([each for text in names for each in text.split(",") if each])
    except ValueError as error:
        fail(f"--controllers: {error}")
    try:
        settings = settings_of(given)
    except (OSError, SettingsError) as error:
        fail(str(error))
    standalone = Standalone(
        settings, chosen, use_service_account_credentials=use_service_account_credentials, leader_elect=leader_elect
    )
    run_on(kubeconfig, standalone.run, verbosity, logging_format)
