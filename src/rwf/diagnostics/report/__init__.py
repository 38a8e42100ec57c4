"""A report on a model of a table and its predictions of some rows: one self-contained HTML file."""

from rwf.diagnostics.report.page import Page, write_report

__all__ = ["Page", "write_report"]
