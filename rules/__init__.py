"""The language of hang.yaml: grammar, parser, checks and packs. Knows nothing of processes."""
