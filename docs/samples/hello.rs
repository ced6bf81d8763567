// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The program of README.md, which has all that follows the next line.
// ---
use libkdapl::{Buffer, Close, EvdFlags, Event, Ia, Privileges};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1); // DEVICE [ADDRESS]; without ADDRESS it serves
    let ia = Ia::open(&arguments.next().ok_or("which device?")?, 8)?;
    let events = EvdFlags::DTO | EvdFlags::CONNECTION | EvdFlags::CR;
    let evd = ia.create_evd(events, 16)?;
    let pz = ia.create_pz()?;
    let ep = ia.create_ep(&pz, &evd, &evd, &evd, None)?;
    let memory = ia.register(&pz, Buffer::new(4096)?, Privileges::ALL)?;
    if let Some(address) = arguments.next() {
        ep.connect(address.parse()?, 7176, None, b"")?;
        println!("{}", evd.wait(None, 1)?.0); // ESTABLISHED
        memory.buffer().write(0, b"hello");
        ep.post_send(&[memory.segment(0, 5)], 1, Default::default())?;
        println!("{}", evd.wait(None, 1)?.0); // the send is complete
        ep.disconnect(Close::Graceful)?;
    } else {
        ep.post_recv(&[memory.segment(0, 4096)], 1, Default::default())?;
        let _psp = ia.create_psp(7176, &evd)?;
        if let Event::ConnectionRequest { mut cr, .. } = evd.wait(None, 1)?.0 {
            cr.accept(&ep, b"")?;
        }
        println!("{}\n{}", evd.wait(None, 1)?.0, evd.wait(None, 1)?.0); // ESTABLISHED, a receive
    }
    println!("{}", evd.wait(None, 1)?.0); // DISCONNECTED
    Ok(())
}
