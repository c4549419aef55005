"""Our own HTTP/1.1 client for short requests: about a quarter of the CPU time that aiohttp takes for a write.

`transport` is the way in; below it `pool` lends `connection`s, each of which reads answers with `answer_reader`.
"""
