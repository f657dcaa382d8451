"""`steersman envtest`: makes kube-apiserver and etcd for tools that start these two, and says where they are."""

from __future__ import annotations

import shlex

import click


@click.command()
@click.option("--env", "shell", is_flag=True, help="Print what a POSIX shell is to evaluate instead of the folder.")
@click.option("--controllers", is_flag=True, help="With controllers beside the server, which act on what tests make.")
@click.option("--cluster", is_flag=True, help="With controllers, a scheduler and simulated nodes, on which pods run.")
@click.option("--nodes", type=click.IntRange(1), default=1, show_default=True, help="How many nodes --cluster has.")
def envtest(*, shell: bool, controllers: bool, cluster: bool, nodes: int) -> None:
    """Make programs that envtest and its like start, and print their folder.

    The folder has kube-apiserver and etcd, and kubectl if there is one in PATH. Evaluating what --env prints tells
    controller-runtime's envtest (KUBEBUILDER_ASSETS), jenvtest (JENVTEST_DIR) and fabric8's kube-api-test
    (KUBE_API_TEST_DIR) to use it.
    """
    from steersman.cli.envtest import assets

    wanted = nodes if cluster else 0 if controllers else None
    home = assets.home_folder(wanted)
    try:
        folder = assets.make(home, wanted)
    except OSError as error:
        raise click.ClickException(f"{home} cannot be made: {error}") from None
    if not shell:
        click.echo(folder)
        return
    for name, value in (("KUBEBUILDER_ASSETS", folder), ("JENVTEST_DIR", home), ("KUBE_API_TEST_DIR", home)):
        click.echo(f"export {name}={shlex.quote(str(value))}")
    click.echo("unset TEST_ASSET_KUBE_APISERVER TEST_ASSET_ETCD")
