# Every target sets up in .venv what it needs, and nothing else: packages by group (see dependency-groups in pyproject.toml) and
# the compiled core. A stamp file remembers each step, so a second run continues where the first one stopped.

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
# Two steps at a time, such as compiling and installing.
MAKEFLAGS += --jobs=2
groups := $(if $(filter test test-slow test-all test-engines,$(MAKECMDGOALS)),.venv/test.stamp) \
	$(if $(filter lint .venv/lint.stamp,$(MAKECMDGOALS)),.venv/lint.stamp)
# In continuous integration the lock file must already be right.
locked := $(if $(CI),--locked)

need_cargo = @command -v cargo >/dev/null || { \
	echo "Banbury's core is written in Rust, and there is no cargo on PATH. Install Rust from https://rustup.rs." >&2; exit 1; }
on_interrupt = trap 'echo "Interrupted. Run the same command again: it continues where it stopped." >&2; exit 130' INT
pip_install = $(on_interrupt); $(bin)/python -m pip install --quiet --disable-pip-version-check
no_packages = { echo "Packages could not be installed (see above). Check the network and run the same command again." >&2; exit 1; }
dependencies = $$($(bin)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"])')

.DEFAULT_GOAL := help
.PHONY: help demo serve-demo docs test test-slow test-rust test-engines test-all lint lint-rust bench wheel clean FORCE

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F '|' '{ printf "%-12s %s\n", $$1, $$2 }'

demo: .venv/core.stamp ## See it work on docstrings of Python's own library; leaves a model and a report in banbury-demo/
	@$(bin)/python -m banbury.demo

serve-demo: .venv/core.stamp .venv/serve.stamp ## Open the page on the same docstrings: ask, label by keyboard, look; Ctrl-C ends it
	@$(bin)/python -m banbury demo --page

test: .venv/core.stamp .venv/test.stamp test-rust ## Run the tests: the Rust kernels, the package, and the examples in README and docs
	$(bin)/python -m pytest $(PYTEST_FLAGS) -m "not slow"

test-slow: .venv/core.stamp .venv/test.stamp ## Run the tests that take long: state machines, browsers, large data, the demo, examples
	$(bin)/python -m pytest $(PYTEST_FLAGS) -m slow

test-rust: rust/target/tested.stamp ## Run the tests of the Rust kernels alone, if they have changed

rust/target/tested.stamp: $(rust_files)
	$(need_cargo)
	cargo test --manifest-path $(crate) $(locked) --quiet
	@mkdir -p $(@D) && touch $@

test-engines: .venv/engines.stamp .venv/test.stamp ## Run the tests of Dask and Spark, which are installed for it
	$(bin)/python -m pytest -n 3 --dist loadfile $(filter-out %_processes.py,$(wildcard tests/test_engines_*.py))

test-all: export HYPOTHESIS_PROFILE = thorough
test-all: .venv/core.stamp .venv/test.stamp test-rust ## All tests with twenty times as many examples, drawn anew each time; some hours
	$(bin)/python -m pytest $(PYTEST_FLAGS)

docs: .venv/docs.stamp ## Build the documentation into site/: no warnings, no dead links
	NO_MKDOCS_2_WARNING=1 $(bin)/python -m mkdocs build --strict

lint: .venv/lint.stamp lint-rust ## Check style, types, the order of imports and that families are closed, in Python and in Rust
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy
	PYTHONPATH=src $(bin)/lint-imports
	$(bin)/python tests/house.py
	$(bin)/python tests/durations.py

lint-rust: .venv/lint.stamp ## Check the Rust code alone
	cargo fmt --manifest-path $(crate) --check
	PYO3_PYTHON=$(CURDIR)/$(bin)/python cargo clippy --manifest-path $(crate) $(locked) --quiet --tests --features python -- -D warnings

bench: .venv/core.stamp .venv/peers.stamp ## Time it beside its peers, checking the answers
	$(bin)/python -m benchmarks

wheel: .venv/build.stamp ## Build a wheel for this platform into dist/
	$(need_cargo)
	$(bin)/maturin build --release $(locked) --out dist

clean: ## Remove everything that was built, .venv included
	rm -rf .venv dist site banbury-demo rust/target src/banbury/_core*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

.venv/made.stamp:
	$(need_cargo)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Banbury needs Python 3.11 or newer, and '$(PYTHON)' is older or missing. Name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Installing packages and compiling the core into .venv: about three minutes on two cores, the first time only."
	@$(on_interrupt); $(PYTHON) -m venv --clear .venv || { \
		echo "'$(PYTHON) -m venv' failed (see above). On Debian and Ubuntu, install the package python3-venv." >&2; exit 1; }
	@$(pip_install) --upgrade 'pip>=25.1' || $(no_packages)
	@touch $@

# What compiles the core, which is little: all else is installed while it compiles.
.venv/build.stamp: .venv/made.stamp pyproject.toml
	@$(pip_install) --group build || $(no_packages)
	@touch $@

.venv/packages.stamp: .venv/build.stamp pyproject.toml
	@$(pip_install) $(dependencies) || $(no_packages)
	@touch $@

.venv/test.stamp .venv/peers.stamp .venv/docs.stamp: .venv/%.stamp: .venv/packages.stamp pyproject.toml
	@echo "Installing the packages of the group '$*': about a minute, the first time only."
	@$(pip_install) --group $* || $(no_packages)
	@touch $@

# With the packages of the tests: types are checked as they are there.
.venv/lint.stamp: .venv/test.stamp pyproject.toml
	@$(pip_install) --group lint || $(no_packages)
	@touch $@

.venv/serve.stamp .venv/plots.stamp: .venv/%.stamp: .venv/core.stamp
	@$(pip_install) 'banbury[$*]' || $(no_packages)
	@touch $@

.venv/engines.stamp: .venv/core.stamp
	@$(pip_install) 'banbury[dask,spark]' || $(no_packages)
	@touch $@

rust/target/compiled.stamp: .venv/build.stamp pyproject.toml $(rust_files)
	$(need_cargo)
	@mkdir -p $(@D)
	@$(on_interrupt); $(bin)/maturin build --release $(locked) --out rust/target/wheels >$(@D)/compiled.log 2>&1 || { \
		cat $(@D)/compiled.log >&2; \
		echo "The core could not be compiled (see above). Without a network, cargo cannot fetch the crates it is made with." >&2; exit 1; }
	@touch $@

# An editable install of the release build, compiled while packages are installed. It comes after other packages that this run
# installs: one pip at a time.
.venv/core.stamp: .venv/packages.stamp rust/target/compiled.stamp $(if $(extension),,FORCE) | $(groups)
	@$(on_interrupt); PIP_QUIET=1 $(bin)/maturin develop --release $(locked) >.venv/core.log 2>&1 || { cat .venv/core.log >&2; exit 1; }
	@touch $@
