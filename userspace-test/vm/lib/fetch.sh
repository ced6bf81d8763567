# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
# Selects and fetches Debian's kernel for steps/source.

versions_of() { # PACKAGE
	in_root apt-cache madison "$1" | awk '{ print $3 }'
}

# Selects a version. Headers, image and source must have the same version: without module versioning
# the kernel would not detect a changed structure. 7.3 needs no image, since no guest boots it.
choose_version() { # SERIES
	local series=$1 dir=$KDAPL_CACHE/$1 package release version need
	in_root apt-get -o APT::Sandbox::User=root update
	for version in $(versions_of "linux-source-$series" | sort -rVu); do
		for package in $(in_root apt-cache search --names-only "^linux-headers-${series/./\\.}\\.[0-9]+\\+deb13-amd64\$" | awk '{ print $1 }' | sort -rV); do
			release=${package#linux-headers-}
			need="linux-headers-$release"
			[ "$series" != 7.2 ] || need="$need linux-binary-$release linux-modules-$release"
			all_have_version "$version" "$need" || continue
			echo "$version" >"$dir/version"
			echo "$release" >"$dir/release"
			return
		done
	done
	echo "trixie-backports has no version of linux-source-$series with headers and image of the same version."
	echo "Debian may be in the middle of an update: try again later, or use a cache made earlier."
	return 1
}

all_have_version() { # VERSION PACKAGES
	local package
	for package in $2; do
		versions_of "$package" | grep -qxF "$1" || return 1
	done
}

fetch_debs() { # FOLDER PACKAGE=VERSION...
	local folder=$1
	shift
	mkdir -p "$folder"
	in_root apt-get -o APT::Sandbox::User=root update
	in_root env -C "$folder" apt-get -o APT::Sandbox::User=root download "$@"
}

unpack_packages() { # SERIES
	local dir=$KDAPL_CACHE/$1 release version part deb
	release=$(cat "$dir/release")
	version=$(cat "$dir/version")
	part=$dir/packages.part
	rm -rf "$part" "$dir/debs"
	set -- "linux-headers-$release=$version"
	# The image itself is an empty package: its kernel and modules are dependencies of the same
	# version.
	[ "$(basename "$dir")" != 7.2 ] || set -- "$@" "linux-binary-$release=$version" "linux-modules-$release=$version"
	fetch_debs "$dir/debs" "$@"
	mkdir -p "$part"
	for deb in "$dir"/debs/*.deb; do in_root dpkg-deb -x "$deb" "$part"; done
	rm -rf "$dir/debs"
	mv "$part" "$dir/packages"
}

unpack_source() { # SERIES
	local series=$1 dir=$KDAPL_CACHE/$1 part
	part=$dir/source.part
	rm -rf "$part" "$dir/debs"
	fetch_debs "$dir/debs" "linux-source-$series=$(cat "$dir/version")"
	mkdir -p "$part"
	in_root dpkg-deb -x "$dir"/debs/linux-source-*.deb "$dir/debs"
	in_root tar -C "$part" --strip-components=1 -xf "$dir/debs/usr/src/linux-source-$series.tar.xz"
	rm -rf "$dir/debs"
	mv "$part" "$dir/source"
}

