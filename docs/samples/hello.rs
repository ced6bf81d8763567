// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The Rust program of README.md, which has all that follows the next line.
// ---
use libkdapl::{Buffer, Close, EpState, EvdFlags, Ia, Privileges};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let ia = Ia::open(&arguments.next().ok_or("which device?")?, 8)?;
    let address = arguments.next().ok_or("which address?")?.parse()?;
    let evd = ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, 16)?;
    let pz = ia.create_pz()?;
    let ep = ia.create_ep(&pz, &evd, &evd, &evd, None)?;
    let memory = ia.register(&pz, Buffer::new(4096)?, Privileges::LOCAL_READ)?;
    ep.connect(address, 7176, None, b"")?;
    println!("{}", evd.wait(None, 1)?.0); // ESTABLISHED
    assert_eq!(ep.status()?.state, EpState::Connected, "nobody listens");
    memory.buffer().write(0, b"hello");
    ep.post_send(&[memory.segment(0, 5)], 1, Default::default())?;
    println!("{}", evd.wait(None, 1)?.0); // the send is complete
    ep.disconnect(Close::Graceful)?;
    println!("{}", evd.wait(None, 1)?.0); // DISCONNECTED
    Ok(())
}
