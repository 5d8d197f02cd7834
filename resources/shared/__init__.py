"""What several node types share: paths, snapshots and their restoration, accounts, packages and units of systemd."""
