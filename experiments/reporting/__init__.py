"""Tables, figures and pages from stored rows."""
