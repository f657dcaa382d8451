"""Objects of kwok (kwok.x-k8s.io/v1alpha1) that say what simulated pods show: logs, commands, ports, usage."""
