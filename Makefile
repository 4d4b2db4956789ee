# The front door. Every target installs what it needs (tools/packages.txt, requirements files) and is quick when nothing is
# missing. The presets of CMakePresets.json do the work.

BUILD  := build
VENV   := $(BUILD)/venv
PYTHON := $(VENV)/bin/python
CMAKE_QUIET := --log-level=WARNING

.DEFAULT_GOAL := build
.PHONY: build test repeat-tests test-frameworks test-integrations test-wheel test-matrix test-slurm test-forks test-attack demo dist dist-x86_64 wheel bench bench-attribution bench-predict format tidy update-goldens test-asan test-tsan fuzz check clean help

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z0-9_-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the program, build/bin/joulemap, its libraries and the Python package
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
	@command -v npm >/dev/null || tools/install_packages.sh page || echo "joulemap: without npm the page is static" >&2

.PHONY: browser
browser:  # what it is tried in
	@command -v chromium >/dev/null || tools/install_packages.sh browser || echo "joulemap: the page is not tried" >&2

test: page-tools browser build-all $(VENV)/.tests-installed $(VENV)/.examples-installed ## unit, command-line, golden, corpus and structure tests
	@tools/run_tests.sh

RUNS ?= 10
BESIDE ?= 0
repeat-tests: ## the tests of what is built, RUNS times beside BESIDE busy loops: which fail, and how often
	@$(PYTHON) tools/repeat_tests.py --runs $(RUNS) --beside $(BESIDE)

test-frameworks: build-all $(BUILD)/venv-frameworks/.installed ## TensorFlow, JAX, ONNX Runtime and PyTorch themselves, recorded and imported
	@$(BUILD)/venv-frameworks/bin/python -m pytest -q tests/frameworks

test-integrations: build-all $(BUILD)/venv-integrations/.installed ## Keras, Lightning, transformers, MLflow, W&B and IPython themselves, with our callbacks
	@$(BUILD)/venv-integrations/bin/python -m pytest -q tests/integrations

test-wheel: dist $(BUILD)/venv-integrations/.installed ## the wheel in a fresh environment: package, program, pytest plugin, integrations
	@JOULEMAP_WHEEL=$$(ls -t $(BUILD)/dist/*.whl | head -1) $(BUILD)/venv-integrations/bin/python -m pytest -q tests/wheel

test-matrix: build dist ## several Pythons and PyTorchs, as far as they are here; gigabytes of downloads
	@python3 tools/test_matrix.py

test-slurm: build-all $(VENV)/.tests-installed ## experiments as job arrays of a real Slurm, two nodes on this machine; as root
	@tools/install_packages.sh slurm
	@JOULEMAP_TEST_SLURM=1 $(PYTHON) -m pytest -q tests/slurm

test-forks: build ## 10,000 forks while threads measure: nobody hangs; minutes
	@cmake --build --preset dev --target joulemap_fork_stress
	@$(BUILD)/bin/joulemap-fork-stress --forks 10000

ATTACK_ROUNDS ?= 100
ATTACK_TESTS := tests/attack tests/web/test_hostile_pages.py tests/python/test_safe_files.py $(addprefix tests/cli/test_,\
	arguments.py borrowed_rights.py experiment_safety.py import_faults.py safe_outputs.py safe_recordings.py share.py usage.py)
test-attack: build-all $(VENV)/.tests-installed ## hostile files, names, folders and users, with many more damaged files than `make test`; minutes
	@JOULEMAP_ATTACK_ROUNDS=$(ATTACK_ROUNDS) $(PYTHON) -m pytest -q -n 2 --dist loadfile $(ATTACK_TESTS)

demo: build $(VENV)/.examples-installed ## where the joules of a real training go, on whatever this machine has
	@$(BUILD)/bin/joulemap doctor
	@PYTHONPATH=$(BUILD)/python $(BUILD)/bin/joulemap record -o $(BUILD)/demo.joule -- $(PYTHON) examples/train_digits.py
	@$(BUILD)/bin/joulemap report --by region $(BUILD)/demo.joule
	@$(BUILD)/bin/joulemap report --html $(BUILD)/demo.html $(BUILD)/demo.joule
	@echo "joulemap: and a training of ResNet-50 on an H200, recorded before (examples/README.md):"
	@$(BUILD)/bin/joulemap report --by layer examples/resnet50-h200.joule
	@$(BUILD)/bin/joulemap report --html $(BUILD)/demo-h200.html examples/resnet50-h200.joule
	@echo "joulemap: open $(BUILD)/demo.html and $(BUILD)/demo-h200.html in a browser"

dist: page-tools ## a folder and a Python wheel that run on other distributions: build/dist/
	@tools/install_packages.sh build
	@cmake --preset dist $(CMAKE_QUIET)
	@cmake --build --preset dist --target product
	@tools/make_dist.sh

dist-x86_64: page-tools ## the same for x86-64, from a machine of another architecture: build/dist-x86_64/
	@tools/install_packages.sh build cross
	@tools/make_sysroot.sh $(BUILD)/sysroot-x86_64 amd64
	@cmake --preset dist-x86_64 $(CMAKE_QUIET)
	@cmake --build --preset dist-x86_64 --target product
	@tools/make_dist.sh $(BUILD)/dist-x86_64-objects $(BUILD)/dist-x86_64 x86_64

wheel: dist ## the Python wheel, build/dist/joulemap-*.whl

bench: build-all $(VENV)/.bench-installed ## start-up, accuracy and cost against the peers, on a simulated machine
	@tools/install_packages.sh bench
	@$(PYTHON) bench/peers/run.py --markdown docs/benchmarks.md

bench-attribution: build-all $(VENV)/.examples-installed ## what operations on a CPU drew, against the truth of the simulated machine
	@$(PYTHON) bench/attribution/cpu_truth.py

bench-predict: $(BUILD)/venv-predict/.installed ## the models of earlier studies on data/h200, by families and sizes that they have not seen; ten minutes
	@$(BUILD)/venv-predict/bin/python -m pytest -q bench/predict
	@$(BUILD)/venv-predict/bin/python bench/predict/compare.py $(if $(PREDICTIONS),--predictions $(PREDICTIONS)) --json $(BUILD)/predict/compared.json

format: ## clang-format over everything
	@tools/install_packages.sh lint
	@git ls-files -co --exclude-standard '*.cc' '*.h' | xargs clang-format -i

tidy: build-all ## clang-tidy over everything; what it finds is fatal
	@tools/install_packages.sh lint
	@tools/run_tidy.sh

update-goldens: build-all $(VENV)/.tests-installed ## rewrite the expected texts of tests/golden and docs/; read the difference before committing it
	@JOULEMAP_UPDATE_GOLDENS=1 ctest --preset dev -j2 -L unit -R '[Rr]eport' --no-tests=error
	@JOULEMAP_UPDATE_GOLDENS=1 $(PYTHON) -m pytest -q tests/test_doc_snippets.py
	@git --no-pager diff --stat tests/golden docs README.md

test-asan: ## the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory sanitized SANITIZER=asan

test-tsan: ## the unit tests under ThreadSanitizer
	@$(MAKE) --no-print-directory sanitized SANITIZER=tsan

.PHONY: sanitized
sanitized: $(VENV)/.tests-installed $(VENV)/.examples-installed
	@tools/install_packages.sh build test
	@cmake --preset $(SANITIZER) $(CMAKE_QUIET)
	@cmake --build --preset $(SANITIZER)
	@ctest --preset $(SANITIZER) --output-on-failure -j2 --no-tests=error
	@JOULEMAP_BUILD=$(BUILD)/$(SANITIZER) $(PYTHON) -m pytest -q -n 2 --dist loadfile tests

FUZZ_SECONDS ?= 60
fuzz: ## every fuzz target for FUZZ_SECONDS, with libFuzzer
	@tools/install_packages.sh build fuzz
	@cmake --preset fuzz $(CMAKE_QUIET)
	@cmake --build --preset fuzz
	@tools/run_fuzzers.sh $(FUZZ_SECONDS)

check: test tidy test-asan test-tsan fuzz ## everything that can fail

clean:
	rm -rf $(BUILD)

# One virtual environment; a stamp for each list of requirements.
$(PYTHON):
	@tools/install_packages.sh test
	@python3 -m venv $(VENV)
$(VENV)/.tests-installed: tests/requirements.txt | $(PYTHON)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $< && touch $@
$(VENV)/.examples-installed: examples/requirements.txt | $(PYTHON)
	@echo "joulemap: installing what the examples need" >&2
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $< && touch $@
$(VENV)/.bench-installed: bench/requirements.txt | $(PYTHON)
	@echo "joulemap: installing the peers" >&2
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $< && touch $@
# The frameworks are large and pin much: an environment of their own.
$(BUILD)/venv-frameworks/.installed: tests/frameworks/requirements.txt
	@tools/install_packages.sh test
	@echo "joulemap: installing TensorFlow, JAX, ONNX Runtime and PyTorch" >&2
	@python3 -m venv $(BUILD)/venv-frameworks
	@$(BUILD)/venv-frameworks/bin/python -m pip install --quiet --disable-pip-version-check -r $< && touch $@
$(BUILD)/venv-integrations/.installed: tests/integrations/requirements.txt
	@tools/install_packages.sh test
	@echo "joulemap: installing trainers and trackers" >&2
	@python3 -m venv $(BUILD)/venv-integrations
	@$(BUILD)/venv-integrations/bin/python -m pip install --quiet --disable-pip-version-check -r $< && touch $@
$(BUILD)/venv-predict/.installed: bench/predict/requirements.txt
	@tools/install_packages.sh test
	@echo "joulemap: installing scikit-learn, XGBoost, CatBoost and PyTorch" >&2
	@python3 -m venv $(BUILD)/venv-predict
	@$(BUILD)/venv-predict/bin/python -m pip install --quiet --disable-pip-version-check -r $< && touch $@
