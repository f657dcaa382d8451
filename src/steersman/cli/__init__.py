"""The command line: parse, build a configuration, call one function."""

from steersman.cli.main import main

__all__ = ["main"]
