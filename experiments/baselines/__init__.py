"""What rwf is compared with: one file a method, each with ``fit``, ``predict`` and ``facts``."""
