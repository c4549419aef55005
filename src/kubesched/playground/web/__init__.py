"""The playground's page: nodes, pods and the queue as they are right now, and why a pod is where it is.

Everything it shows comes over HTTP, from `/api/...` of its own small server, which any client with the key can read.
`page` serves; `sources` says what it must be given; `stream` and `pod_story` say what is shown; `static/` is what the
browser runs, as it is: there is no build step.
"""
