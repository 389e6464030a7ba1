"""One module for each subcommand; what they share is in `common`. Nothing else prints.

`serve` and `stdio` are what clients connect to, `demo` is a tour · `status`, `sessions`, `logs` and
`open` ask a running daemon, as `under_way` does · `servers`, `tools`, `call` and `check` use
servers from a shell · `home` are other programs' settings, `service` is systemd's, `health` the
doctor · `completion` for shells.
"""
