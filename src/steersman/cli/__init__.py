"""The command line: parse, build a configuration, call one function."""

from steersman.work.no_collections import no_collections

try:
    with no_collections():
        from steersman.cli.main import main
except KeyboardInterrupt:  # while the program loads: as `main` ends when it is interrupted
    raise SystemExit(130) from None

__all__ = ["main"]
