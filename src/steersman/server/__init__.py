"""The generic API server: Config -> complete() -> Server -> prepare_run() -> start()."""
