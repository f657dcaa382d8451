"""The generic API server: Config -> complete() -> new(name, delegate) -> prepare_run() -> run(stop)."""
