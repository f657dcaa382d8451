"""The Service `kubernetes` in `default`, and where it leads: to all servers on one store that run."""
