"""Scenarios with pod groups, settled by a stock kube-scheduler and by ours on one API server, and compared.

Next: `__main__`.
"""
