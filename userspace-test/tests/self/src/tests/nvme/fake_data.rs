// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What the [controller of this process](super::fake) says of itself.

use crate::nvme::NQN;

/// Identifier of the controller.
pub(super) const CNTLID: u16 = 0x2a;

/// Bytes of a block, as a power of two.
const BLOCK_SHIFT: u8 = 9;

/// Number of blocks of the disk.
const BLOCKS: u64 = 64 << 11;

/// Entries of a queue, less one.
const LAST_ENTRY: u64 = 31;

/// Bytes of the structures of Identify.
const SIZE: usize = 4096;

fn put(data: &mut [u8; SIZE], at: usize, bytes: &[u8]) {
    data[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Returns the structure of Identify by its number, if the controller has it.
pub(super) fn identify(structure: u8, namespace: u32) -> Option<[u8; SIZE]> {
    let mut data = [0; SIZE];
    match structure {
        0 => fill_namespace(&mut data),
        1 => fill_controller(&mut data),
        // The namespaces above the one of the command.
        2 if namespace == 0 => data[0] = 1,
        2 => {}
        _ => return None,
    }
    Some(data)
}

fn fill_namespace(data: &mut [u8; SIZE]) {
    for place in [0, 8, 16] {
        put(data, place, &BLOCKS.to_le_bytes());
    }
    data[130] = BLOCK_SHIFT;
}

fn fill_controller(data: &mut [u8; SIZE]) {
    data[4..72].fill(b' ');
    put(data, 4, b"1");
    put(data, 24, b"kdapltest");
    // MDTS: two pages.
    data[77] = 1;
    put(data, 78, &CNTLID.to_le_bytes());
    put(data, 80, &VERSION.to_le_bytes());
    // OAES: namespaces that change.
    put(data, 92, &0x100_u32.to_le_bytes());
    // KAS, in units of 100 ms.
    data[320] = 10;
    // SQES, CQES, MAXCMD, NN.
    put(data, 512, &[0x66, 0x44, 32, 0, 1]);
    // SGLs: supported, and keyed ones too.
    data[536] = 5;
    put(data, 768, NQN.as_bytes());
    // IOCCSZ, IORCSZ in units of 16 bytes, and one descriptor.
    data[1792] = 4;
    data[1796] = 1;
    data[1803] = 1;
}

/// Version 1.2.1, the first of Fabrics.
const VERSION: u32 = 0x1_0201;

/// Returns a property, by its offset. `settings` is the value of CC.
pub(super) fn property(offset: u32, settings: u32) -> u64 {
    const CAP: u32 = 0;
    const VS: u32 = 8;
    const CC: u32 = 0x14;
    const CSTS: u32 = 0x1c;
    const IS_SHUT_DOWN: u64 = 2 << 2;
    match offset {
        // MQES, CQR, TO in units of 500 ms, and the NVM command set.
        CAP => LAST_ENTRY | (1 << 16) | (20 << 24) | (1 << 37),
        VS => VERSION.into(),
        CC => settings.into(),
        CSTS => {
            let is_shut_down = settings & 0xc000 != 0;
            u64::from(settings & 1) | if is_shut_down { IS_SHUT_DOWN } else { 0 }
        }
        _ => 0,
    }
}
