# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
# Creates the files that a guest boots: a folder with vmlinuz, and modules.cpio for the initramfs.

# The modules that the guest loads. Their dependencies are added. Built-in and missing modules are
# skipped.
guest_modules='rdma_rxe siw ib_uverbs rdma_ucm rdma_cm dummy veth sch_netem'

make_bundle() { # FOLDER IMAGE MODULES-FOLDER RELEASE
	local out=$1 image=$2 modules=$3 release=$4 part=$1.part tree
	tree=$part/tree/usr/lib/modules/$release
	rm -rf "$part"
	mkdir -p "$tree"
	# depmod needs the path BASE/lib/modules.
	mkdir -p "$part/base/lib"
	ln -s "$modules" "$part/base/lib/modules"
	in_root depmod -b "$part/base" "$release"
	copy_modules
	ln -s usr/lib "$part/tree/lib"
	in_root depmod -b "$part/tree" "$release"
	rm "$part/tree/lib"
	# shellcheck disable=SC2016
	in_root bash -c 'cd "$1" && find . -mindepth 1 | cpio --quiet -o -H newc' - "$part/tree" >"$part/modules.cpio"
	cp "$image" "$part/vmlinuz"
	rm -rf "$part/tree" "$part/base" "$out"
	mv "$part" "$out"
}

# Decompresses the modules once, instead of in each guest on its emulated processor.
copy_modules() {
	local module file
	for module in $guest_modules; do
		in_root modprobe -S "$release" -d "$part/base" --show-depends "$module" || true
	done 2>/dev/null | awk '$1 == "insmod" { print $2 }' | sort -u |
		while read -r file; do
			case $file in
			*.xz) in_root xz -dc "$file" >"$tree/$(basename "$file" .xz)" </dev/null ;;
			*) cp "$file" "$tree/" ;;
			esac
		done
}
