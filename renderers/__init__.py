"""Diagnosis and stack tree to text: one file per output, each a pure function of its input."""
