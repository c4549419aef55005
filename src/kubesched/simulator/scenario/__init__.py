"""What happens to the cluster in the course of a run: nodes come, are drained, fail; objects change.

`document` has the file's form, `reading` checks it, `playing` carries it out.
"""
