"""`python -m tools.cluster_soak`."""

from tools.cluster_soak.command import main

if __name__ == "__main__":
    main()
