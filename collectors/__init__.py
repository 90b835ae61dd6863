"""The operating system's edge: one file per source. Answers with data or with Missing(reason)."""
