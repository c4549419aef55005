"""Effects become requests: what the loop asks for is written to the API server, and the outcome told back.

`writer` sends each action to who carries it out: `pod_writes`, `volume_writes`, `claim_writes`, `extender_calls`, and
the event recorder. `leadership` stands between all of them and the server: who does not hold the lease writes nothing.
"""
