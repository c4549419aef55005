"""One pod's way to a node. `cycle` tells of the decision, beside it stands one file per extension point; `loop` tells
of all of the way, from the queue to the bound pod.

`profile` has the plugins of a scheduler name in their order, `postfilter` what was found wrong with each node,
`class_cache` what is known of pods with the same signature, `preemption` evicts pods of lower priority.
Nothing here does input or output, reads a clock or draws a number of its own.
"""
