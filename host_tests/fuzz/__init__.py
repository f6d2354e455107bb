"""Coverage-guided fuzzing of what the client makes of a broker's bytes."""
