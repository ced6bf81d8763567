# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # the names are those of run
# Derives an exit status from the console's text.

# Messages that a healthy kernel never prints. A stack dump alone is not one: fault injection prints
# one for each fault.
splat='BUG:|WARNING:|kernel BUG at|Oops|KASAN|UBSAN|KFENCE|ODEBUG|general protection fault|Kernel panic'
splat="$splat|possible .* detected|suspicious RCU|inconsistent lock state|INFO: (task|rcu|trying to register)|rcu: INFO|blocked for more than"
splat="$splat|refcount_t:|unreferenced object|sleeping function called|scheduling while atomic|list_(add|del) corruption|soft lockup"
splat="$splat|(EXPECTATION|ASSERTION) FAILED at|kdapl-guest: (rmmod failed|kmemleak has given up)"

# Removes the times of messages, and known complaints about other code, each from its headline to
# the end of its stack:
#
#   - User-mode Linux: a starting second processor frees memory before RCU knows the processor.
#   - siw takes the callback lock of a socket with soft interrupts on. lockdep reports it when a siw
#     listener or connection goes, and reports nothing else from then on.
#   - Debug kernel: siw drops the last reference to a region, and so unpins its pages, in the soft
#     interrupt of a received packet.
#   - siw's objects for a request, including iw_cm's copy of the private data, leak if the listener
#     goes at that moment. A leaked id of ours would have its own report with another allocation.
#   - siw uses its own end of a connection after it has freed it: when TCP drops a connection whose
#     listener has just gone, and when a peer answers before siw_connect() has returned.
#   - siw's worker reads from a socket without its lock.
#   - A failed test of kdapl_ktest: kdapl-selftest reports it, unless it repeats the test.
#   - Soft-RoCE's rxe_resp_queue_pkt() queues a packet, which has its only reference to the queue
#     pair, and then starts the queue pair's task. If the queue pair is reset and destroyed between
#     the two, the task is freed. Debian's kernel has both functions in rxe_xmit_packet().
#   - Soft-RoCE takes a repeated acknowledgement amid the answers to an RDMA read for the end of the
#     read: see docs/drivers.md, "Soft-RoCE ends an RDMA read too early".
without_known_complaints() {
	perl -0pe '
		s/^\[ *\d+\.\d{6}\] //mg;
		s/^.*EXPECTATION FAILED at ktest\.c:\d+\n//mg;
		s/^WARNING: suspicious RCU usage\n.*\n-+\nkernel\/rcu\/tree.c:\d+ Callback enqueued on offline CPU!!\n(?:.*\n)*? \[<60001000>\].*\n//mg;
		s{^(WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected\n((?:(?!Call Trace:).*\n)*)Call Trace:\n((?: \[<[0-9a-f]+>\].*\n)+|(?:(?! </TASK>).*\n)* </TASK>\n))}
			{my ($all, $text, $stack) = ($1, $2, $3); $text =~ /\(clock-AF_INET6?\)/ && $stack =~ / siw_/ ? "" : $all}gme;
		s{^(WARNING: possible irq lock inversion dependency detected\n((?:(?!Call Trace:).*\n)*)Call Trace:\n(?:(?: \[<[0-9a-f]+>\].*\n)+|(?:(?! </TASK>).*\n)* </TASK>\n))}
			{my ($all, $text) = ($1, $2); $text =~ /changed the state of lock:\n\S+ \(clock-AF_INET6?\).*, at: siw_/ ? "" : $all}gme;
		s{^(WARNING: inconsistent lock state\n(?:(?!Call Trace:).*\n)*Call Trace:\n(?:(?! </TASK>).*\n)* </TASK>\n)}
			{my $all = $1; $all =~ /takes:\n\S+ \(clock-AF_INET6?\).*\n.SOFTIRQ-ON-R. state was registered at:\n(?:  .*\n)*?  siw_/ ? "" : $all}gme;
		s{^(WARNING: include\/net\/sock\.h:\d+ at \S+, .*\n(?:(?!Call Trace:|BUG:|WARNING:).*\n)*Call Trace:\n(?:(?! </TASK>|BUG:|WARNING:).*\n)* </TASK>\n)}
			{my $all = $1; $all =~ /^ siw_cm_work_handler\+/m && $all !~ /\[kdapl\]/ ? "" : $all}gme;
		s{^(BUG: sleeping function called from invalid context at \S+\n(?:(?!Call Trace:).*\n)*Call Trace:\n(?:(?! </TASK>|BUG:|WARNING:).*\n)* </TASK>\n)}
			{my $all = $1; $all =~ /^ ib_umem_release\+\S+\n siw_mem_put\+/m ? "" : $all}gme;
		s{^(unreferenced object \S+ \(size \d+\):\n(?:  .*\n)+)}
			{my $all = $1; $all =~ /^    siw_cm_work_handler\+/m ? "" : $all}gme;
		s{^(=+\nBUG: KASAN: slab-use-after-free in (?:.*\n)*?=+\n)}
			{my $all = $1; $all =~ /^Allocated by .*\n(?: .*\n)*? siw_cep_alloc\+/m && $all =~ /^Freed by .*\n(?: .*\n)*? siw_\w+\+/m
			|| $all =~ /^ (?:rxe_sched_task|_raw_spin_unlock_irqrestore)\+.*\n(?: \? .*\n)* rxe_rcv\+(?:.*\n)*?Allocated by .*\n(?: .*\n)*? create_qp\+/m ? "" : $all}gme;
		s{^(WARNING: drivers\/infiniband\/sw\/rxe\/rxe_task\.c:\d+ at rxe_sched_task\+.*\n(?:(?!Call Trace:|BUG:|WARNING:).*\n)*Call Trace:\n(?:(?: \[<[0-9a-f]+>\].*\n)+|(?:(?! </TASK>|BUG:|WARNING:).*\n)* </TASK>\n))}
			{my $all = $1; $all =~ /^ (?:<TASK>\n |\[<[0-9a-f]+>\] \? )rxe_(?:rcv|resp_queue_pkt|xmit_packet)\+/m && $all !~ /rxe_post_|\[kdapl\]/ ? "" : $all}gme;
		s{^WARNING: drivers\/infiniband\/sw\/rxe\/rxe_comp\.c:\d+ at rxe_completer\+.*\n(?:(?!Call Trace:|BUG:|WARNING:).*\n)*Call Trace:\n(?:(?: \[<[0-9a-f]+>\].*\n)+|(?:(?! </TASK>|BUG:|WARNING:).*\n)* </TASK>\n)}{}gm;
	'
}

# Prints the console without known complaints, and lists races of others in a file.
judged() { # LIST
	tr -d '\r' <"$console" | without_known_complaints | "$vm_dir/lib/races" "$1"
}

# Ends a guest that goes on after warnings at its first unknown one. Waits until a second check sees
# it, too: the first may have seen a part of a known one.
watch_for_splats() { # FILE-WITH-PID
	local before='' now
	while sleep 10; do
		now=$(judged "$console.watched" | grep -m 1 -E "$splat" || true)
		if [ -n "$now" ] && [ "$now" = "$before" ]; then
			kill "$(<"$1")"
			return
		fi
		before=$now
	done
}

judge() { # STATUS-OF-BOOT: ends this script
	local status kept=$checkout/build/vm/$kernel-console.log
	tr -d '\r' <"$console" >"$console.text"
	status=$(sed -n 's/.*kdapl-guest: exit status \([0-9]*\)$/\1/p' "$console.text" | tail -n 1)
	judged "$console.races" >"$console.judged"
	tell_races_of_others "$console.races"
	if grep -qE "$splat" "$console.judged"; then
		kept=$(keep "$kept" own)
		say "the kernel complained:"
		grep -m 1 -A 40 -B 2 -E "$splat" "$console.judged" | sed 's/^/    | /' >&2
		[ -n "$status" ] || ! grep -q 'panic_on_warn set' "$console.text" ||
			say "the guest ended at this warning, as configured (--no-panic-on-warn lets it continue)"
		say "the whole console: $kept"
		exit 99
	fi
	if [ "$1" = 124 ] || [ "$1" = 137 ]; then
		kept=$(keep "$kept" own)
		die_with 97 "The guest was stopped: $timeout seconds were over (see --timeout)." "the console: $kept"
	fi
	if [ -z "$status" ]; then
		kept=$(keep "$kept" own)
		tail -n 20 "$console.text" | sed 's/^/    | /' >&2
		die_with 98 "The guest ended before its command did." "the console: $kept"
	fi
	keep "$kept" >/dev/null
	exit "$status"
}

# Lists the races in the kernel's own code, which only its developers can judge.
tell_races_of_others() { # LIST
	[ -s "$1" ] || return 0
	say "data races of the kernel's own code, which the verdict ignores:"
	sort "$1" | uniq -c | sort -rn | sed 's/^/    | /' >&2
}

# Stores the console. The latest has a fixed name. That of a failure also has a unique name, since
# several guests may run at once.
keep() { # FILE [own]
	local file=$1
	[ "${2:-}" != own ] || file=${1%.log}.$$.log
	rm -f "$file"
	cp "$console.text" "$file"
	[ "$file" = "$1" ] || ln -sfn "$(basename "$file")" "$1"
	echo "$file"
}

die_with() { # STATUS MESSAGE...
	local status=$1
	shift
	(die "$@") || exit "$status"
}
