"""The commands, one module each; `main` lists them and loads a command when it is called.

`output` has what they print with, `scheduler_choice` and `live` the options that several of them share.
"""
