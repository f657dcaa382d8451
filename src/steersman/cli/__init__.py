"""Command line: parses arguments, builds the configuration, and calls one function per command."""

from steersman.work.no_collections import no_collections

try:
    with no_collections(freeze=True):
        from steersman.cli.main import main
except KeyboardInterrupt:  # while the modules are imported: exit with the same status as `main` on an interrupt
    raise SystemExit(130) from None

__all__ = ["main"]
