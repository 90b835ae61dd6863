"""A small training job that really hangs: real processes, a real barrier, a real blocked read.

``whyhang demo`` copies these files into a directory of its own and runs them there, because the
job's code must be user code: none of a package.
"""
