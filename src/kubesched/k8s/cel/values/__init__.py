"""Values at run time, and what may be done with them.

bool, int, float, str, bytes, None, list and dict are themselves; `scalars` has the rest. `operators` compares and
calculates, `containers` reads maps and lists, `go_text` writes values as Go does.
"""
