"""Suites expanded to runs, runs measured in processes of their own, and their stored rows."""
