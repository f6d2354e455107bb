"""The pipeline on Spark: sources, transformations from DataFrame to DataFrame, the job."""
