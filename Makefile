# The front door. `make demo` and `make test` work from a fresh clone: what is missing is installed
# (apt, as root or with sudo), then built. Everything else about the build is in meson.build.
.DEFAULT_GOAL := help
.PHONY: help build demo test peers check ci-all bench soak install uninstall portable wheel packages dist clean

BUILD ?= build
prefix ?= /usr/local
DESTDIR ?=
MINUTES ?= 10
SWEEP ?= --all
STAGES ?= meson,command,interop
# Debian's own interpreter: the one its pytest and hypothesis packages belong to.
PYTHON ?= /usr/bin/python3
export BUILD PYTHON

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

build: ## install build dependencies if missing, compile into $(BUILD)
	@tools/install-dependencies build
	@tools/build $(BUILD)

demo: build ## a real elastic job through a failure: train, lose a worker, resume, compare
	@tools/demo $(BUILD)

test: ## install, build, run every test; the last line is the count
	@tools/install-dependencies build tests
	@tools/build $(BUILD)
	@$(PYTHON) tools/run_tests.py --build $(BUILD) --only $(STAGES)

peers: ## install what the interop tests and the bench compare with: PyTorch, Slurm, Kubernetes' schemas
	@tools/install-dependencies peers
	@tools/install-peers

check: ## the source checks: formatting, floors, symbols, sizes, and the budget of the house
	@tools/install-dependencies build tests checks
	@tools/build $(BUILD)
	@$(PYTHON) tools/run_tests.py --build $(BUILD) --only checks,format,sizes

ci-all: ## all parts of what continuous integration plays in turns (.ci/run)
	@.ci/run --all

bench: ## the figures, side by side with torchrun, into docs/performance.md
	@tools/install-dependencies build tests
	@tools/build $(BUILD)-release --buildtype=release
	@$(PYTHON) bench/run --build $(BUILD)-release

soak: ## storms for MINUTES=10 (as root: networks, too), then the fault sweep (an hour or more; SWEEP='--sample 100')
	@tools/install-dependencies build tests
	@tools/build $(BUILD)
	@$(PYTHON) tests/soak/run --build $(BUILD) --minutes $(MINUTES)
	@MUSTER_BUILD=$(BUILD) $(PYTHON) tools/fault_sweep $(SWEEP)

install: build ## muster, the torchrun link and the man page under $(DESTDIR)$(prefix)
	@meson configure $(BUILD) --prefix $(prefix) && tools/build $(BUILD)
	@$(PYTHON) tools/uninstall --note $(BUILD) $(prefix) '$(DESTDIR)'
	DESTDIR='$(DESTDIR)' meson install -C $(BUILD) --no-rebuild

uninstall: ## remove what `make install` has laid, with the same $(DESTDIR) and $(prefix)
	@tools/build $(BUILD) && meson configure $(BUILD) --prefix $(prefix) && tools/build $(BUILD)
	@$(PYTHON) tools/uninstall $(BUILD) $(prefix) '$(DESTDIR)'

portable: ## dist/muster-x86_64 and -aarch64: each one file that runs on any Linux with glibc 2.28 or newer
	@tools/install-dependencies build packages
	@tools/build-portable x86_64
	@tools/build-portable aarch64

wheel: portable ## dist/muster_launch-*.whl, for pip
	@tools/make-wheel x86_64
	@tools/make-wheel aarch64

packages: ## dist/*.deb and dist/*.rpm, for x86-64
	@tools/install-dependencies build packages
	@tools/make-packages

dist: ## dist/muster-*.tar.gz, the sources of the present commit
	@tools/make-source

clean: ## remove what the other targets built
	rm -rf build build-* dist
