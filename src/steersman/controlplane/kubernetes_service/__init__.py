"""The Service `kubernetes` in `default`, which leads to all running servers on one store."""
