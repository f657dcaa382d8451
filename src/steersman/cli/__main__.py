"""`python -m steersman.cli`: the command without its script."""

from steersman.cli.main import main

main(prog_name="steersman")
