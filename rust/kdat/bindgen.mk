# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Flags for bindgen, shared by the bindings of kdapl.ko and those of its consumers in Rust.

kdapl_bindgen_target_x86   := x86_64-linux-gnu
kdapl_bindgen_target_arm64 := aarch64-linux-gnu
kdapl_bindgen_target_um    := $(kdapl_bindgen_target_$(HEADER_ARCH))
kdapl_bindgen_target       := $(kdapl_bindgen_target_$(SRCARCH))

# gcc's flags that clang's parser, which bindgen uses, does not know (the list
# serves the same purpose as the one in the kernel's rust/Makefile).
kdapl_skip_c_flags := -mno-fp-ret-in-387 -mpreferred-stack-boundary=% \
	-mskip-rax-setup -mgeneral-regs-only -msign-return-address=% \
	-mindirect-branch=thunk-extern -mindirect-branch-register \
	-mfunction-return=thunk-extern -mrecord-mcount -mabi=lp64 \
	-mindirect-branch-cs-prefix -mstack-protector-guard% -mtraceback=no \
	-mno-pointers-to-nested-functions -mno-string -mno-strict-align \
	-mstrict-align -mdirect-extern-access -mexplicit-relocs -mno-check-zero-division \
	-fconserve-stack -falign-jumps=% -falign-loops=% -falign-functions=% \
	-femit-struct-debug-baseonly -fno-ipa-cp-clone -fno-ipa-sra -fno-partial-inlining \
	-fplugin-arg-arm_ssp_per_task_plugin-% -fno-reorder-blocks \
	-fno-allow-store-data-races -fasan-shadow-offset=% \
	-fzero-call-used-regs=% -fno-stack-clash-protection -fno-inline-functions-called-once \
	-fsanitize=bounds-strict -fstrict-flex-arrays=% -fmin-function-alignment=% \
	-fzero-init-padding-bits=% -mno-fdpic -fdiagnostics-show-context% \
	--param=% --param asan-% -fno-isolate-erroneous-paths-dereference -ffixed-% -fcall-used-%
