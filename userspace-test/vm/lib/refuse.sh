# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
# Checks before a build. Without them a module would fail at load time, or corrupt memory later.

# The compiler's version is part of every Rust symbol's name, so another compiler's symbols do not
# match.
refuse_other_compiler() { # CONFIG RUSTC-VERSION-TEXT
	local want
	want=$(sed -n 's/^CONFIG_RUSTC_VERSION_TEXT="\(.*\)"$/\1/p' "$1")
	[ -n "$want" ] || die "The kernel of $1 was built without Rust (CONFIG_RUST): kdapl.ko cannot be built for it."
	[ "$2" = "$want" ] || die "The Rust compiler is not the kernel's: its symbols would not match." \
		"the kernel's: $want" "this one:     $2" \
		"Use the build root (make without KDIR), or install the kernel's compiler."
}

# Without module versioning a kernel loads a module whose structures have another layout because of
# other options. So the options are compared with the prepared ones.
refuse_other_config() { # OBJECTS
	local origin
	origin=$(dirname "$1")/config
	[ -e "$origin" ] && [ "$(basename "$1")" = O ] || return 0
	cmp -s "$origin" "$1/.config" || die "The configuration in $1 is no longer Debian's: a module built with it would corrupt memory." \
		"Remove $1 and run the same command again."
}

# The rest is for a build folder that others have made: KDIR.

refuse_incomplete_kdir() { # KDIR
	local file
	[ -e "$1/.config" ] || die "$1 is not a kernel build folder: it has no .config."
	[ -e "$1/rust/libkernel.rmeta" ] || die "$1 lacks the kernel's Rust metadata (rust/libkernel.rmeta)." \
		"Debian's header packages do not ship it: use make without KDIR, which prepares a tree that has it."
	for file in scripts/module.lds include/config/auto.conf include/config/kernel.release; do
		[ -e "$1/$file" ] || die "$1 is not completely prepared (no $file)." \
			"Run 'make modules_prepare' in it; 'make prepare' is not enough."
	done
	[ -e "$1/Module.symvers" ] || die "$1 has no Module.symvers: the module's calls could not be checked against the kernel." \
		"The kernel's own build creates it: build the kernel there, or copy it from its header package."
}

refuse_unfit_kernel() { # KDIR
	local release option
	release=$(cat "$1/include/config/kernel.release")
	[ "$(printf '%s\n' 7.2 "$release" | sort -V | head -n 1)" = 7.2 ] ||
		die "The kernel of $1 is $release: kdapl.ko needs 7.2 or later."
	for option in INFINIBAND INFINIBAND_ADDR_TRANS INFINIBAND_USER_MEM TRACEPOINTS; do
		grep -q "^CONFIG_$option=" "$1/include/config/auto.conf" ||
			die "The kernel of $1 was built without CONFIG_$option: kdapl.ko cannot work in it."
	done
}

# Compares auto.conf, which modules are compiled with, since .config may have changed later.
refuse_other_config_than_installed() { # KDIR
	local release installed='' file different
	release=$(cat "$1/include/config/kernel.release")
	for file in "/boot/config-$release" "/lib/modules/$release/config"; do
		[ ! -e "$file" ] || installed=$file
	done
	[ -n "$installed" ] || [ "$release" != "$(uname -r)" ] || [ ! -e /proc/config.gz ] || installed=/proc/config.gz
	[ -n "$installed" ] || return 0
	different=$(diff <(zcat -f "$installed" | options) <(options <"$1/include/config/auto.conf") |
		sed -n 's/^[<>] \(CONFIG_[^=]*\).*/\1/p' | sort -u) || true
	[ -z "$different" ] || die "The configuration in $1 is not the one of kernel $release ($installed): a module built with it would corrupt memory." \
		"They differ in $(head -n 5 <<<"$different" | xargs | sed 's/ /, /g')$([ "$(wc -l <<<"$different")" -le 5 ] || echo ' and others')." \
		"Copy $installed to .config there, and run 'make olddefconfig modules_prepare' in it."
}

# Prints the options of a configuration, without the versions of the tools.
options() { grep '^CONFIG_' | grep -vE '^CONFIG_[A-Z]+_(LLVM_)?(MAJOR_)?VERSION(_TEXT)?=' | tr -d '"' | sort; }

# Another C compiler than the kernel's may use another layout, or lack its options.
refuse_other_tools() { # CONFIG
	local cc kind=GCC want have
	cc=$(c_compiler "$1")
	[ "$cc" != clang ] || kind=CLANG
	want=$(($(sed -n "s/^CONFIG_${kind}_VERSION=//p" "$1") / 10000))
	command -v "$cc" >/dev/null || die "The kernel's C compiler is not installed: $cc, version $want."
	have=$("$cc" -dumpversion | cut -d. -f1)
	[ "$have" = "$want" ] || die "The C compiler is not the kernel's: the kernel was built by $cc $want, and $cc here is version $have."
	command -v bindgen >/dev/null || die "bindgen is not installed. It converts the kernel's headers for Rust." \
		"Install it (Debian's package has the same name; elsewhere: cargo install bindgen-cli)."
}

# Prints the name of the C compiler. gcc's version text begins with it; clang's may begin with the
# distribution.
c_compiler() { # CONFIG
	sed -n 's/^CONFIG_CC_IS_CLANG=y$/clang/p; s/^CONFIG_CC_VERSION_TEXT="\([^ "]*gcc[^ "]*\).*/\1/p' "$1" | tail -n 1
}
