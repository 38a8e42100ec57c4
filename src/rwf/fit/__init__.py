"""From rows to a fitted model: the pipeline, and its report."""
