"""Static rules: `kinds` are types, `unification` compares them, `declarations` has functions, `checker` applies all."""
