"""Planning: questions about a cluster that is not there yet, answered by the scheduler itself.

Every answer is played: whatever is said to fit was placed by the scheduler with the given configuration.

Next: a module for each question (`capacity`, `check`, `compare`, `optimal`, `outage`, `upgrade`), or a package
(`consolidate`, `plan`), with what it reports beside it; `node_groups` for how nodes are grouped, `catalogue` for what
can be bought, `copies` for how pods are added.
"""
