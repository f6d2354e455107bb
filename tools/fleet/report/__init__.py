"""The report: one HTML file that needs nothing else, made from the tables of an audit."""
