"""The daemon as a service of systemd: `unit` describes it, `install` is the command."""
