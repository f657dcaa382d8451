"""Entry point of `python -m steersman.cli`."""

from steersman.cli.main import main

main(prog_name="steersman")
