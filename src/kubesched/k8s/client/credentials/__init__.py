"""The ways of logging in to an API server, one module each; all of them are `target.Credentials` by shape.

`from_user` reads a kubeconfig's user and picks among `stored` (token, password, files), `exec_plugin` and `oidc`;
around what it picked it may put certificates that change, and impersonation.
"""
