"""`steersman controllers`: the controllers on an API server elsewhere."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from steersman.cli.elsewhere import run_on
from steersman.cli.serve import fail

_File = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--kubeconfig", type=_File, required=True, help="Where the API server is, and who this is to it.")
@click.option("--root-ca-file", type=_File, help="Certificates by which pods verify the API server.")
@click.option(
    "--use-service-account-credentials", is_flag=True, help="Each controller is a service account of its own."
)
@click.option("--leader-elect/--no-leader-elect", default=True, help="Work only while no other instance does.")
def controllers(
    kubeconfig: Path, root_ca_file: Path | None, use_service_account_credentials: bool, leader_elect: bool
) -> None:
    """Run the controllers of kube-controller-manager on any API server.

    The lease kube-system/kube-controller-manager says which instance works: beside a kube-controller-manager that runs,
    this one waits; it ends when it loses the lease.
    """
    logging.basicConfig(level=logging.WARNING)
    from steersman.controllers.controller import Settings
    from steersman.controllers.standalone import Standalone

    try:
        settings = Settings(root_ca=root_ca_file.read_text() if root_ca_file is not None else "")
    except OSError as error:
        fail(str(error))
    standalone = Standalone(
        settings, use_service_account_credentials=use_service_account_credentials, leader_elect=leader_elect
    )
    run_on(kubeconfig, standalone.run)
