"""NodeRestriction: limits of kubelets' writes beyond their permissions. The plugin is in plugin.py."""
