# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash

# Builds the output folder in its final place, since its files contain their paths. `.complete`
# marks it as finished.
prepare_output() { # SERIES
	local dir=$KDAPL_CACHE/$1 headers out file
	headers=$dir/packages/usr/src/linux-headers-$(cat "$dir/release")
	out=$dir/O
	mkdir -p "$out"
	for file in .config .kernelvariables Module.symvers; do cp "$headers/$file" "$out/"; done
	cp "$out/.config" "$dir/config"
	in_root make -C "$dir/source" O="$out" CC=x86_64-linux-gnu-gcc-14 HOSTCC=gcc-14 -j"$(nproc)" olddefconfig modules_prepare
	# kconfig rewrites the file only when an option changes. All options must be Debian's.
	if ! cmp "$dir/config" "$out/.config"; then
		echo "The toolchain of the build root changed the kernel's configuration: modules would not fit Debian's kernel."
		diff "$dir/config" "$out/.config" | head -20
		return 1
	fi
	# modules_prepare empties this file. modpost needs the stock kernel's.
	cp "$headers/Module.symvers" "$out/"
	[ ! -e "$headers/vmlinux" ] || cp "$headers/vmlinux" "$out/"
	touch "$out/.complete"
}
