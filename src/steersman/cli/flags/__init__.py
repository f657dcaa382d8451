"""kube-apiserver's flags, as the commands that serve take them."""

from steersman.cli.flags.parsing import arguments_by_flag, parse

__all__ = ["arguments_by_flag", "parse"]
