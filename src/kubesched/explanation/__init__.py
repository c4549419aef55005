"""Every decision explains itself: each node, each plugin, every reason with its numbers, each score raw and weighted.

`explain` is the way in. For machines, `record` has the decision in the form of the test vectors, `report` everything;
for people there is `text`, whose parts are in `sections`. Behind both, `failing` asks every filter about every node,
`numbers` (with `findings`) says what was requested, used and free, and `changes` looks for the smallest changes that
would make a pod fit.
"""
