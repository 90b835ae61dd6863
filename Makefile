.PHONY: dev check test long lab

dev:  ## Install for development
	python -m pip install -q -e '.[dev]'

check:  ## Format, lint, types, import direction
	ruff format --check .
	ruff check .
	mypy
	mypy tests
	mypy bench
	PYTHONPATH=.dev lint-imports

test:  ## The tests that need no PyTorch
	python -m pytest

long:  ## What takes minutes and needs no PyTorch
	python -m pytest -m long

lab:  ## Real torchrun jobs that really hang (needs PyTorch and, for the D state, root)
	python -m pytest -m lab -n 0
