# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # vm_dir and checkout come from common.sh
# Adds the files of one run to the guest's tree: /init, the command, the module, the programs, the
# caller's files.
. "$vm_dir/lib/dat-conf.sh"

stage_run() { # TREE KERNEL MODULE(yes|no) COMMAND...
	local tree=$1 kernel=$2 module=$3 file
	shift 3
	mkdir -p "$tree"/etc/kdapl "$tree"/usr/bin "$tree"/usr/lib/modules/kdapl
	install -m 755 "$vm_dir/init" "$tree/init"
	printf '%q ' "$@" >"$tree/etc/kdapl/command"
	for file in "$checkout"/build/user/bin/*; do
		[ ! -e "$file" ] || cp -L "$file" "$tree/usr/bin/"
	done
	for file in "$checkout"/build/user/lib/*; do
		[ ! -e "$file" ] || install -D "$file" "$tree/usr/lib/x86_64-linux-gnu/$(basename "$file")"
	done
	stage_dat "$tree"
	[ "$module" = no ] || stage_module "$tree" "$kernel"
}

# Adds Debian's uDAPL. dat.conf has our provider as kdapl0, and as ofa0 with the qualifiers of
# Debian's own. dat-ofa.conf has Debian's own provider as ofa0.
stage_dat() { # TREE
	local library=libkdapl_provider.so
	[ -e "$KDAPL_CACHE/dat/.complete" ] || return 0
	cp -a "$KDAPL_CACHE/dat/tree/." "$1/"
	mkdir -p "$1/etc"
	{ dat_conf_lines kdapl0 $library rxe0 && dat_conf_lines ofa0 $library 'rxe0 qualifiers=daplofa'; } >"$1/etc/dat.conf"
	echo 'ofa0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "dummy0 0" ""' >"$1/etc/dat-ofa.conf"
}

stage_module() { # TREE KERNEL
	local built module
	built=build/$(basename "$2")
	if [ ! -e "$checkout/$built/kdapl.ko" ]; then
		case $2 in
		stock | debug | uml | kcsan) die "There is no module in $built yet." "Run: make KERNEL=$2 user module, or give --no-module." ;;
		*) die "There is no module in $built, the folder for $2." \
			"Build it (make KDIR=/path/to/its/build/folder), copy build/here/kdapl.ko there, or give --no-module." ;;
		esac
	fi
	# The guest does not need debugging information.
	for module in "$checkout/$built"/kdapl.ko "$checkout/$built"/docs/samples/*.ko "$checkout/$built"/userspace-test/tests/kernel/*.ko \
		"$checkout/$built"/nvme/*/*.ko "$checkout/$built"/bmi/kernel/*.ko; do
		[ ! -e "$module" ] || in_root strip --strip-debug -o "$1/usr/lib/modules/kdapl/$(basename "$module")" "$module"
	done
}

# Adds modules of Debian's kernel that the image does not have.
stage_more_modules() { # TREE MODULE...
	local tree=$1 release modules file
	shift
	release=$(cat "$KDAPL_CACHE/7.2/release")
	modules=usr/lib/modules/$release
	mkdir -p "$tree/$modules"
	for file in "$@"; do
		in_root xz -dc "$KDAPL_CACHE/7.2/packages/$modules/kernel/$file.ko.xz" \
			>"$tree/$modules/$(basename "$file").ko" </dev/null
	done
}

# Adds the programs for NVMe over Fabrics, and the kernel's modules of it.
stage_nvme() { # TREE KERNEL
	local tree=$1 modules
	cp -a "$KDAPL_CACHE/nvme/tree/." "$tree/"
	[ "$2" = debug ] || return 0
	modules=$tree/usr/lib/modules
	rm -rf "${modules:?}/$(cat "$KDAPL_CACHE/7.2/release")"
	modules=$modules/$(cat "$KDAPL_CACHE/debug/include/config/kernel.release")
	mkdir -p "$modules"
	# modprobe finds what is built in by the list.
	cp "$KDAPL_CACHE"/debug/nvme/modules/*.ko "$KDAPL_CACHE"/debug/modules.{order,builtin,builtin.modinfo} "$modules/"
}

stage_parameters() { # TREE NAME=VALUE...
	local tree=$1 parameter
	shift
	for parameter in "$@"; do
		[[ $parameter =~ ^[a-z_]+=[0-9]+$ ]] || die "--parameter needs NAME=VALUE with a number, not '$parameter'."
		printf '%s\n' "$parameter" >>"$tree/etc/kdapl/parameters"
	done
}

stage_files() { # TREE HOST:GUEST...
	local tree=$1 pair guest
	shift
	for pair in "$@"; do
		guest=${pair#*:}
		[[ $pair == *:/* ]] || die "--file needs HOST:GUEST with an absolute GUEST, not '$pair'."
		[ -e "${pair%%:*}" ] || die "--file: there is no ${pair%%:*}."
		# In the guest these are links into /usr. A folder in their place would hide its
		# files.
		case $guest in /bin/* | /sbin/* | /lib/* | /lib64/*) guest=/usr$guest ;; esac
		mkdir -p "$tree$(dirname "$guest")"
		cp -aL "${pair%%:*}" "$tree$guest"
	done
}
