"""kube-apiserver's flags, as the commands that serve take them."""

from steersman.cli.flags.parsing import arguments_by_flag, parse
from steersman.cli.flags.sections import FLAGS, SECTIONS, Flag

__all__ = ["FLAGS", "SECTIONS", "Flag", "arguments_by_flag", "parse"]
