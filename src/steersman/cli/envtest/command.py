"""`steersman envtest`: makes kube-apiserver and etcd for tools that start these two, and says where they are."""

from __future__ import annotations

import shlex

import click


@click.command()
@click.option("--env", "shell", is_flag=True, help="Print what a POSIX shell is to evaluate instead of the folder.")
def envtest(*, shell: bool) -> None:
    """Make programs that envtest and its like start, and print their folder.

    The folder has kube-apiserver and etcd, and kubectl if there is one in PATH. Evaluating what --env prints tells
    controller-runtime's envtest (KUBEBUILDER_ASSETS), jenvtest (JENVTEST_DIR) and fabric8's kube-api-test
    (KUBE_API_TEST_DIR) to use it.
    """
    from steersman.cli.envtest import assets

    home = assets.home_folder()
    try:
        folder = assets.make(home)
    except OSError as error:
        raise click.ClickException(f"{home} cannot be made: {error}") from None
    if not shell:
        click.echo(folder)
        return
    for name, value in (("KUBEBUILDER_ASSETS", folder), ("JENVTEST_DIR", home), ("KUBE_API_TEST_DIR", home)):
        click.echo(f"export {name}={shlex.quote(str(value))}")
    click.echo("unset TEST_ASSET_KUBE_APISERVER TEST_ASSET_ETCD")
