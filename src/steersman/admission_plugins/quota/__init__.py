"""ResourceQuota: the plugin, and what objects of each kind use."""
