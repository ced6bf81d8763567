# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash

# Options of the NVMe drivers that are built beside a kernel without them. None of them changes a
# structure of the kernel itself.
nvme_modules=(NVME_CORE NVME_FABRICS NVME_RDMA NVME_TARGET NVME_TARGET_RDMA BLK_DEV_NULL_BLK)
nvme_switches=(NVME_MULTIPATH SGL_ALLOC)

# Prints the arguments of make for these drivers, and for transports that use them, one a line.
nvme_args() { # KERNEL
	local option flags=''
	[ "$1" = debug ] || return 0
	for option in "${nvme_modules[@]}"; do
		echo "CONFIG_$option=m"
		flags+=" -DCONFIG_${option}_MODULE=1"
	done
	for option in "${nvme_switches[@]}"; do
		echo "CONFIG_$option=y"
		flags+=" -DCONFIG_$option=1"
	done
	echo "KCFLAGS=${flags# }"
}

# Prints the tables of symbols of the drivers.
nvme_symbols() { # KERNEL
	[ "$1" = debug ] || return 0
	echo "$KDAPL_CACHE/debug/nvme/sgl/Module.symvers" "$KDAPL_CACHE/debug/nvme/nvme/Module.symvers"
}
