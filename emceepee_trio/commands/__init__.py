"""One module for each subcommand; what they share is in `common`. Nothing else prints."""
