"""`python -m tools.cluster_attacks`."""

from tools.cluster_attacks.command import main

if __name__ == "__main__":
    main()
