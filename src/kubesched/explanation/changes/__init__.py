"""The smallest changes that would make a pod fit, each of them tried out on the engine before it is told.

Read `change` first (what a change is), then `search` (how they are found). `what_if` tries them out; the other modules
know one or two kinds each: `requests`, `freeing`, `relaxing`, `adding`, `evictions`.
"""

from kubesched.explanation.changes.change import Change, ChangeKind, Proposal
from kubesched.explanation.changes.search import smallest_change_on, smallest_changes

__all__ = ["Change", "ChangeKind", "Proposal", "smallest_change_on", "smallest_changes"]
