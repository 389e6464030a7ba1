"""What servers take of the machine: `programs` who has which, `savings` what the log says of it."""
