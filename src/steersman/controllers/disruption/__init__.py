"""The disruption controller: how many pods budgets let go."""
