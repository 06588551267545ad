# Every target sets up what it needs in .venv first: the environment, the development tools and the compiled core.
# What has not changed is not done again: a stamp file remembers each step.

PYTHON ?= python3
# How pytest is run; `make test PYTEST_FLAGS="-x tests/test_laws.py"` looks at one file.
PYTEST_FLAGS ?= -n auto --dist worksteal

bin := .venv/bin
crate := rust/Cargo.toml
rust_files := $(shell find rust -name target -prune -o -name '*.rs' -print) $(crate) $(wildcard rust/Cargo.lock)
extension := $(wildcard src/banbury/_core*.so)
# Whatever environment the shell is in, maturin installs into this one.
export VIRTUAL_ENV := $(CURDIR)/.venv
unexport CONDA_PREFIX
# Processes that tests start find the package compiled.
unexport PYTHONDONTWRITEBYTECODE
# In continuous integration the lock file must already be right.
locked := $(if $(CI),--locked)

need_cargo = @command -v cargo >/dev/null || { \
	echo "Banbury's core is written in Rust, and there is no cargo on PATH. Install Rust from https://rustup.rs." >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help demo serve-demo test test-rust test-engines test-all lint lint-rust bench wheel clean FORCE

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F '|' '{ printf "%-12s %s\n", $$1, $$2 }'

demo: .venv/core.stamp ## See it work on docstrings of Python's own library, in ten seconds; leaves a model and a report in banbury-demo/
	@$(bin)/python -m banbury.demo

serve-demo: .venv/core.stamp ## Open the page on the same docstrings: ask, label by keyboard, look; Ctrl-C ends it
	@$(bin)/python -m banbury demo --page

test: .venv/core.stamp test-rust ## Run every test: the Rust kernels, the package, and the examples in README and docs
	$(bin)/python -m pytest $(PYTEST_FLAGS)

test-rust: rust/target/tested.stamp ## Run the tests of the Rust kernels alone, if they have changed

rust/target/tested.stamp: $(rust_files)
	$(need_cargo)
	cargo test --manifest-path $(crate) $(locked) --quiet
	@mkdir -p $(@D) && touch $@

test-engines: .venv/engines.stamp ## Run the tests of Dask and Spark, which are installed for it
	$(bin)/python -m pytest -n 3 --dist loadfile $(filter-out %_processes.py,$(wildcard tests/test_engines_*.py))

test-all: export HYPOTHESIS_PROFILE = thorough
test-all: test ## The same tests with twenty times as many drawn examples, 100,000 of the tokeniser, and millions of steps of learning and forgetting; some hours

lint: .venv/tools.stamp lint-rust ## Check style, types, the order of imports and that families are closed, in Python and in Rust
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy
	PYTHONPATH=src $(bin)/lint-imports
	$(bin)/python tests/house.py

lint-rust: .venv/tools.stamp ## Check the Rust code alone
	cargo fmt --manifest-path $(crate) --check
	PYO3_PYTHON=$(CURDIR)/$(bin)/python cargo clippy --manifest-path $(crate) $(locked) --quiet --all-targets --features python -- -D warnings

bench: .venv/core.stamp ## Time it beside its peers, checking the answers
	$(bin)/python -m benchmarks

wheel: .venv/tools.stamp ## Build a wheel for this platform into dist/
	$(need_cargo)
	$(bin)/maturin build --release $(locked) --out dist

clean: ## Remove everything that was built, .venv included
	rm -rf .venv dist banbury-demo rust/target src/banbury/_core*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

.venv/made.stamp:
	$(need_cargo)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Banbury needs Python 3.11 or newer, and '$(PYTHON)' is older or missing. Name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(bin)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

# With what the package needs at run time: types are checked while the core is compiled.
.venv/tools.stamp: .venv/made.stamp pyproject.toml
	$(bin)/python -m pip install --quiet --group dev $$($(bin)/python -c \
		'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"])')
	@touch $@

.venv/engines.stamp: .venv/core.stamp
	$(bin)/python -m pip install --quiet 'banbury[dask,spark]'
	@touch $@

# An editable install of the release build.
.venv/core.stamp: .venv/tools.stamp $(rust_files) $(if $(extension),,FORCE)
	$(need_cargo)
	PIP_QUIET=1 $(bin)/maturin develop --release $(locked)
	@touch $@
