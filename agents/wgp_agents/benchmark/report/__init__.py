"""The report of an experiment: summary rows, tables, charts, the page, Markdown."""
