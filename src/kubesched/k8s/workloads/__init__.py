"""What controllers make of workloads: pure functions from an object and what exists to what should change.

One module per kind of controller; each gives a `Plan` of objects to create, update and delete, and does nothing itself.
Time, names and chance are handed in, so the same code serves a simulation and an API server.

Read `actions` first, then `replicas` as the simplest controller. `admission` has what an API server fills in.
"""
