"""PodSecurity: the plugin, its checks, and the levels of the Pod Security Standards."""
