"""The generic API server: Config -> complete() -> new() -> prepare_run() -> start()."""
