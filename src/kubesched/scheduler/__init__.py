"""The scheduler, free of input and output."""
