# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
# What must be refused before building, because it would only go wrong at loading, or not even then.

# The compiler's version text goes into every Rust symbol's name: with another one, nothing would be found.
refuse_other_compiler() { # CONFIG RUSTC-VERSION-TEXT
	local want
	want=$(sed -n 's/^CONFIG_RUSTC_VERSION_TEXT="\(.*\)"$/\1/p' "$1")
	[ -n "$want" ] || die "The kernel of $1 was built without Rust (CONFIG_RUST): kdapl.ko cannot be built for it."
	[ "$2" = "$want" ] || die "The Rust compiler is not the kernel's: its symbols would not match." \
		"the kernel's: $want" "this one:     $2" \
		"Use the build root (make without KDIR), or install the kernel's compiler."
}

# Without module versioning a kernel loads a module whose structures are laid out by other options. Nothing
# would warn, so the options are compared with those that were prepared.
refuse_other_config() { # OBJECTS
	local origin
	origin=$(dirname "$1")/config
	[ -e "$origin" ] && [ "$(basename "$1")" = O ] || return 0
	cmp -s "$origin" "$1/.config" || die "The configuration in $1 is no longer Debian's: a module built with it would corrupt memory." \
		"Remove $1 and run the same command again."
}

refuse_incomplete_kdir() { # KDIR
	[ -e "$1/.config" ] || die "$1 is not a kernel build folder: it has no .config."
	[ -e "$1/rust/libkernel.rmeta" ] || die "$1 lacks the kernel's Rust metadata (rust/libkernel.rmeta)." \
		"Debian's header packages do not ship it: use make without KDIR, which prepares a tree that has it."
	[ -e "$1/scripts/module.lds" ] || die "$1 is only half prepared (no scripts/module.lds)." \
		"Run 'make modules_prepare' in it; 'make prepare' is not enough."
}
