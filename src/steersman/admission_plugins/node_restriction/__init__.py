"""NodeRestriction: what kubelets may write, beyond what their rights say. See plugin.py."""
