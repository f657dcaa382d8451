"""PodSecurity: the plugin, the checks, and their levels."""
