"""One module for each subcommand; the only ones that print."""
