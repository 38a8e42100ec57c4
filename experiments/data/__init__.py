"""What methods learn from and are tested on: tables, signals, recordings, and their splits."""
