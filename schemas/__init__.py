"""The words everybody shares: immutable types and pure codecs, without any I/O."""
