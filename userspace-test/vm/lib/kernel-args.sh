# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash

# What make is told for each kernel, one argument a line. A module must be built with what its kernel was built with.
kernel_args() { # stock|7.3|uml|debug|kcsan
	case $1 in
	stock | 7.3) printf '%s\n' CC=x86_64-linux-gnu-gcc-14 HOSTCC=gcc-14 ;;
	uml) printf '%s\n' ARCH=um CC=gcc-14 HOSTCC=gcc-14 ;;
	debug | kcsan) printf '%s\n' LLVM=1 ;;
	esac
}

# Instrument Rust for KCSAN as scripts/Makefile.kcsan instruments C. The kernel has no flags for that, and its target does not
# support -Zsanitizer=thread; that flag would add the pass, and the attribute of functions which the pass looks for.
rust_kcsan="-Cpasses=tsan -Cllvm-args=-force-attribute=sanitize_thread -Cllvm-args=-tsan-distinguish-volatile=1"
rust_kcsan="$rust_kcsan -Cllvm-args=-tsan-compound-read-before-write=1"

# The arguments that only modules get. UML's module loader knows no GOT relocations and its modules lie
# far from the kernel, so Rust must be told what C is told by arch/um's own Makefile.
module_args() { # KERNEL
	case $1 in
	uml) printf '%s\n' "RUSTFLAGS_MODULE=-Crelocation-model=static -Ccode-model=large" ;;
	kcsan) printf '%s\n' "RUSTFLAGS_MODULE=$rust_kcsan" ;;
	esac
}
