"""The command line: parse, build a configuration, call one function."""

try:
    from steersman.cli.main import main
except KeyboardInterrupt:  # while the program loads: as `main` ends when it is interrupted
    raise SystemExit(130) from None

__all__ = ["main"]
