# A newcomer needs only `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
BIN := .venv/bin
CARS := src/bestarm/data/automobile.csv

.PHONY: demo test clusters check bench bench-default statistics torture reproduce reproduce-cited docs clean

demo: .venv/plot ## find the most expensive of 205 cars from noisy prices
	$(BIN)/bestarm run $(CARS) --budget 4100 --label make --label body_style --scale minmax \
		--simulate price --missing mean --noise-variance 0.1 --seed 7 --report demo-report.html

test: .venv/test ## laws, contract, units
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist worksteal

clusters: .venv/test ## engines of a cluster, started for real
	$(BIN)/pytest -q -m cluster

check: .venv/dev ## linters, types, import contract
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

statistics: .venv/test ## slow Monte Carlo checks
	$(BIN)/pytest -q -m statistics

torture: .venv/test ## studies killed, stopped, damaged and fed what hurts, for an hour; BESTARM_TORTURE=10 is ten times as much
	$(BIN)/pytest -q -s -m torture

bench: .venv/test ## speed, as ratios within one run
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks

bench-default: .venv/bench ## the default policy against all the others on the default suite, resumed; hours
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/bestarm bench --suite default -o results/bench-default

reproduce: .venv/bench ## every figure of the paper in three settings and a verdict on each of its sentences, resumed; under two hours
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/bestarm reproduce -o results/reproduction
	cp results/reproduction/*.csv results/reproduction/*.svg results/reproduction/report.* docs/reproduction/
	$(BIN)/python docs/reproduction/changes.py

reproduce-cited: .venv/bench ## the systems the paper only names, on its figures with at most 32 arms, beside GSE; resumed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/bestarm reproduce --panel cited -o results/cited

docs: .venv/bench ## draw the plots of docs again
	$(BIN)/python docs/algorithms/plots.py
	$(BIN)/python docs/designs_at_scale.py

.venv/%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -c 'import sys; assert sys.version_info >= (3, 11), "bestarm needs Python 3.11 or newer: make PYTHON=python3.12 ..."'
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@

clean: ## forget everything built
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
