"""`python -m bench.opening`."""

from bench.opening.command import main

if __name__ == "__main__":
    raise SystemExit(main())
