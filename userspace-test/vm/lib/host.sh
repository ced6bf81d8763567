# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
# What the host must offer. Only mmdebstrap is ever installed on it: all else lives in the build root.

need_debian() {
	local id version
	# shellcheck disable=SC1091
	id=$(. /etc/os-release && echo "${ID:-unknown}")
	# shellcheck disable=SC1091
	version=$(. /etc/os-release && echo "${VERSION_ID:-unknown}")
	case "$id-$version" in
	debian-12 | debian-13) ;;
	*) die "This machine runs $id $version; the build root is made on Debian 12 or 13 only." \
		"On another distribution whose kernel ships its Rust metadata, use: make KDIR=/path/to/kernel/build" ;;
	esac
	[ "$(uname -m)" = x86_64 ] || die "This machine is $(uname -m); only x86_64 is supported."
}

need_mmdebstrap() {
	command -v mmdebstrap >/dev/null && return
	step "installing mmdebstrap on this machine" install_mmdebstrap
}

install_mmdebstrap() {
	apt-get update
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mmdebstrap debian-archive-keyring
}

# What it mounts into the new root (/proc, /sys) vanishes with it, however it dies: a root left half made can be
# deleted without deleting anything through such a mount.
make_with_mmdebstrap() { # OPTION...
	unshare --mount --propagation private -- mmdebstrap --mode=root --components=main \
		--aptopt="$KDAPL_CACHE/apt-access.conf" --aptopt='APT::Install-Recommends "false"' "$@"
}

# The mirror that this machine already uses: it is near, and it is the one that is allowed.
debian_mirror() {
	local uri
	# shellcheck disable=SC2016 # apt expands these names
	uri=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 2>/dev/null |
		awk '$1 == "Debian" && $2 ~ /^https?:/ { print $2; exit }')
	echo "${uri:-http://deb.debian.org/debian}"
}

# The machine's way to its mirror (proxies, certificates, retries), as apt configuration for the build root.
apt_access_settings() {
	apt-config dump | grep -E '^Acquire::(http|https|Retries|Check-Valid-Until|Check-Date|By-Hash)' | grep -v '""' || true
}
