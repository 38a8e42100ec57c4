"""Products and factorisations in the memory that they are given, on as many threads as allowed."""
