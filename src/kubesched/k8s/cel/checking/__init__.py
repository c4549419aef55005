"""Static rules: `kinds` are types and compare them, `declarations` has functions, `checker` applies all."""
