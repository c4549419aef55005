"""From text to tree: `lexer` makes tokens, `parser` builds `nodes`, `macros` rewrites has(), all() and the like."""
