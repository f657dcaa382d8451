"""`steersman envtest`: creates kube-apiserver and etcd for test tools, and prints their folder."""

from __future__ import annotations

import shlex

import click


@click.command()
@click.option("--env", "shell", is_flag=True, help="Print shell commands that set the environment, not the folder.")
@click.option("--controllers", is_flag=True, help="Run controllers in the server.")
@click.option("--cluster", is_flag=True, help="Run controllers, a scheduler, and simulated nodes that run pods.")
@click.option("--nodes", type=click.IntRange(1), default=1, show_default=True, help="Number of nodes for --cluster.")
def envtest(*, shell: bool, controllers: bool, cluster: bool, nodes: int) -> None:
    """Create the programs that envtest and similar tools start, and print their folder.

    The folder has kube-apiserver and etcd, and kubectl if there is one in PATH. The output of --env is for a POSIX
    shell's `eval`; it makes controller-runtime's envtest (KUBEBUILDER_ASSETS), jenvtest (JENVTEST_DIR) and fabric8's
    kube-api-test (KUBE_API_TEST_DIR) use the folder.
    """
    from steersman.cli.envtest import assets

    wanted = nodes if cluster else 0 if controllers else None
    home = assets.home_folder(wanted)
    try:
        folder = assets.make(home, wanted)
    except OSError as error:
        raise click.ClickException(f"cannot create {home}: {error}") from None
    if not shell:
        click.echo(folder)
        return
    for name, value in (("KUBEBUILDER_ASSETS", folder), ("JENVTEST_DIR", home), ("KUBE_API_TEST_DIR", home)):
        click.echo(f"export {name}={shlex.quote(str(value))}")
    click.echo("unset TEST_ASSET_KUBE_APISERVER TEST_ASSET_ETCD")
