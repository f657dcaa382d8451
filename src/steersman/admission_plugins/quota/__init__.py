"""ResourceQuota: the admission plugin, and evaluators of the usage of objects."""
