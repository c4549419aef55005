"""A whole cluster in one process: API server, controllers, hollow nodes and the scheduler, meeting over HTTP.

`playground` starts and stops them; `manifests` puts objects in; `settling` waits until everything has been decided, for
runs that end by themselves. Next: `kubesched.cli.up`, the command.
"""
