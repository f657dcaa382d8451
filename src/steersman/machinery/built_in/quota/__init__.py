"""Usage of quotas by objects: admission charges it, and the quota controller adds it up."""
