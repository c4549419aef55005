"""From tree to closures: `compiler` walks the tree, the other modules make the closures of one sort of node each.

A closure takes the frame of one evaluation and returns a value or raises CelEvaluationError.
"""
