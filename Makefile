# The two commands: `make run` (the on-call demo in a box) and `make test` (every test). Both install what is missing, build, and
# go. Meson does the work; this file only knows the way in.

BUILD  ?= build
SAN    ?= build-san
TSAN   ?= build-tsan
FUZZ   ?= build-fuzz
MESON  ?= meson
NINJA  ?= ninja
JOBS   ?= $(shell nproc)
FUZZ_SECONDS ?= 30

.PHONY: all build deps run test test-unit test-san test-tsan test-long test-fresh bench fuzz format format-check lint layers install clean help

all: build

help:
	@sed -n 's/^## //p' Makefile

## make run         install what is missing, build, run the on-call demo
run: build
	@examples/oncall/demo $(BUILD)

## make test        install what is missing, build, run every test (as root: also as an ordinary user)
test: build
	@tools/run-tests $(BUILD)

## make build       build everything into build/
build: deps $(BUILD)/build.ninja
	@$(NINJA) -C $(BUILD) -j $(JOBS)
	@tools/collect $(BUILD)

$(BUILD)/build.ninja:
	@$(MESON) setup $(BUILD) --buildtype=debugoptimized

deps:
	@tools/deps

## make test-unit   unit and conformance tests only
test-unit: build
	@$(MESON) test -C $(BUILD) --timeout-multiplier 3 --suite unit --suite conformance --print-errorlogs

## make test-san    unit and conformance tests under ASan and UBSan
test-san: deps
	@test -f $(SAN)/build.ninja || $(MESON) setup $(SAN) -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
	@$(MESON) test -C $(SAN) --timeout-multiplier 4 --suite unit --suite conformance --print-errorlogs

## make test-tsan   the tests of what has threads, under ThreadSanitizer
test-tsan: deps
	@MESON=$(MESON) NINJA=$(NINJA) JOBS=$(JOBS) tools/test-tsan $(TSAN)

## make test-long   the long forms of the randomised tests
test-long: build
	@$(MESON) test -C $(BUILD) --setup long --print-errorlogs --suite unit --suite conformance

## make test-fresh  both commands in a bare Debian 12 root (root, debootstrap)
test-fresh:
	@tools/test-fresh

## make bench       benchmarks: ratios against a peer or a floor measured in the same run
bench: build
	@tools/run-bench $(BUILD)

## make fuzz        every fuzz target for FUZZ_SECONDS (30) each
fuzz: deps
	@test -f $(FUZZ)/build.ninja || CC=clang $(MESON) setup $(FUZZ) -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized
	@tools/run-fuzz $(FUZZ) $(FUZZ_SECONDS)

layers:
	@tools/layers

## make format      clang-format over everything; format-check only looks
format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i
format-check:
	@git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror
	@git ls-files '*.c' '*.h' | xargs tools/width

## make lint        clang-tidy with the checks of .clang-tidy
lint: build
	@git ls-files 'src/*.c' | xargs clang-tidy -p $(BUILD) --quiet

install: build
	@$(MESON) install -C $(BUILD)

clean:
	rm -rf $(BUILD) $(SAN) $(TSAN) $(FUZZ)
