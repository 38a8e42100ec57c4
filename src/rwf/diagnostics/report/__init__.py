"""A page about a model of a table, and how it does on some rows: one HTML file, whole in itself."""

from rwf.diagnostics.report.page import Page, write_report

__all__ = ["Page", "write_report"]
