"""All that proves: tests, what they stand on, and what breaks and measures at length."""
