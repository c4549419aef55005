"""An embedded Kubernetes API server: storage, verbs, kinds. Knows nothing of scheduling; whoever wants to schedule
talks HTTP with it.
"""
