"""The resources of autoscaling."""
