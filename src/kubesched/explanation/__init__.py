"""Every decision explains itself: the cause in a sentence, each node, each plugin, each score raw and weighted.

`explain` is the way in. `evidence` asks every filter about every node and, with `findings`, says what is behind each
rejection; `groups` puts nodes together of which the same is true; `cause` and `headline` say why the pod is pending;
`changes` looks for what would make it fit. For machines there is `record`, for people `text`.
"""
