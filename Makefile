# What there is to do:
#
#   make demo       build everything and multiply a real matrix on the best backend present
#   make build      bin/spmmrun, with all backends
#   make bench      measure the standard set on every device of this machine, and compare with the last time
#   make figures    write the tables and pictures of measurements into the documents, from bench/results
#   make web        bin/web: the page that runs the suite and products in a browser, for any static web server
#   make npm        bin/npm: the library for JavaScript, an npm package
#   make site       bin/site: the documents and that page
#   make test       install what the tests need and run them (no GPU is needed)
#   make test-all   these and what takes longer: every case on every driver, the race detector, other compilers
#   make quick      a part of them, in a minute
#   make kernel K=lanestream/staged   compile one kernel, test it, and time it where a device is
#   make lint       gofmt, go vet, and the words and line lengths that docs/glossary.md asks for
#   make cross      build and vet for the other systems
#   make mutants    put faults into a copy of the sources and count those that the conformance suite notices
#   make generate   compile the kernels whose blobs are stale, and write docs/kernels.md
#   make install    the command, its manual and its completion, below PREFIX
#   make capi       bin/capi: libspmm, the C library, with its header; make install-capi puts it below PREFIX
#   make wheel      bin/wheel: the Python package, with that library inside
#   make test-capi test-package test-python   C and C++ programs with that library; the Python package; its wheel
#   make test-gorgonia   formats/gorgonia, a module of its own
#   make dist       a release's files for this machine, in bin/dist (docs/releasing.md)
#   make audit      what CI asks beyond tests: staticcheck, known vulnerabilities, the workflows
#   make fuzz       every fuzz target, FUZZTIME each
#   make faults     every call of a device, a driver and a file fails once
#   make sanitize   the C of the bindings under AddressSanitizer and UndefinedBehaviorSanitizer
#   make coverage   how much of the library its tests run, and whether that is enough

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

GO ?= go
TAGS ?= cuda
# What is built here is linked without debugging information, which compilers need a tenth of their time for.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -gcflags=all=-dwarf=false)
# Tools are built as the tests are, position independent, so that what they share is compiled once.
RUN := $(GO) run -buildmode=pie
# The CUDA backend builds without CUDA's toolkit: its own header, no library.
CUDA_ENV := GOOS= GOARCH= GOFLAGS='$(GOFLAGS)' $(RUN) ./backend/cuda/env
export CGO_CFLAGS := $(shell $(CUDA_ENV) cflags)
export CGO_LDFLAGS := $(shell $(CUDA_ENV) ldflags)

MATRIX := testdata/matrices/ca-CondMat.mtx.gz
SOFTVK := $(CURDIR)/tools/softvk/run

# Without symbols, and without what nothing calls in the static library of WebGPU: a third smaller.
LDFLAGS := -s -w
ifeq ($(shell $(GO) env GOOS),linux)
LDFLAGS += -extldflags=-Wl,--gc-sections
endif

# What the command says of itself, where the sources are no checkout that tells: a release's tag.
VERSION ?= $(shell git describe --tags --match 'v*' --dirty=+changes 2>/dev/null)
LDFLAGS += $(if $(VERSION),-X main.stamped=$(VERSION))

# The bytes that the command may have. It is checked here, where it is linked anyway: in demo, bench and dist, and in
# CI's job dist.
MOST := 30000000
.PHONY: build
build:
	$(GO) build -tags $(TAGS) -trimpath -ldflags='$(LDFLAGS)' -o bin/spmmrun ./cmd/spmmrun
	@size=$$(wc -c <bin/spmmrun); (( size <= $(MOST) )) || \
		{ echo "bin/spmmrun has $$size bytes, more than $(MOST)" >&2; exit 1; }

.PHONY: web
web:
	$(GO) run ./cmd/spmmweb/build -o bin/web

.PHONY: npm
npm:
	rm -rf bin/npm
	$(GO) run ./cmd/spmmnpm/build -o bin/npm $(if $(VERSION),-version '$(VERSION)')

# The documents as web pages, with that page in run.
.PHONY: site
site: web
	rm -rf bin/site
	$(GO) run ./tools/site -o bin/site
	cp -r bin/web bin/site/run

.PHONY: demo
demo: build
	bin/spmmrun devices
	bin/spmmrun $(MATRIX)

# The command writes its manual's pages and completion. DESTDIR is for packages.
PREFIX ?= /usr/local
SHARE := $(DESTDIR)$(PREFIX)/share
.PHONY: install uninstall
install: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
install: build
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin bin/spmmrun
	rm -rf bin/man && bin/spmmrun man bin/man
	install -D -m 644 -t $(SHARE)/man/man1 bin/man/*.1
	bin/spmmrun completion bash | install -D -m 644 /dev/stdin $(SHARE)/bash-completion/completions/spmmrun
	bin/spmmrun completion zsh | install -D -m 644 /dev/stdin $(SHARE)/zsh/site-functions/_spmmrun
	bin/spmmrun completion fish | install -D -m 644 /dev/stdin $(SHARE)/fish/vendor_completions.d/spmmrun.fish
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/spmmrun $(SHARE)/man/man1/spmmrun.1 $(SHARE)/man/man1/spmmrun-*.1 \
		$(SHARE)/bash-completion/completions/spmmrun $(SHARE)/zsh/site-functions/_spmmrun \
		$(SHARE)/fish/vendor_completions.d/spmmrun.fish

# The C library (capi/spmm.h), for pkg-config and CMake too; and the Python package, whose wheel has it inside.
# macOS has no versions of symbols: the names of what is exported are those of spmm.map. Nothing here builds that.
CAPI_LINK := -Wl,--gc-sections -Wl,--version-script=$(CURDIR)/capi/spmm.map -Wl,-soname,libspmm.so.1
CAPI_LIB := libspmm.so
ifeq ($(shell $(GO) env GOOS),darwin)
CAPI_LINK := -Wl,-exported_symbol,_spmm_* -Wl,-install_name,@rpath/libspmm.dylib
CAPI_LIB := libspmm.dylib
endif
.PHONY: capi windows-capi install-capi wheel test-capi test-package test-python
capi:
	$(GO) build -tags $(TAGS) -trimpath -buildmode=c-shared -ldflags='-s -w -extldflags "$(CAPI_LINK)"' \
		-o bin/capi/$(CAPI_LIB) ./capi
	rm -f bin/capi/libspmm.h && cp capi/spmm.h bin/capi
# For the CPU, Vulkan and WebGPU on Windows: it is linked and exports the functions of spmm.map, and no test runs it.
windows-capi:
	CGO_ENABLED=1 GOOS=windows GOARCH=amd64 CGO_CFLAGS= CGO_LDFLAGS= tools/mingw \
		$(GO) build -tags webgpu -trimpath -buildmode=c-shared -ldflags='-s -w -extldflags=-static-libgcc' \
			-o bin/capi/windows/spmm.dll ./capi
	rm -f bin/capi/windows/spmm.h && cp capi/spmm.h bin/capi/windows
	diff <(sed -n 's/^\t\t\(spmm_.*\);/\1/p' capi/spmm.map | sort) \
		<(objdump -p bin/capi/windows/spmm.dll | sed -n '/^\[Ordinal/,/^$$/s/.* \(spmm_.*\)/\1/p' | sort)
install-capi: capi
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include capi/spmm.h
	install -D -m 755 bin/capi/libspmm.so $(DESTDIR)$(PREFIX)/lib/libspmm.so.1
	ln -sf libspmm.so.1 $(DESTDIR)$(PREFIX)/lib/libspmm.so
	mkdir -p $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(or $(VERSION:v%=%),0.1.0)|' capi/spmm.pc.in \
		>$(DESTDIR)$(PREFIX)/lib/pkgconfig/spmm.pc
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/cmake/spmm capi/spmmConfig.cmake
	sed 's|@VERSION@|$(or $(VERSION:v%=%),0.1.0)|' capi/spmmConfigVersion.cmake.in \
		>$(DESTDIR)$(PREFIX)/lib/cmake/spmm/spmmConfigVersion.cmake
wheel: capi
	rm -rf bin/wheel && python3 python/wheel.py bin/capi/libspmm.so '$(VERSION)' bin/wheel
test-capi:
	tools/needs pkg-config cmake
	tools/needs valgrind || echo 'Without valgrind no test looks for accesses outside the program'"'"'s memory.'
	$(MAKE) --no-print-directory install-capi DESTDIR= PREFIX=$(CURDIR)/bin/capi/root
	SPMM_CAPI=$(CURDIR)/bin/capi/root $(GO) test -count=1 ./capi/...
# The Python package as it lies here, with a library of the flags of the native test binaries (tools/tests/table.go),
# whose packages are compiled already where these were built. make test-python tests the wheel.
test-package:
	tools/needs python3-numpy python3-scipy python3-pytest python3-torch
	$(GO) build -tags cuda -buildmode=c-shared -ldflags='-s -w -extldflags "$(CAPI_LINK)"' \
		-o bin/tests/capi/$(CAPI_LIB) ./capi
	SPMM_LIBRARY=$(CURDIR)/bin/tests/capi/$(CAPI_LIB) PYTHONPATH=$(CURDIR)/python PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 -m pytest -q -rs -p no:cacheprovider $(CURDIR)/python/tests
# The wheel in an empty environment that sees the distribution's NumPy, SciPy, pytest and, where it is there, PyTorch.
test-python: wheel
	tools/needs python3-numpy python3-scipy python3-pytest mypy
	cd python && mypy --python-version 3.9 --disallow-untyped-defs --cache-dir /dev/null spmm
	rm -rf bin/venv && /usr/bin/python3 -m venv --system-site-packages --without-pip bin/venv
	python3 -m zipfile -e bin/wheel/*.whl \
		$$(bin/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
	cd bin/venv && bin/python -m pytest -q -p no:cacheprovider $(CURDIR)/python/tests

.PHONY: test-gorgonia
test-gorgonia:
	$(GO) -C formats/gorgonia vet ./...
	$(GO) -C formats/gorgonia test ./...

# An archive of what install installs, with licences; a bill of materials; the page; the sources. The same commit gives
# the same archives but for what the C compiler and Go's version decide. On another machine of another architecture too,
# then make checksums where all files are.
DIST := bin/dist
NAME = spmmrun-$(or $(VERSION),devel)
HERE = $(NAME)-$(shell $(GO) env GOOS)-$(shell $(GO) env GOARCH)
TAR = tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$$(git log -1 --format=%ct)
.PHONY: dist dist-web dist-source dist-modules checksums
dist:
	rm -rf bin/$(HERE) && mkdir -p $(DIST)
	$(MAKE) --no-print-directory install DESTDIR=bin/$(HERE)/ PREFIX=.
	cp LICENSE README.md CHANGELOG.md bin/$(HERE)
	$(GO) run ./tools/release licences bin/spmmrun >bin/$(HERE)/LICENCES-OF-OTHERS
	$(GO) run ./tools/release sbom bin/spmmrun $(VERSION) >$(DIST)/$(HERE).cdx.json
	$(TAR) -C bin -c $(HERE) | gzip -9n >$(DIST)/$(HERE).tar.gz
dist-web: web
	mkdir -p $(DIST) && $(TAR) -C bin/web -c . | gzip -9n >$(DIST)/$(NAME)-web.tar.gz
dist-source:
	mkdir -p $(DIST) && git archive --prefix=$(NAME)/ HEAD | gzip -9n >$(DIST)/$(NAME)-source.tar.gz
# Every module that a build takes, as a proxy of Go's: with these and the sources a release can be built when others are
# gone.
dist-modules:
	rm -rf bin/modules && mkdir -p $(DIST)
	GOPROXY="file://$$($(GO) env GOMODCACHE)/cache/download,$$($(GO) env GOPROXY)" GOMODCACHE=$(CURDIR)/bin/modules GOFLAGS=-modcacherw $(GO) mod download
	rm -rf bin/modules/cache/download/sumdb
	$(TAR) -C bin/modules/cache -c download >$(DIST)/$(NAME)-modules.tar
	rm -rf bin/modules
checksums:
	cd $(DIST) && rm -f SHA256SUMS && LC_ALL=C sha256sum $(NAME)* >SHA256SUMS

# Measurements stay in BENCH, and the next run is compared with them: it fails if something became slower by more than 5
# %. Peers take part if they were built (make -C bench/peers).
BENCH := bin/bench.json
BENCH_FLAGS ?= -n 32,128,512
PEERS := $(wildcard bin/peers/*)
.PHONY: bench
bench: build
	bin/spmmrun bench --backend all $(PEERS:%=--peer %) $(BENCH_FLAGS) --plot bin/bench.svg \
		$(if $(wildcard $(BENCH)),--compare $(BENCH)) --save $(BENCH).new
	mv $(BENCH).new $(BENCH)

.PHONY: figures
figures:
	$(GO) run ./tools/figures

.PHONY: generate
generate:
	$(GO) generate ./shaders/... ./backend/...
	$(GO) run ./tools/kernels

.PHONY: lint
lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); \
	[[ -z $$unformatted ]] || { echo "gofmt these:" $$unformatted >&2; exit 1; }
	$(GO) vet -tags $(TAGS) -buildmode=pie ./...
	$(RUN) ./tools/words

# Pinned here, not in go.mod, whose modules a user of the library sees.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
.PHONY: audit staticcheck govulncheck actionlint
audit: staticcheck actionlint govulncheck
staticcheck:
	GOBIN=$(CURDIR)/bin/tools $(GO) install $(STATICCHECK)
	bin/tools/staticcheck -tags $(TAGS) -checks 'SA*,S1*,U1000' ./...
	for system in js/wasm windows/amd64 darwin/arm64; do \
		CGO_ENABLED=0 GOOS=$${system%/*} GOARCH=$${system#*/} bin/tools/staticcheck -checks 'SA*,S1*' ./...; \
	done
govulncheck:
	$(GO) run $(GOVULNCHECK) -tags $(TAGS) ./...
actionlint:
	$(GO) run $(ACTIONLINT) -shellcheck= -pyflakes=

# Every fuzz target in turn, or those whose line of tools/fuzz/targets matches FUZZ; an input that fails one is left in
# its package's testdata/fuzz. Inputs are made smaller in few steps, which otherwise take most of the time.
FUZZTIME ?= 30s
FUZZ ?= .
.PHONY: fuzz
fuzz:
	@tools/fuzz/targets | grep -- '$(FUZZ)' | while read -r package target; do \
		echo "$$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$package"; \
	done

# What make test does for some calls of devices, drivers and files; and the C that cgo compiles, under its sanitizers.
.PHONY: faults sanitize
faults: test-faults test-faults-soft
sanitize: test-asan test-asan-soft test-ubsan test-ubsan-soft

# Statements that tests run: of the library by its own tests and those of its front door, of CUDA's backend on a
# stand-in of the driver.
.PHONY: coverage
coverage:
	mkdir -p bin/coverage
	$(GO) test -short -coverpkg=.,./internal/plan -coverprofile=bin/coverage/library . ./internal/plan
	$(GO) test -short -tags cuda -coverpkg=./backend/cuda/... -coverprofile=bin/coverage/cuda ./backend/cuda/...
	tools/coverage bin/coverage/library bin/coverage/cuda -- .=85 internal/plan=85 backend/cuda=85 \
		backend/cuda/internal/driver=85

# Every package and test on the systems of its users: PLATFORMS, without cgo. (make test checks only their types.)
PLATFORMS := windows/amd64 darwin/arm64 linux/arm64 linux/386 js/wasm
.PHONY: cross
cross: $(PLATFORMS) windows-webgpu windows-capi
.PHONY: $(PLATFORMS)
$(PLATFORMS): export CGO_ENABLED = 0
$(PLATFORMS):
	GOOS=$(@D) GOARCH=$(@F) $(GO) build ./...
	GOOS=$(@D) GOARCH=$(@F) $(GO) vet ./...

# WebGPU for Windows, which needs a C compiler for it: that it compiles and links.
.PHONY: windows-webgpu
windows-webgpu:
	CGO_ENABLED=1 GOOS=windows GOARCH=amd64 CGO_CFLAGS= CGO_LDFLAGS= tools/mingw \
		$(GO) build -tags webgpu -trimpath -ldflags='$(LDFLAGS)' -o bin/spmmrun.exe ./cmd/spmmrun
	CGO_ENABLED=1 GOOS=windows GOARCH=amd64 CGO_CFLAGS= CGO_LDFLAGS= tools/mingw $(GO) vet -tags webgpu ./portable/webgpu

# The runs of tools/tests/table.go: a set of them, or one by its name (make test-soft). Each test binary is built once.
# Go test keeps results of packages on the machine itself; make test FRESH=1 runs these, too.
FRESH ?=
TESTS = $(RUN) ./tools/tests run $(if $(FRESH),-fresh)
.PHONY: test test-all test-needs
test: test-needs
	$(TESTS) -lint -set test
test-all: test-needs
	tools/needs mpirun.mpich python3-torch
	$(TESTS) -lint -set all
	$(MAKE) --no-print-directory test-capi test-python test-gorgonia
test-%: test-needs
	$(TESTS) $*

# What building and testing need beyond Go. The runs set up drivers and a browser themselves.
test-needs:
	tools/needs node

# Some tests of all packages, without drivers, in a minute.
SLOW := ^Test(Manifests|ExactProblems|ExpectedIsExact|Mutations|Outside|Readme|ContractFindsMistakes|Platforms|Choice|DenseIsChosen|Contract|Driver|EpilogueOfBlocks|NoMachinePaths|ManyLaunches|Page)$$|^TestGenerate|^TestScripts$$/^conform$$
SOME := ^(csr|cvse/v8|lanestream)/f16/(T1±|T3|nonfinite)/m(67|150|1k1)
.PHONY: quick
quick:
	SPMM_FILTER='$(SOME)' $(GO) test -tags $(TAGS) -vet=off -short -skip '$(SLOW)' ./...

# One kernel: compile it, test it on the CPU and a driver, and time it where there is a device: make kernel
# K=lanestream/staged.
K ?=
.PHONY: kernel
kernel:
	tools/kernel '$(K)'

# Manifests of this machine's devices, verified and compared with those that are checked in.
BACKENDS ?= cuda vulkan webgpu
COMMIT = $(shell git rev-parse HEAD)
.PHONY: manifests
manifests: build
	mkdir -p bin/manifests
	for b in $(BACKENDS); do \
		bin/spmmrun conform --backend $$b --commit $(COMMIT) -o bin/manifests/$$b.json.gz; \
		bin/spmmrun verify bin/manifests/$$b.json.gz; \
	done
	bin/spmmrun compare conformance/manifests/*.json.gz $(BACKENDS:%=bin/manifests/%.json.gz)

# What the conformance suite is worth: at least 90 % of the faults must be noticed (conformance/mutants). Half an hour.
.PHONY: mutants
mutants:
	$(SOFTVK) true
	$(GO) run ./conformance/mutants -o docs/mutants.md

.PHONY: clean
clean:
	rm -rf bin
