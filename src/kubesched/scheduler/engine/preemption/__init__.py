"""Preemption: evicts pods of lower priority.

`evaluation` tells the story: is the pod eligible, on which nodes would evictions help (`victims`, a dry run node by
node, sparing what disruption budgets protect), and which of these is hurt least (`candidates`).
"""

from kubesched.scheduler.engine.preemption.candidates import Candidate, CandidateReview, Preemption
from kubesched.scheduler.engine.preemption.evaluation import preempt

__all__ = ["Candidate", "CandidateReview", "Preemption", "preempt"]
