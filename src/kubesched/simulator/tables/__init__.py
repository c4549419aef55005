"""Small tables of columns that any dataframe library can read, without depending on one.

`column_table` is the table, `arrow` shows it to others through Arrow's C data interface.
"""
