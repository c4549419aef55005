"""From text to tree: `lexer` cuts tokens, `parser` builds `nodes`, `macros` rewrites has(), all() and the like."""
