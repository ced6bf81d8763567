# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash disable=SC2034 # what is set here is used by those who source this
# What every script here shares: where things lie, how a step reports, how it fails.

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
checkout=$(cd "$vm_dir/../.." && pwd -P)
KDAPL_CACHE=${KDAPL_CACHE:-${HOME:-/root}/.cache/kdapl}
root_dir=$KDAPL_CACHE/root
log_dir=$KDAPL_CACHE/log
export KDAPL_CACHE
# Messages of tools are looked into, and are the same everywhere; who became root by su may lack the sbin folders.
export LC_ALL=C.UTF-8 PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
# The front door is a make: the makes inside must not take its flags and job server for theirs.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

# Progress goes to stderr: stdout belongs to the command that a person asked for.
say() { printf 'kdapl: %s\n' "$*" >&2; }

die() {
	printf 'kdapl: error: %s\n' "$1" >&2
	shift
	for line in "$@"; do printf '       %s\n' "$line" >&2; done
	exit 1
}

# Prints the comment block at the head of a script, which is its help text.
show_help() { sed -n '/^# Usage:/,/^[^#]/{/^#/!d;s/^# \{0,1\}//;p}' "$1"; }

# What follows an option: smp=$(number_of "$@").
value_of() { # OPTION [VALUE]...
	case ${2:-} in
	'' | --*) die "$1 wants a value." "See: $0 --help" ;;
	esac
	printf '%s\n' "$2"
}

number_of() { # OPTION [VALUE]...
	local value
	value=$(value_of "$@") || exit
	[[ $value =~ ^[1-9][0-9]*$ ]] || die "$1 wants a number above 0, not '$value'."
	echo "$value"
}

# Runs "$@" as one step: a line when it starts, elapsed time when it ends, the log's tail if it fails.
# The heartbeat every minute tells a person (and a CI that watches for silence) that it still lives.
# Its own variables are called step_*, since bash shows a function's locals to all that it calls.
step() {
	local step_title=$1 step_name step_start step_log step_rc step_pulse
	shift
	step_name=$(tr -cs 'a-zA-Z0-9.\n' - <<<"$step_title")
	mkdir -p "$log_dir"
	step_log=$log_dir/$step_name.log
	step_start=$SECONDS
	say "$step_title ..."
	(
		# Ends by itself when its parent does, however that dies.
		# The sleep outlives it, so it must hold neither our output nor a lock.
		[ -z "${lock_fd:-}" ] || exec {lock_fd}>&-
		while sleep 60 >/dev/null 2>&1 && kill -0 "$$" 2>/dev/null; do
			say "  still at it: $step_title ($((SECONDS - step_start)) s; $(wc -l <"$step_log") lines in $step_log)"
		done
	) &
	step_pulse=$!
	# Not `"$@" || step_rc=$?`: that would switch off `set -e` within the step.
	set +e
	(
		set -e
		"$@"
	) >"$step_log" 2>&1 </dev/null
	step_rc=$?
	set -e
	kill "$step_pulse" 2>/dev/null || true
	wait "$step_pulse" 2>/dev/null || true
	if [ "$step_rc" != 0 ]; then
		say "  failed after $((SECONDS - step_start)) s; the last lines of $step_log:"
		tail -n 15 "$step_log" | sed 's/^/    | /' >&2
		explain_failure "$step_log"
		die "$step_title: failed (status $step_rc)."
	fi
	say "  done: $step_title ($((SECONDS - step_start)) s)"
}

# Runs "$@" as it is; if it fails for one of the commonest reasons, a sentence says so.
explained() {
	local log rc
	log=$(mktemp)
	set +e
	(
		set -e
		"$@"
	) 2>&1 | tee "$log"
	rc=${PIPESTATUS[0]}
	set -e
	# In a subshell, which alone dies of it: the status is the command's.
	[ "$rc" = 0 ] || (explain_failure "$log") || true
	rm -f "$log"
	return "$rc"
}

# Turns the two commonest reasons into one sentence.
explain_failure() { # LOG
	local free folder
	# The fullest of the disks that are written to. On a full one the log may have had no room for the complaint.
	read -r free folder < <(
		for folder in "$checkout/build" "$KDAPL_CACHE" "${TMPDIR:-/tmp}"; do
			[ ! -d "$folder" ] || echo "$(df -Pm "$folder" | awk 'NR == 2 { print $4 }') $folder"
		done | sort -n
	)
	if grep -qE "Could(n't| not) (resolve|connect)|Failed to connect|Unable to connect|CONNECT tunnel failed" "$1" ||
		grep -qE 'Temporary failure|Network is unreachable|Connection timed out' "$1"; then
		die "A download server cannot be reached." \
			"Check the network (and http_proxy), then run the same command again: it goes on where it stopped."
	fi
	if [ "$free" = 0 ] || grep -q 'No space left on device' "$1"; then
		die "The disk that holds $folder is full." \
			"Free some space (KDAPL_CACHE may name a folder on another disk), and run the same command again."
	fi
}

need_space() { # MEGABYTES WHAT-FOR
	local free
	free=$(df -Pm "$KDAPL_CACHE" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$1" ] || die "$2 needs $1 MB in $KDAPL_CACHE, only $free MB are free." \
		"Free some space, or set KDAPL_CACHE to a folder on another disk."
}

need_root() { need_root_to "make a build root and mount folders into it"; }

need_root_to() { # WHAT
	[ "$(id -u)" = 0 ] || die "This needs root, to $1." "Run it with sudo."
}

# Comes before anything else that writes to the cache. Two makes at once must not build the same thing twice, nor one on top of the other.
take_lock() { # NAME
	mkdir -p "$KDAPL_CACHE/lock" 2>/dev/null ||
		die "The cache folder $KDAPL_CACHE cannot be made or written to." "Set KDAPL_CACHE to another folder."
	exec {lock_fd}>"$KDAPL_CACHE/lock/$1"
	flock -n "$lock_fd" && return
	say "waiting for another run that is making: $1"
	flock "$lock_fd"
}

release_lock() { exec {lock_fd}>&-; }

in_root() { "$vm_dir/in-root" "$@"; }
