"""`steersman completion`: prints scripts that complete commands, flags and values in a shell."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, add_completion_class, get_completion_class

_PROGRAM = "steersman"
_VARIABLE = "_STEERSMAN_COMPLETE"


class _Bash(BashComplete):
    """Completion for bash, which splits words at `=`."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, incomplete = super().get_completion_args()
        return [each for each in words if each != "="], incomplete


def know_bash() -> None:
    """Register the completion class that handles bash's word splitting."""
    add_completion_class(_Bash)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes command lines in a shell.

    \b
    bash:  echo 'eval "$(steersman completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(steersman completion zsh)"' >> ~/.zshrc
    fish:  steersman completion fish > ~/.config/fish/completions/steersman.fish
    """
    know_bash()
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    click.echo(completion_class(context.find_root().command, {}, _PROGRAM, _VARIABLE).source())
