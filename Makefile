# SPDX-License-Identifier: Apache-2.0
#
# A thin front to meson and ninja. The program is left at build/allot.
#
#   make            build
#   make test       every test; the last line is "N passed, N failed"
#   make test-gpu   the same of parts and suspending on a real GPU, where there is one
#   make demo       play the story of a day
#   make run        server in the foreground on 127.0.0.1:8080
#   make bench      figures beside those of peers; TRACES=FOLDER of public traces for more
#   make bench-share  what sharing and suspending of GPUs costs
#   make install    DESTDIR= PREFIX=
#   make check      checks of the source alone
#   make fuzz       each fuzzer for FUZZ_SECONDS
#   make asan tsan  builds with sanitizers
#   make format     clang-format in place
#   make clean

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60

.PHONY: all setup test test-gpu demo run bench bench-share install clean fuzz asan tsan format check
.NOTPARALLEL:

all: setup
	@tools/build plain

setup:
	@tools/setup

test: setup
	@tools/build plain asan tsan || { echo '0 passed, 1 failed'; exit 1; }
	@tests/run

test-gpu: all
	@tests/gpu/run

demo: all
	@examples/demo.sh

run: all
	@tools/run

bench: all
	@ninja --quiet -C build bench/load bench/sched_turn bench/store_bench
	@bench/run $(if $(TRACES),--traces $(TRACES))

bench-share: all
	@ninja --quiet -C build bench/share_cost
	@build/bench/share_cost
	@bench/suspend

install: all
	@meson configure build -Dprefix=$(abspath $(PREFIX))
	@ninja --quiet -C build build.ninja >/dev/null # what is installed where is decided then
	@meson install -C build --no-rebuild --quiet \
		$(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

asan tsan: setup
	@tools/build $@

check: all
	@tests/run --only build:check

fuzz:
	@tools/setup fuzz
	@tools/fuzz $(FUZZ_SECONDS)

format:
	@tools/setup format
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build build-asan build-tsan build-fuzz
