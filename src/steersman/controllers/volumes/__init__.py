"""Controllers of volumes: binding to claims, provisioning, attachment, expansion, protection from early deletion."""
