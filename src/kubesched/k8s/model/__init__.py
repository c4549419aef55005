"""Kubernetes objects as typed, frozen data, and pure rules on them.

`meta`, `core`, `storage`, `volumes`, `resource` and `apps` hold the objects of the API groups, with only the fields
that scheduling looks at. `quantity`, `selectors`, `taints`, `requests` and `times` are rules on them.
`manifests` turns JSON and YAML into objects. Nothing here reads a file, a clock or a socket.
"""
