"""`fleet bench`: speed and memory of the pipeline, beside tshark and the budgets."""
