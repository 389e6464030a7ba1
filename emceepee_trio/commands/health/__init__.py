"""What could be wrong on this machine, and what to do about it.

`finding` what is found · `settings` configuration, token, variables · `daemon` who listens, and the
service · `entries` what clients start · `machine` what we rely on · `doctor` is the command.
"""
