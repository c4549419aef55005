"""`kubesched check`: whether a change may be merged, by rules in a file; the gate for CI.

`check_file` reads the rules, `checks` answers them one by one, `report` is what comes of it, also as CI systems want
it, `positions` knows in which line of which file an object stands.
"""
