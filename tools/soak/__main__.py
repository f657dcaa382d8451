"""`python -m tools.soak`."""

from tools.soak.command import main

if __name__ == "__main__":
    main()
