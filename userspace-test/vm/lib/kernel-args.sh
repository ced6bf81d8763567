# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash

# What make is told for each kernel, one argument a line. A module must be built with what its kernel was built with.
kernel_args() { # stock|7.3|uml|debug
	case $1 in
	stock | 7.3) printf '%s\n' CC=x86_64-linux-gnu-gcc-14 HOSTCC=gcc-14 ;;
	uml) printf '%s\n' ARCH=um CC=gcc-14 HOSTCC=gcc-14 ;;
	debug) printf '%s\n' LLVM=1 ;;
	esac
}

# The arguments that only modules get. UML's module loader knows no GOT relocations and its modules lie
# far from the kernel, so Rust must be told what C is told by arch/um's own Makefile.
module_args() { # KERNEL
	case $1 in
	uml) printf '%s\n' "RUSTFLAGS_MODULE=-Crelocation-model=static -Ccode-model=large" ;;
	esac
}
