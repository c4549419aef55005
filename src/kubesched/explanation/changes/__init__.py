"""The smallest changes that would make a pod fit, each of them tried out on the engine before it is told.

Read `what_if` first (what a change is, and how it is tried out), then `search` (how they are found). The other modules
know one or two kinds each: `requests`, `freeing`, `relaxing`, `adding`.
"""

from kubesched.explanation.changes.search import smallest_change_on, smallest_changes
from kubesched.explanation.changes.what_if import Change, ChangeKind, Proposal

__all__ = ["Change", "ChangeKind", "Proposal", "smallest_change_on", "smallest_changes"]
