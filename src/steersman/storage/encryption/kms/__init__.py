"""KMS v2: encryption keys that are wrapped by a plugin behind a Unix socket (k8s.io/kms `apis/v2`)."""
