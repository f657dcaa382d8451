"""PersistentVolumes and PersistentVolumeClaims."""
