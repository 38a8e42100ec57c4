"""The command line: every command parses, calls one function of the library, and prints."""
