# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Lists, as bindgen arguments, every struct and union that the kernel's own
# bindings define in full: kdapl_bindings takes those from there.
#
# A body that starts with `_unused: [u8; 0` is a forward declaration and one
# with `_address: u8` a placeholder: neither is complete, so bindgen makes its
# own. Names are joined in chunks, because one argument has a length limit.

/^ *pub (struct|union) [A-Za-z0-9_]+/ {
	name = $3
	sub(/[^A-Za-z0-9_].*/, "", name)
	if ((getline body) <= 0)
		exit 1
	if (body !~ /(_unused: \[u8; 0|_address: u8)/)
		chunk = chunk (chunk == "" ? "" : "|") name
	if (length(chunk) > 60000)
		flush_chunk()
}

END {
	flush_chunk()
}

function flush_chunk() {
	if (chunk != "")
		print "--blocklist-type\n" chunk
	chunk = ""
}
