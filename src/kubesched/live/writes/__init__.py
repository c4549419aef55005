"""Effects become requests: what the loop asks for is written to the API server, and the outcome told back.

`writer` sends each action to who carries it out: `object_writes`, `claim_writes`, extenders, and the event recorder.
`LeaderGate` stands between all of them and the server: who does not hold the lease writes nothing.
"""
