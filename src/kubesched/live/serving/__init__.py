"""The secure port: health, metrics, configuration and debugging over HTTPS, for whom the API server allows it.

`settings` is what flags say, `sources` is what the scheduler tells about itself, `server` puts both behind a port, and
asks who may see what. `certificates` are its side of TLS, `authentication` says who asks, and `component_pages` and
`debug_pages` say what is answered.

Nothing is imported here: a scheduler without a secure port need not wait for it, and one with it starts its informers
first. Next: `server`.
"""
