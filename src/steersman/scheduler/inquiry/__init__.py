"""Questions to the scheduler without a decision: verdicts of all plugins, scores, and decisions on a copy of a cluster."""
