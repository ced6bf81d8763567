# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Prints, as bindgen arguments, every struct and union that the kernel's own
# bindings define in full: kdapl_bindings re-exports those.
#
# A body that starts with `_unused: [u8; 0` is a forward declaration, and one
# with `_address: u8` is a placeholder. Neither is complete, so bindgen has to
# generate the type. Names are joined in chunks, because the length of one
# argument is limited.

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
