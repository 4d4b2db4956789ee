# The front door. Every target installs what it needs (tools/packages.txt, requirements files) and is quick when nothing is
# missing. The presets of CMakePresets.json do the work.

BUILD  := build
VENV   := $(BUILD)/venv
PYTHON := $(VENV)/bin/python
CMAKE_QUIET := --log-level=WARNING
WHEELS := $(BUILD)/wheels
# The architecture that this machine has to cross-build for.
OTHER  := $(if $(filter x86_64,$(shell uname -m)),aarch64,x86_64)

.DEFAULT_GOAL := build
.PHONY: build test repeat-tests test-frameworks test-integrations test-wheel test-matrix test-slurm test-forks test-attack demo docs dist dist-x86_64 dist-aarch64 wheel deb release bench bench-attribution bench-predict format tidy update-goldens test-asan test-tsan fuzz check clean help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9_-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build build/bin/joulemap, its libraries and the Python package
	@tools/install_packages.sh build test
	@cmake --preset dev $(CMAKE_QUIET)
	@cmake --build --preset dev --target product

.PHONY: build-all
build-all:  # with every test, benchmark and fuzz target
	@tools/install_packages.sh build test
	@cmake --preset dev $(CMAKE_QUIET)
	@cmake --build --preset dev

.PHONY: page-tools
page-tools:  # what the page is bundled by
	@command -v npm >/dev/null || tools/install_packages.sh page || echo "joulemap: npm is not installed; the HTML page will be static" >&2

.PHONY: browser
browser:  # what it is tried in
	@command -v chromium >/dev/null || tools/install_packages.sh browser || echo "joulemap: chromium is not installed; the browser tests are skipped" >&2

test: page-tools browser build-all $(VENV)/.tests-installed $(VENV)/.examples-installed $(VENV)/.docs-installed ## run the unit, command-line, golden, corpus, structure and documentation tests
	@tools/run_tests.sh

RUNS ?= 10
BESIDE ?= 0
repeat-tests: ## run the tests RUNS times next to BESIDE busy loops and list failures with their count
	@$(PYTHON) tools/repeat_tests.py --runs $(RUNS) --beside $(BESIDE)

test-frameworks: build-all $(BUILD)/venv-frameworks/.installed ## record and import real runs of TensorFlow, JAX, ONNX Runtime and PyTorch
	@$(BUILD)/venv-frameworks/bin/python -m pytest -q tests/frameworks

test-integrations: build-all $(BUILD)/venv-integrations/.installed ## test the callbacks with Keras, Lightning, transformers, MLflow, W&B and IPython
	@$(BUILD)/venv-integrations/bin/python -m pytest -q tests/integrations

test-wheel: wheel $(BUILD)/venv-integrations/.installed $(VENV)/.release-installed ## test the wheels in fresh environments: package, program, README, pytest plugin, integrations
	@tools/install_packages.sh emulate
	@$(PYTHON) -m twine check --strict $(WHEELS)/*.whl
	@JOULEMAP_WHEEL=$$(ls $(WHEELS)/*_$$(uname -m).whl) $(BUILD)/venv-integrations/bin/python -m pytest -q -rs tests/wheel

test-matrix: build dist ## test the installed Python versions with several PyTorch versions (downloads gigabytes)
	@python3 tools/test_matrix.py

test-slurm: build-all $(VENV)/.tests-installed ## test experiments as job arrays of a local Slurm with two nodes (needs root)
	@tools/install_packages.sh slurm
	@JOULEMAP_TEST_SLURM=1 $(PYTHON) -m pytest -q tests/slurm

test-forks: build ## fork 10,000 times while threads measure and check that no process hangs (minutes)
	@cmake --build --preset dev --target joulemap_fork_stress
	@$(BUILD)/bin/joulemap-fork-stress --forks 10000

ATTACK_ROUNDS ?= 100
ATTACK_TESTS := tests/attack tests/web/test_hostile_pages.py tests/python/test_safe_files.py $(addprefix tests/cli/test_,\
	arguments.py borrowed_rights.py experiment_safety.py import_faults.py safe_outputs.py safe_recordings.py share.py usage.py)
test-attack: build-all $(VENV)/.tests-installed ## test hostile files, names, folders and users with more damaged files than `make test` (minutes)
	@JOULEMAP_ATTACK_ROUNDS=$(ATTACK_ROUNDS) $(PYTHON) -m pytest -q -n 2 --dist loadfile $(ATTACK_TESTS)

demo: build $(VENV)/.examples-installed ## record a real training on this machine and report its energy
	@$(BUILD)/bin/joulemap doctor
	@PYTHONPATH=$(BUILD)/python $(BUILD)/bin/joulemap record -o $(BUILD)/demo.joule -- $(PYTHON) examples/train_digits.py
	@$(BUILD)/bin/joulemap report --by region $(BUILD)/demo.joule
	@$(BUILD)/bin/joulemap report --html $(BUILD)/demo.html $(BUILD)/demo.joule
	@echo "joulemap: a training of ResNet-50 on an H200, recorded earlier (examples/README.md):"
	@$(BUILD)/bin/joulemap report --by layer examples/resnet50-h200.joule
	@$(BUILD)/bin/joulemap report --html $(BUILD)/demo-h200.html examples/resnet50-h200.joule
	@echo "joulemap: open $(BUILD)/demo.html and $(BUILD)/demo-h200.html in a browser"

docs: $(VENV)/.docs-installed ## build the documentation site in build/site/; broken links are errors
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet
	@echo "joulemap: open $(BUILD)/site/index.html in a browser"

dist: page-tools ## build a portable folder and Python wheel in build/dist/
	@tools/install_packages.sh build
	@cmake --preset dist $(CMAKE_QUIET)
	@cmake --build --preset dist --target product
	@tools/make_dist.sh

define cross_dist
	@tools/install_packages.sh build cross-$(1)
	@tools/make_sysroot.sh $(BUILD)/sysroot-$(1) $(2)
	@cmake --preset dist-$(1) $(CMAKE_QUIET)
	@cmake --build --preset dist-$(1) --target product
	@tools/make_dist.sh $(BUILD)/dist-$(1)-objects $(BUILD)/dist-$(1) $(1)
endef

dist-x86_64: page-tools ## cross-build the portable folder and wheel for x86-64 in build/dist-x86_64/
	$(call cross_dist,x86_64,amd64)

dist-aarch64: page-tools ## cross-build the portable folder and wheel for aarch64 in build/dist-aarch64/
	$(call cross_dist,aarch64,arm64)

wheel: dist dist-$(OTHER) ## build and check the wheels for x86-64 and aarch64 in build/wheels/
	@rm -rf $(WHEELS) && mkdir $(WHEELS)
	@cp $(BUILD)/dist/*.whl $(BUILD)/dist-$(OTHER)/*.whl $(WHEELS)/
	@tools/check_wheel.py $(WHEELS)/*.whl

deb: dist ## build and check the Debian package for this machine in build/deb/
	@tools/install_packages.sh deb
	@tools/make_deb.sh

release: $(VENV)/.tests-installed $(VENV)/.release-installed ## build, check and tag a release from a clean tree: make release VERSION=X.Y.Z [DRY_RUN=1]
	@tools/release.sh $(if $(DRY_RUN),--dry-run) $(VERSION)

bench: build-all $(VENV)/.bench-installed ## compare start-up, accuracy and cost with other tools on a simulated machine; writes build/benchmarks.md
	@tools/install_packages.sh bench
	@$(PYTHON) bench/peers/run.py --markdown $(BUILD)/benchmarks.md

bench-attribution: build-all $(VENV)/.examples-installed ## compare the attributed CPU energy of operations with the ground truth of a simulated machine
	@$(PYTHON) bench/attribution/cpu_truth.py

bench-predict: $(BUILD)/venv-predict/.installed ## evaluate the models of earlier studies on data/h200 with held-out families and sizes (ten minutes)
	@$(BUILD)/venv-predict/bin/python -m pytest -q bench/predict
	@$(BUILD)/venv-predict/bin/python bench/predict/compare.py $(if $(PREDICTIONS),--predictions $(PREDICTIONS)) --json $(BUILD)/predict/compared.json

format: ## run clang-format on all sources
	@tools/install_packages.sh lint
	@git ls-files -co --exclude-standard '*.cc' '*.h' | xargs clang-format -i

tidy: build-all ## run clang-tidy on all sources; findings are errors
	@tools/install_packages.sh lint
	@tools/run_tidy.sh

update-goldens: build-all $(VENV)/.tests-installed ## update the expected outputs in tests/golden and docs/; review the diff before committing
	@JOULEMAP_UPDATE_GOLDENS=1 ctest --preset dev -j2 -L unit -R '[Rr]eport' --no-tests=error
	@JOULEMAP_UPDATE_GOLDENS=1 $(PYTHON) -m pytest -q tests/test_doc_snippets.py
	@$(PYTHON) tools/make_reference.py
	@$(PYTHON) tools/make_evidence.py
	@$(PYTHON) tools/make_note_help.py
	@git --no-pager diff --stat tests/golden docs web/src README.md

test-asan: ## run the tests with AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory sanitized SANITIZER=asan

test-tsan: ## run the tests with ThreadSanitizer
	@$(MAKE) --no-print-directory sanitized SANITIZER=tsan

.PHONY: sanitized
sanitized: $(VENV)/.tests-installed $(VENV)/.examples-installed $(VENV)/.docs-installed
	@tools/install_packages.sh build test
	@cmake --preset $(SANITIZER) $(CMAKE_QUIET)
	@ASAN_OPTIONS=detect_leaks=0 cmake --build --preset $(SANITIZER)  # test programs list their tests after linking
	@tools/run_sanitized_tests.sh $(SANITIZER)

FUZZ_SECONDS ?= 60
fuzz: ## run every fuzz target with libFuzzer for FUZZ_SECONDS
	@tools/install_packages.sh build fuzz
	@cmake --preset fuzz $(CMAKE_QUIET)
	@cmake --build --preset fuzz
	@tools/run_fuzzers.sh $(FUZZ_SECONDS)

check: test tidy test-asan test-tsan fuzz ## run all tests, clang-tidy, sanitizers and fuzzers

clean:
	rm -rf $(BUILD)

# One virtual environment; a stamp for each list of requirements.
$(PYTHON):
	@tools/install_packages.sh test
	@python3 -m venv $(VENV)
$(VENV)/.tests-installed: tests/requirements.txt | $(PYTHON)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $< && touch $@
$(VENV)/.examples-installed: examples/requirements.txt | $(PYTHON)
	@echo "joulemap: installing the requirements of the examples" >&2
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $< && touch $@
$(VENV)/.docs-installed: docs/requirements.txt | $(PYTHON)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $< && touch $@
$(VENV)/.release-installed: tools/requirements.txt | $(PYTHON)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $< && touch $@
$(VENV)/.bench-installed: bench/requirements.txt | $(PYTHON)
	@echo "joulemap: installing the tools to compare with" >&2
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $< && touch $@
# The frameworks are large and pin much: an environment of their own.
$(BUILD)/venv-frameworks/.installed: tests/frameworks/requirements.txt
	@tools/install_packages.sh test
	@echo "joulemap: installing TensorFlow, JAX, ONNX Runtime and PyTorch" >&2
	@python3 -m venv $(BUILD)/venv-frameworks
	@$(BUILD)/venv-frameworks/bin/python -m pip install --quiet --disable-pip-version-check -r $< && touch $@
$(BUILD)/venv-integrations/.installed: tests/integrations/requirements.txt
	@tools/install_packages.sh test
	@echo "joulemap: installing training frameworks and experiment trackers" >&2
	@python3 -m venv $(BUILD)/venv-integrations
	@$(BUILD)/venv-integrations/bin/python -m pip install --quiet --disable-pip-version-check -r $< && touch $@
$(BUILD)/venv-predict/.installed: bench/predict/requirements.txt
	@tools/install_packages.sh test
	@echo "joulemap: installing scikit-learn, XGBoost, CatBoost and PyTorch" >&2
	@python3 -m venv $(BUILD)/venv-predict
	@$(BUILD)/venv-predict/bin/python -m pip install --quiet --disable-pip-version-check -r $< && touch $@
