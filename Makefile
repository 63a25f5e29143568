# SPDX-License-Identifier: GPL-2.0
#
# `make help` lists the targets.  Each one is a script that can be run by itself;
# this file gives them their names and passes the variables on.

# The first line of scripts/lines is the one that leads.
LINE ?= $(shell awk '/^[0-9]/ { print $$1; exit }' scripts/lines)
FLAVOUR ?= stock
export KDIR KSRC MIRROR MIRROR_SECURITY DESTDIR KVER

# Kbuild's own switches: more warnings, sparse, full command lines.
kbuild := $(foreach v,W C V,$(if $($(v)),$(v)=$($(v))))
which := --line $(LINE) --flavour $(FLAVOUR)
programs := tools/rdma-dmabuf tools/rdma-core tools/testing/selftests

help: ## list the targets and the variables
	@echo 'Targets:'
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile
	@echo 'Variables:'
	@awk -F '## ' '/^# [A-Z]+=.*## / { printf "  %-12s %s\n", substr($$1, 3), $$2 }' Makefile

# LINE= ## kernel series, a line of scripts/lines (default: the first)
# FLAVOUR= ## stock (Debian's kernel) or debug (the guest's own)
# KDIR= ## prepared kernel tree or headers to build against
# KSRC= ## source of the same kernel; with KDIR, nothing is downloaded
# MIRROR= ## Debian mirror to fetch the kernel from
# OUT= ## where the series goes (default: build/LINE/series)
# KVER= ## kernel to install for (default: the running one)
# DESTDIR= ## root to install below, for packages
# W= C= V= ## as in the kernel: W=1 warnings, C=2 sparse, V=1 commands

setup: ## install the Debian packages that everything here needs
	@scripts/setup

modules: ## build the modules, into build/LINE/FLAVOUR/modules
	@scripts/build-modules $(which) $(kbuild)

tools: ## build the programs, into build/
	@$(foreach dir,$(programs),$(MAKE) -s -C $(dir) &&) :

install: ## install the modules where depmod prefers them
	@scripts/install-modules $(which)

uninstall: ## take them away again
	@scripts/install-modules $(which) --remove

series: ## write the patch series for a kernel tree, for git am
	@scripts/make-series --line $(LINE) --out $(or $(OUT),build/$(LINE)/series)

demo: ## see GPU memory written and read over RDMA, in a guest
	@scripts/setup
	@tools/rdma-dmabuf/demo

bench: ## measure it, in a guest
	@scripts/setup
	@tools/rdma-dmabuf/bench-guest

bench-mlx5: ## measure what dma-buf MRs cost on mlx5, beside the kernels' own
	@scripts/setup
	@tools/rdma-dmabuf/bench-mlx5

check: ## test everything but what takes hours; sets itself up
	@scripts/check

check-all: ## test everything, and write the table in Documentation/results
	@scripts/check --all

style: ## checkpatch, sparse, W=1, kernel-doc, shellcheck
	@scripts/check-style --line $(LINE)

kunit: ## run the KUnit tests in a guest
	@scripts/check --only kunit

clean: ## remove what was built; the cache of kernels stays
	rm -rf build

.PHONY: help setup modules tools install uninstall series demo bench bench-mlx5 check \
	check-all style kunit clean
