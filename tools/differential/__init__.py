"""Two API servers given the same random requests: every difference between their answers is one too many.

    python -m tools.differential --a CMD --b CMD [--kinds apply,merge] [--cases 500] [--seed 7]

Each CMD starts a server, prints one JSON line with its url, ca and token when that is ready, and stays in the
foreground until SIGTERM, as bench/serve does. See `command.py` for the options and `case.py` for what a kind of cases
is.
"""
