"""What servers of ours allow of connections: how many, how long, and how much is said about it in a log.

`site.BoundedSite` takes the place of aiohttp's `TCPSite` in every server, and decides which connection has to go.
`log_lines.JoinRepeats` joins log lines that say the same; who only logs need not wait for aiohttp.
"""
