# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Compiles the crate kdat, safe Rust calls of DAT, into modules that use it. In their Kbuild:
#
#   obj-m := consumer.o
#   consumer-y := consumer_main.o kdat.o
#   kdat-users := consumer_main.o
#   include /path/to/rust/kdat/kdat.mk
#
# Each of `kdat-users` is the object of a Rust crate, which says `use kdat::...`. The file is
# included after these variables are set. docs/kernel-api.md has the commands.

kdat-dir := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
kdat-include := $(abspath $(kdat-dir)/../../include)

include $(kdat-dir)/bindgen.mk

# `make install` puts the symbols of each kernel's kdapl.ko beside the headers.
ifndef KBUILD_EXTRA_SYMBOLS
KBUILD_EXTRA_SYMBOLS := $(wildcard $(kdat-include)/../$(KERNELRELEASE)/Module.symvers)
endif

quiet_cmd_kdat_bindgen = BINDGEN $@
      cmd_kdat_bindgen = \
	$(BINDGEN) $< --allowlist-function '(dat|kdapl)_.*' --allowlist-type '(dat|DAT)_.*' \
		--allowlist-var '(DAT|KDAPL)_.*|AF_INET6?' --allowlist-type 'sockaddr_in6' \
		--rust-target 1.85 --use-core --with-derive-default --ctypes-prefix ffi \
		--no-debug '.*' --no-doc-comments -o $@ -- \
		$(filter-out $(kdapl_skip_c_flags),$(c_flags)) -w -I$(kdat-include) \
		--target=$(kdapl_bindgen_target) -fno-builtin -D__BINDGEN__ -DMODULE

$(obj)/kdat_bindings.rs: $(kdat-dir)/kdat_bindings.h FORCE
	$(call if_changed_dep,kdat_bindgen)

targets += kdat_bindings.rs kdat.o

# `--emit=metadata` lets the users of the crate find it.
RUSTFLAGS_kdat.o += --emit=metadata=$(obj)/libkdat.rmeta \
	--env-set KDAT_BINDINGS=$(abspath $(obj))/kdat_bindings.rs

$(obj)/kdat.o: $(kdat-dir)/kdat.rs $(obj)/kdat_bindings.rs FORCE
	+$(call if_changed_rule,rustc_o_rs)

$(foreach user,$(kdat-users),$(eval RUSTFLAGS_$(user) += -L$(obj) --extern kdat))
$(addprefix $(obj)/,$(kdat-users)): $(obj)/kdat.o

clean-files += libkdat.rmeta
