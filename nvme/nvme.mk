# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Generates bindings of the NVMe core's headers for a transport in Rust. In its Kbuild:
#
#   nvme-crate := transport.o             the object of the crate
#   nvme-header := bindings.h             the input of bindgen
#   nvme-bindgen := --allowlist-...       what it takes
#   include $(src)/../nvme.mk
#
# Types that the kernel's own `bindings` crate defines in full are those of that crate, as in
# rust/Kbuild. The crate includes the file that the variable NVME_BINDINGS names.

nvme-dir := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))

quiet_cmd_nvme_blocklist = AWK     $@
      cmd_nvme_blocklist = awk -f $(nvme-dir)/../rust/bindings/blocklist.awk $< > $@

$(obj)/nvme_blocklist: $(objtree)/rust/bindings/bindings_generated.rs \
		$(nvme-dir)/../rust/bindings/blocklist.awk FORCE
	$(call if_changed,nvme_blocklist)

nvme-bindgen-shared = $(shell grep -Ev '^\#|^$$' $(srctree)/rust/bindgen_parameters)

quiet_cmd_nvme_bindgen = BINDGEN $@
      cmd_nvme_bindgen = \
	$(BINDGEN) $< $(nvme-bindgen-shared) $(nvme-bindgen) $$(cat $(obj)/nvme_blocklist) \
		--default-non-copy-union-style manually_drop \
		--rust-target 1.85 --use-core --with-derive-default --ctypes-prefix ffi \
		--no-debug '.*' --enable-function-attribute-detection -o $@ -- \
		$(filter-out $(kdapl_skip_c_flags),$(c_flags)) -w -I$(srctree)/drivers/nvme \
		--target=$(kdapl_bindgen_target) -fno-builtin -D__BINDGEN__ -DMODULE

$(obj)/nvme_bindings.rs: $(obj)/nvme_blocklist
$(obj)/nvme_bindings.rs: $(src)/$(nvme-header) FORCE
	$(call if_changed_dep,nvme_bindgen)

targets += nvme_blocklist nvme_bindings.rs

RUSTFLAGS_$(nvme-crate) += --env-set NVME_BINDINGS=$(abspath $(obj))/nvme_bindings.rs
$(obj)/$(nvme-crate): $(obj)/nvme_bindings.rs
