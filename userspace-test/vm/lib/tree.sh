# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash

# The output folder is built where it stays, since its files name their own paths; `.complete` is its stamp.
prepare_output() { # SERIES
	local dir=$KDAPL_CACHE/$1 headers out file
	headers=$dir/packages/usr/src/linux-headers-$(cat "$dir/release")
	out=$dir/O
	mkdir -p "$out"
	for file in .config .kernelvariables Module.symvers; do cp "$headers/$file" "$out/"; done
	cp "$out/.config" "$dir/config"
	in_root make -C "$dir/source" O="$out" CC=x86_64-linux-gnu-gcc-14 HOSTCC=gcc-14 -j"$(nproc)" olddefconfig modules_prepare
	# kconfig rewrites the file only when it changes it: the options must be Debian's, to the last.
	if ! cmp "$dir/config" "$out/.config"; then
		echo "The toolchain of the build root changed the kernel's configuration: modules would not fit Debian's kernel."
		diff "$dir/config" "$out/.config" | head -20
		return 1
	fi
	# modules_prepare empties it, and modpost checks against the stock kernel's.
	cp "$headers/Module.symvers" "$out/"
	[ ! -e "$headers/vmlinux" ] || cp "$headers/vmlinux" "$out/"
	touch "$out/.complete"
}
