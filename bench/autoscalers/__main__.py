"""`python -m bench.autoscalers`."""

from bench.autoscalers.command import main

if __name__ == "__main__":
    main()
