# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash

# Prints the arguments of make for a kernel, one a line. A module must be built with the arguments
# of its kernel.
kernel_args() { # stock|7.3|uml|debug|kcsan
	case $1 in
	stock | 7.3) printf '%s\n' CC=x86_64-linux-gnu-gcc-14 HOSTCC=gcc-14 ;;
	uml) printf '%s\n' ARCH=um CC=gcc-14 HOSTCC=gcc-14 ;;
	debug | kcsan) printf '%s\n' LLVM=1 ;;
	esac
}

# Flags that instrument Rust for KCSAN as scripts/Makefile.kcsan instruments C. The kernel has none,
# and its target does not support -Zsanitizer=thread, which would add the pass and the function
# attribute that it needs.
rust_kcsan="-Cpasses=tsan -Cllvm-args=-force-attribute=sanitize_thread -Cllvm-args=-tsan-distinguish-volatile=1"
rust_kcsan="$rust_kcsan -Cllvm-args=-tsan-compound-read-before-write=1"

# Prints additional arguments for modules. UML's module loader supports no GOT relocations, and its
# modules are far from the kernel, so Rust needs the code model that arch/um's Makefile selects for
# C.
module_args() { # KERNEL
	case $1 in
	uml) printf '%s\n' "RUSTFLAGS_MODULE=-Crelocation-model=static -Ccode-model=large" ;;
	kcsan) printf '%s\n' "RUSTFLAGS_MODULE=$rust_kcsan" ;;
	esac
}
