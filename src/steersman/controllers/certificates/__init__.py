"""Controllers of certificate signing requests: approval, signing, clean-up (pkg/controller/certificates)."""
