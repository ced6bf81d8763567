# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Targets for developers. Kbuild describes the module. The scripts are in userspace-test/vm.

VM      := userspace-test/vm
KERNEL  ?= stock
PREFIX  ?= /usr/local

# The running kernel's build folder is used directly if it has the kernel's Rust metadata.
running := /lib/modules/$(shell uname -r)/build
ifndef KDIR
ifneq ($(wildcard $(running)/rust/libkernel.rmeta),)
ifeq ($(origin KERNEL),file)
KDIR    := $(running)
endif
endif
endif

.DEFAULT_GOAL := module
.PHONY: module user demo bench soak test check check-host check-stock check-debug check-uml check-all check-whole fuzz clippy fmt fmt-check build-7.3 \
	install clean distclean help

module: ## build kdapl.ko (KERNEL=stock|7.3|uml|debug|kcsan, or KDIR=/path/to/kernel/build)
ifdef KDIR
	@$(VM)/module-here '$(KDIR)' modules $(if $(V),V=$(V))
else
	@$(VM)/module $(KERNEL) modules $(if $(V),V=$(V))
endif

build-7.3: ## build kdapl.ko against Debian's 7.3 kernel
	@$(VM)/module 7.3

clippy: ## run clippy over the module and the user programs
	@$(VM)/clippy

fmt: ## format all Rust code
	@$(VM)/fmt

fmt-check: ## fail if any Rust code is not formatted
	@$(VM)/fmt --check

user: ## build the user programs into build/user/bin
	@$(VM)/user

demo: ## build all, boot a guest, and show two programs that exchange data through kdapl (DEMO=nvme: a file system over NVMe)
	@$(VM)/demo $(DEMO)

bench: ## measure the cost of kDAPL, and of the same operations without it (BENCH="connect --boots 1")
	@$(VM)/bench $(BENCH)

soak: ## run all kinds of operations at once for hours, and fail if a resource grows (HOURS=1, or MINUTES=)
	@$(VM)/soak $(if $(MINUTES),--minutes $(MINUTES),--hours $(or $(HOURS),1))

test: ## run tests in a guest, by identifier, file or tag (T=evd_resize.keeps_events, T=evd_resize, T=tag:link; KERNEL=uml unless told); without T list all
	@$(VM)/test $(if $(filter file,$(origin KERNEL)),uml,$(KERNEL)) $(T)

check: ## run the tests; the last line reads "N passed, N failed"
	@$(VM)/check debug-quarter uml-leaks-half stock lint uml host two-hosts udapl ipv6 siw lossy nvme leaks faults fuzz-corpus

check-host: ## run the tests that need no kernel, and the code checks
	@$(VM)/check host lint

check-stock: ## run the guest tests on Debian's kernel
	@$(VM)/check stock

check-uml: ## run the guest tests on user-mode Linux
	@$(VM)/check uml uml-leaks

check-debug: ## run the guest tests on the debug kernel
	@$(VM)/check debug-1 debug-2 debug-3 debug-4

check-whole: ## run the tests that `check` runs in part or with smaller counts: leaks on the debug kernel, Debian's kernel, two hosts, a lossy link, iWARP, a stopped peer, data races
	@$(VM)/check debug-leaks stock-whole uml-whole two-hosts-whole ipv6-whole kernel-ipv6 lossy-whole siw-debug siw-whole siw-two-hosts \
		slow-peer nvme-whole nvme-ipv6 wake-ups connections storms-1 storms-2 storms-4 irqs-off kcsan leaks-debug kills kills-debug nvme-debug holes fuzz

check-all: ## run Debian's uDAPL programs over the provider with all counts, on every kernel, between two hosts and over a lossy link
	@$(VM)/check udapl-debug udapl-whole udapl-stock udapl-lossy udapl-two-hosts

fuzz: ## search for programs that crash the kernel, guided by coverage (HOURS= or MINUTES=, default 10 minutes)
	@$(VM)/fuzz $(if $(HOURS),--hours $(HOURS),--minutes $(or $(MINUTES),10))

install: ## install the module for the running kernel, the tools, libkdat, libkdapl_bmi, the provider for libdat2, manual pages, headers and crate for consumers (INSTALL_MOD_PATH=, PREFIX=)
	@$(VM)/install '$(KDIR)' '$(PREFIX)' '$(KERNEL)'

clean: ## remove what was built in the checkout
	@$(VM)/forget build

distclean: ## remove the cache too: build root, kernel trees, guest
	@$(VM)/forget build cache

help: ## list the targets
	@sed -n 's/^\([a-z][-a-z0-9. %]*\):.*## /\1\t/p' Makefile | expand -t 36
