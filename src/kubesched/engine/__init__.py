"""One pod's way to a node. `cycle` tells the story; beside it stands one file per stage.

`profile` has the plugins of a scheduler name in their order, `diagnosis` and `fit_error` what was found wrong with each
node, `preemption` makes room by evicting pods of lower priority. Nothing here does input or output, reads a clock or
draws a number of its own.
"""
