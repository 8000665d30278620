# Set up, open and test rtx: `make help` lists what there is.

# The interpreter that .venv is made with: 3.11 or newer.
PYTHON ?= python3
# The versions to install; `make test CONSTRAINTS=` takes the newest ones that pyproject.toml allows.
CONSTRAINTS ?= constraints.txt
# The notebooks to rebuild, as in `make notebooks only=notebooks/02_*.py`.
only ?= notebooks/*.py
# Where `make open-site` serves the site.
port ?= 8000

VENV := .venv
PY := $(VENV)/bin/python
# Sums depend on the number of threads, and two workers share the cores. The
# browser's long files are first, so that all workers end together. Some images
# tell Python to keep no compiled files; here hundreds of processes share them.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(PY) -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder
NBVAL = --nbval --nbval-current-env --nbval-cell-timeout=300 --nbval-sanitize-with tools/nbval_sanitize.cfg
# On loopback; without JupyterLab's question for news and look-up of updates; as root, only if it must.
LAB = --ip=127.0.0.1 --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb \
	--LabApp.app_settings_dir=tools/jupyterlab $(shell [ "$$(id -u)" != 0 ] || echo --allow-root)

.PHONY: help lab test quick soak site open-site rehearsal notebooks figures tables bench lint licences audit lock clean

help: ## list the targets, a line each
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

lab: $(VENV)/lab-installed ## open the walkthrough in JupyterLab; the first call installs what it needs
	@PATH="$$PWD/$(VENV)/bin:$$PATH" $(PY) -m jupyterlab $(LAB)

test: $(VENV)/test-installed ## run every test, in a browser too, and compare every notebook's outputs
	@$(PYTEST) $(NBVAL) tests notebooks

quick: $(VENV)/test-installed ## run the tests that take under three minutes, for every save
	@$(PYTEST) -m "not slow and not browser" tests

soak: $(VENV)/test-installed ## run the tests of faults that take hours, on one core; tests/README.md has the last outcome
	@OMP_NUM_THREADS=1 $(PY) -m pytest -m soak tests

site: $(VENV)/site-installed ## build lessons and explorers as a static site in build/site, which needs no kernel and no network
	@rm -rf build/site
	@$(PY) site/build.py build/site

open-site: site ## build the site and serve it on this machine; prints its address; port=8000
	@$(PY) -u -m http.server --bind 127.0.0.1 --directory build/site $(port)

rehearsal: $(VENV)/test-installed ## train every row of every recipe at its quick scale; about half an hour
	@$(PYTEST) --dist load --rehearse tests/training/test_quick.py

notebooks: $(VENV)/test-installed ## execute the .py notebooks afresh into their .ipynb; only=notebooks/02_*.py
	@OMP_NUM_THREADS=1 $(PY) tools/build_notebooks.py $(only)

figures: $(VENV)/test-installed ## draw the figures again
	@OMP_NUM_THREADS=1 $(PY) figures/make.py

tables: $(VENV)/test-installed ## write the tables of the READMEs from the ledger
	@$(PY) tools/readme_tables.py

bench: $(VENV)/test-installed ## measure speed and memory beside the peers; flags="--quick", or "--only mnist --threads 2"
	@$(PY) -m benchmarks $(flags)
	@OMP_NUM_THREADS=1 $(PY) figures/make.py speed_cpu

lint: $(VENV)/test-installed ## check style and types
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

licences: $(VENV)/test-installed ## list the licences of all that is installed; fail on one that is not allowed
	@$(PY) tools/licences.py --list

audit: $(VENV)/test-installed ## ask the net for known faults of the pinned packages; says so where it cannot be asked
	@$(PY) tools/audit.py

lock: $(VENV)/test-installed ## write the versions that are installed now to constraints.txt
	@{ grep '^#' constraints.txt; $(PY) -m pip freeze --exclude-editable | sed 's/+.*//'; } > $(VENV)/constraints
	@mv $(VENV)/constraints constraints.txt
	@touch $(VENV)/lab-installed $(VENV)/site-installed $(VENV)/test-installed

clean: ## remove caches and built packages; .venv stays
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

define install
@$(PY) -m pip --version > /dev/null 2>&1 || "$(PYTHON)" tools/make_venv.py $(VENV)
@echo "Installing rtx[$(EXTRAS)] into $(VENV): a few minutes, the first time ..."
@$(PY) -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) -e '.[$(EXTRAS)]'
@$(PY) -c 'import matplotlib.font_manager'  # looks for fonts now, and not, with a warning, inside a notebook
@pwd -P > $(VENV)/made-in
endef

# An editable install points to its folder: install again where that was copied or moved.
ifneq ($(shell cat $(VENV)/made-in 2> /dev/null),$(CURDIR))
.PHONY: $(VENV)/lab-installed $(VENV)/site-installed $(VENV)/test-installed
endif

$(VENV)/lab-installed: EXTRAS := lab,train
$(VENV)/lab-installed: pyproject.toml $(CONSTRAINTS)
	$(install)
	@touch $@

$(VENV)/site-installed: EXTRAS := lab,train,site
$(VENV)/site-installed: pyproject.toml $(CONSTRAINTS)
	$(install)
	@touch $(VENV)/lab-installed $@

$(VENV)/test-installed: EXTRAS := all
$(VENV)/test-installed: pyproject.toml $(CONSTRAINTS)
	$(install)
	@# peft apart: where transformers can be imported, torchmetrics imports it, and each run starts two seconds later
	@$(PY) -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) --no-deps --upgrade --target $(VENV)/peft peft transformers accelerate
	@touch $(VENV)/lab-installed $(VENV)/site-installed $@
