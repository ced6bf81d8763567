# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
# Requirements of the host. Only mmdebstrap is installed on it: all other tools are in the build
# root.

need_debian() {
	local id version
	# shellcheck disable=SC1091
	id=$(. /etc/os-release && echo "${ID:-unknown}")
	# shellcheck disable=SC1091
	version=$(. /etc/os-release && echo "${VERSION_ID:-unknown}")
	case "$id-$version" in
	debian-12 | debian-13) ;;
	*) die "This machine runs $id $version; the build root needs Debian 12 or 13." \
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

# Runs mmdebstrap. Its mounts in the new root (/proc, /sys) vanish with it, even if it is killed. So
# an incomplete root can be deleted without deleting files through a mount.
make_with_mmdebstrap() { # OPTION...
	unshare --mount --propagation private -- mmdebstrap --mode=root --components=main \
		--aptopt="$KDAPL_CACHE/apt-access.conf" --aptopt='APT::Install-Recommends "false"' "$@"
}

# Prints the mirror that this machine already uses, which is near and permitted.
debian_mirror() {
	local uri
	# shellcheck disable=SC2016 # apt expands these names
	uri=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 2>/dev/null |
		awk '$1 == "Debian" && $2 ~ /^https?:/ { print $2; exit }')
	echo "${uri:-http://deb.debian.org/debian}"
}

# Prints the machine's network settings of apt (proxies, certificates, retries) for the build root.
apt_access_settings() {
	apt-config dump | grep -E '^Acquire::(http|https|Retries|Check-Valid-Until|Check-Date|By-Hash)' | grep -v '""' || true
}
