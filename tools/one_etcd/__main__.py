"""`python -m tools.one_etcd`."""

from tools.one_etcd.command import main

if __name__ == "__main__":
    main()
