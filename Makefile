# What there is to do:
#
#   make demo       build everything and multiply a real matrix on the best backend present
#   make build      bin/spmmrun, with all backends
#   make bench      measure the standard set on every device of this machine, and compare with the last time
#   make web        bin/web: the page that runs the suite and products in a browser, for any static web server
#   make site       bin/site: the documents and that page
#   make test       install what the tests need and run them all (no GPU is needed)
#   make test-quick a part of them, in two or three minutes
#   make lint       gofmt and go vet
#   make cross      build and vet for the other systems
#   make mutants    put faults into a copy of the sources and count those that the conformance suite notices
#   make generate   compile the kernels whose blobs are stale
#   make install    the command, its manual and its completion, below PREFIX
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
# The CUDA backend builds without CUDA's toolkit: its own header, no library.
CUDA_ENV := GOOS= GOARCH= $(GO) run ./backend/cuda/env
export CGO_CFLAGS := $(shell $(CUDA_ENV) cflags)
export CGO_LDFLAGS := $(shell $(CUDA_ENV) ldflags)

MATRIX := testdata/matrices/ca-CondMat.mtx.gz
SOFTVK := $(CURDIR)/tools/softvk/run

# The packages whose tests use whatever Vulkan and WebGPU devices they find: of kernels, and of what launches them.
ON_DEVICES := ./portable/webgpu/... ./shaders/...
IN_FRONT := ./internal/plan/... . ./cmd/spmmrun ./examples/...
ON_VULKAN := ./backend/vulkan/... ./shaders/...
# Of the conformance suite's tests, those that multiply on devices; the others, and the CPU, are test-host's.
CONFORMANCE := -run '^Test(Conformance|Mutations|SameBits|NegativeControls|Probes)$$' ./conformance
# A run of go test, named after the target. (lint vets.)
RESULTS := bin/tests
TEST = $(GO) run ./tools/tests run $(RESULTS) $@ -tags $(TAGS) -count=1 -timeout 75m -vet=off
# What says the same on a software driver of Vulkan as on the machine: tests that need no device, and subtests on the CPU.
# (A pattern of subtests comes last: go test looks no further once the first part of one fits.)
SAME := ^Test(Choice|ChoiceOfWindows|Hollow|DenseIsChosen|DenseNeedsMemory|BindingLimit|BindingLimitOfPatterns|EpilogueOfBlocks|Ring)$$|/^cpu

# Without symbols, and without what nothing calls in the static library of WebGPU: a third smaller.
LDFLAGS := -s -w
ifeq ($(shell $(GO) env GOOS),linux)
LDFLAGS += -extldflags=-Wl,--gc-sections
endif

# What the command says of itself, where the sources are no checkout that tells: a release's tag.
VERSION ?= $(shell git describe --tags --match 'v*' --dirty=+changes 2>/dev/null)
LDFLAGS += $(if $(VERSION),-X main.stamped=$(VERSION))

# The bytes that the command may have. It is checked here, where it is linked anyway: in demo, bench and dist, and in CI's job dist.
MOST := 30000000
.PHONY: build
build:
	$(GO) build -tags $(TAGS) -trimpath -ldflags='$(LDFLAGS)' -o bin/spmmrun ./cmd/spmmrun
	@size=$$(wc -c <bin/spmmrun); (( size <= $(MOST) )) || { echo "bin/spmmrun has $$size bytes, more than $(MOST)" >&2; exit 1; }

.PHONY: web
web:
	$(GO) run ./cmd/spmmweb/build -o bin/web

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

# The manual's pages and completion are what the command says of itself. DESTDIR is for packages.
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
		$(SHARE)/bash-completion/completions/spmmrun $(SHARE)/zsh/site-functions/_spmmrun $(SHARE)/fish/vendor_completions.d/spmmrun.fish

# An archive of what install installs, with licences; a bill of materials; the page; the sources. The same commit gives the
# same archives but for what the C compiler and Go's version decide. On another machine of another architecture too, then
# make checksums where all files are.
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
# Every module that a build takes, as a proxy of Go's: with these and the sources a release can be built when others are gone.
dist-modules:
	rm -rf bin/modules && mkdir -p $(DIST)
	GOPROXY="file://$$($(GO) env GOMODCACHE)/cache/download,$$($(GO) env GOPROXY)" GOMODCACHE=$(CURDIR)/bin/modules GOFLAGS=-modcacherw $(GO) mod download
	rm -rf bin/modules/cache/download/sumdb
	$(TAR) -C bin/modules/cache -c download >$(DIST)/$(NAME)-modules.tar
	rm -rf bin/modules
checksums:
	cd $(DIST) && rm -f SHA256SUMS && LC_ALL=C sha256sum $(NAME)* >SHA256SUMS

# Measurements stay in BENCH, and the next run is compared with them: it fails if something became slower by more than 5 %. Peers take
# part if they were built (make -C bench/peers).
BENCH := bin/bench.json
BENCH_FLAGS ?= -n 32,128,512
PEERS := $(wildcard bin/peers/*)
.PHONY: bench
bench: build
	bin/spmmrun bench --backend all $(PEERS:%=--peer %) $(BENCH_FLAGS) --plot bin/bench.svg $(if $(wildcard $(BENCH)),--compare $(BENCH)) --save $(BENCH).new
	mv $(BENCH).new $(BENCH)

.PHONY: generate
generate:
	$(GO) generate ./shaders/... ./backend/...

.PHONY: lint
lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); \
	[[ -z $$unformatted ]] || { echo "gofmt these:" $$unformatted >&2; exit 1; }
	$(GO) vet -tags $(TAGS) ./...
	CGO_ENABLED=0 $(GO) vet ./...

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

# Every fuzz target in turn, or those whose line of tools/fuzz/targets matches FUZZ; an input that fails one is left in its package's testdata/fuzz. Inputs are made smaller in few
# steps, which otherwise take most of the time.
FUZZTIME ?= 30s
FUZZ ?= .
.PHONY: fuzz
fuzz:
	@tools/fuzz/targets | grep -- '$(FUZZ)' | while read -r package target; do \
		echo "$$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$package"; \
	done

# What make test does for some calls: all of them.
.PHONY: faults
faults: export SPMM_ALL_FAULTS = 1
faults:
	$(TEST) -run '^Test(Every|Write)?Faults?$$' . ./cmd/spmmrun ./backend/cuda/internal/faketest
	SPMM_REQUIRE=webgpu,vulkan $(TEST) -exec $(SOFTVK) -run '^Test(Every)?Faults?$$' ./backend/vulkan ./portable/webgpu

# The C that cgo compiles, and the stand-ins and software drivers that it calls, by tests of the bindings. What drivers leave
# allocated at the process's end is theirs.
BINDINGS := ./backend/cuda/internal/faketest
BINDINGS_ON_DEVICES := ./backend/vulkan ./portable/webgpu
UNSANITIZED := Alloc|TensorMaps|Validation|Contract/./long_launch
.PHONY: sanitize sanitize-address sanitize-undefined
sanitize: sanitize-address sanitize-undefined
# (Some tests put a driver of theirs before the program's libraries, the sanitizer's too.)
sanitize-address: export ASAN_OPTIONS = detect_leaks=0:verify_asan_link_order=0
sanitize-address:
	$(TEST) -asan -skip '$(UNSANITIZED)' $(BINDINGS)
	$(TEST) -asan -exec $(SOFTVK) -skip '$(UNSANITIZED)' $(BINDINGS_ON_DEVICES)
sanitize-undefined: export CGO_CFLAGS += -g -O1 -fsanitize=undefined -fno-sanitize-recover=all
sanitize-undefined: export CGO_LDFLAGS += -fsanitize=undefined
sanitize-undefined:
	$(TEST) $(BINDINGS) ./comm/mpi ./comm/nccl
	$(TEST) -exec $(SOFTVK) $(BINDINGS_ON_DEVICES)

# Statements that tests run: of the library by its own tests and those of its front door, of CUDA's backend on a stand-in of
# the driver.
.PHONY: coverage
coverage:
	mkdir -p bin/coverage
	$(GO) test -short -coverpkg=.,./internal/plan -coverprofile=bin/coverage/library . ./internal/plan
	$(GO) test -short -tags cuda -coverpkg=./backend/cuda/... -coverprofile=bin/coverage/cuda ./backend/cuda/...
	tools/coverage bin/coverage/library bin/coverage/cuda -- .=85 internal/plan=85 backend/cuda=85 backend/cuda/internal/driver=85

# Every package and test on the systems of its users: PLATFORMS, without cgo. (make test checks only their types.)
PLATFORMS := windows/amd64 darwin/arm64 linux/arm64 linux/386 js/wasm
.PHONY: cross
cross: $(PLATFORMS) windows-webgpu
.PHONY: $(PLATFORMS)
$(PLATFORMS): export CGO_ENABLED = 0
$(PLATFORMS):
	GOOS=$(@D) GOARCH=$(@F) $(GO) build ./...
	GOOS=$(@D) GOARCH=$(@F) $(GO) vet ./...

# WebGPU for Windows, which needs a C compiler for it: that it compiles and links.
.PHONY: windows-webgpu
windows-webgpu:
	CGO_ENABLED=1 GOOS=windows GOARCH=amd64 CGO_CFLAGS= CGO_LDFLAGS= tools/mingw $(GO) build -tags webgpu -trimpath -ldflags='$(LDFLAGS)' -o bin/spmmrun.exe ./cmd/spmmrun
	CGO_ENABLED=1 GOOS=windows GOARCH=amd64 CGO_CFLAGS= CGO_LDFLAGS= tools/mingw $(GO) vet -tags webgpu ./portable/webgpu

# All tests, TEST_JOBS targets at a time, and what ran on what. Each line that a target prints begins with its name.
TEST_JOBS ?= 2
TESTS := test-host test-soft-suite test-soft test-plain test-soft-front test-browser test-race test-soft-vulkan test-plain-suite test-amd
side-by-side = @SECONDS=0; status=0; rm -rf $(RESULTS); $(MAKE) --no-print-directory -j$(TEST_JOBS) $(1) || status=$$?; \
	$(GO) run ./tools/tests report $(RESULTS); echo "$$SECONDS s in all"; exit $$status
.PHONY: test
test: test-needs
	@$(MAKE) --no-print-directory lint
	$(call side-by-side,$(TESTS))

# A part of them: all packages without their slowest tests, and some cases of the suite on the CPU, Vulkan and WebGPU.
SLOW := ^Test(Manifests|ExactProblems|ExpectedIsExact|Mutations|Outside|Readme|ContractFindsMistakes|Platforms|Choice|DenseIsChosen|Contract|Driver|EpilogueOfBlocks|NoMachinePaths|ManyLaunches|Page)$$|^TestGenerate|^TestScripts$$/^conform$$
SOME := ^(csr|cvse/v8|lanestream)/f16/(T1±|T3|nonfinite)/m(67|150|1k1)
.PHONY: test-quick test-quick-host test-quick-soft
test-quick: test-needs
	$(call side-by-side,test-quick-host test-quick-soft)
test-quick-host:
	SPMM_REQUIRE=cpu SPMM_FILTER='$(SOME)' $(TEST) -short -skip '$(SLOW)' ./...
test-quick-soft:
	SPMM_REQUIRE=webgpu,vulkan SPMM_BACKEND=webgpu,vulkan SPMM_FILTER='$(SOME)' $(TEST) -exec $(SOFTVK) -run '^TestConformance$$' ./conformance

# What the tests need: a C compiler, two MPIs, the software Vulkan drivers, and a browser, which compiles WGSL.
.PHONY: test-needs
test-needs:
	tools/needs
	$(SOFTVK) true
	$(SOFTVK) --plain true
	tools/browser/chromium --setup

# Everything on the machine as it is. SPMM_REQUIRE names the backends that must have run some case.
.PHONY: test-host
test-host:
	SPMM_REQUIRE=cpu SPMM_REQUIRE_BROWSER=1 SPMM_REQUIRE_MPI=openmpi,mpich $(TEST) ./...

# Of these, what runs on ranks.
.PHONY: test-mpi
test-mpi:
	SPMM_REQUIRE_MPI=openmpi,mpich $(TEST) -run 'Contract|Death|Library|MPI|Ranks|PropagateKilled|StandIn|Staged' ./comm/... ./dist ./cmd/spmmrun

# WebGPU in a browser: the backend's tests, and some cases of the suite. (test-host runs the page, with other cases.)
BROWSER_CASES := ^(dense|hrpb|jigsaw|nm/v8|sparse24r|tiledcsr/v8)/f16/(T1±|nonfinite)/m(5|67)|^(dense|lanestream)/s8/f16/T1±/m67|^csr/f32/T1±/m67
.PHONY: test-browser
test-browser:
	SPMM_REQUIRE=webgpu SPMM_BACKEND=webgpu SPMM_FILTER='$(BROWSER_CASES)' \
		$(subst run ./tools,run -exec 'env GOOS=js GOARCH=wasm CGO_ENABLED=0' ./tools,$(TEST)) -exec $(CURDIR)/tools/browser/run \
		-run '^Test(Driver|Lost|BrowserName|BadShader|ReadAndWritten|LargestBuffer|ManyBindings|Conformance)$$' ./portable/webgpu ./conformance

# Plans and tensors that goroutines share, and work that many goroutines do, under the race detector; it looks at addresses that
# are computed, too, which package simd does.
.PHONY: test-race
test-race:
	$(TEST) -race -run 'Concurrent|Close|Cancel' . ./portable/cpu ./backend/cuda/internal/faketest
	$(TEST) -race ./internal/simd

# What a program without C has: the library and the CPU's kernels.
.PHONY: test-pure
test-pure:
	CGO_ENABLED=0 SPMM_REQUIRE=cpu $(TEST) -short . ./comm/local ./formats/... ./portable/... ./internal/plan/... ./shaders/...

# Every package under the race detector; an hour, so it is for the night. Three of the faults that the suite is tried with
# have workgroups write to the same elements of C, which is what the detector says of them.
RACES := ^TestMutations$$/^cpu:0$$/^(one_more_column_is_written|rows_of_C_are_taken_to_be_closer|a_panel_is_done_twice)
.PHONY: test-race-all
test-race-all:
	$(TEST:75m=100m) -race -short -skip '$(RACES)' ./...

# All devices that a software driver gives: Vulkan with cooperative matrices, and WebGPU on it. Many small launches are faster
# without the driver's threads, which the tests of kernels and the suite leave on.
.PHONY: test-soft test-soft-front test-soft-suite test-soft-vulkan
test-soft:
	SPMM_REQUIRE=webgpu,vulkan $(TEST) -exec $(SOFTVK) -skip '$(SAME)' $(ON_DEVICES)
test-soft-front:
	LP_NUM_THREADS=0 SPMM_REQUIRE=webgpu,vulkan $(TEST) -exec $(SOFTVK) -skip '$(SAME)' $(IN_FRONT)
test-soft-suite:
	SPMM_REQUIRE=webgpu,vulkan,vulkan-matrices SPMM_BACKEND=webgpu,vulkan $(TEST) -exec $(SOFTVK) $(CONFORMANCE)
# The backend's tests, one of which runs most of them again under the validation layers.
test-soft-vulkan:
	SPMM_REQUIRE=vulkan $(TEST) -exec $(SOFTVK) ./backend/vulkan/...

# Vulkan without cooperative matrices. The backend's contract is held under the validation layers alone.
.PHONY: test-plain test-plain-suite
test-plain:
	SPMM_REQUIRE=vulkan $(TEST) -exec "$(SOFTVK) --plain" -skip '^Test(Contract|ContractStaged)$$|$(SAME)' $(ON_VULKAN)
test-plain-suite:
	SPMM_REQUIRE=vulkan SPMM_BACKEND=vulkan $(TEST) -exec "$(SOFTVK) --plain" $(CONFORMANCE)

# AMD's shader compiler: every pipeline must compile; there is no device to run on.
.PHONY: test-amd
test-amd:
	$(TEST) -exec "$(SOFTVK) --amd" ./backend/vulkan ./shaders ./shaders/cvse

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
