"""Every decision explains itself: each node, each plugin, every reason with its numbers, each score raw and weighted.

`explain` is the way in; `record` gives the machine's form, `text` the people's, `numbers` what was requested, used and
free, `changes` the smallest changes that would make a pod fit.
"""
