// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest ping`: the round-trip time of a message. Both sides sleep while they wait.

use crate::cli::PingArgs;
use crate::client::{disconnect, Target};
use crate::progress::Progress;
use crate::protocol::{Mode, Request};
use crate::report::{self, grouped, latency_table, Latency, Times};
use crate::side::{successful, Plan, Side, QUIET_SENDS};
use crate::{pattern, switches};
use anyhow::{ensure, Result};
use libkdapl::{CompletionFlags, Dto};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Number of receives of each side: one for the message in flight, and those of messages whose
/// send completions may not have been taken.
pub const SLOTS: u32 = 2 * QUIET_SENDS;

/// Result of the measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub server: String,
    pub device: String,
    pub iterations: u64,
    pub size: u32,
    pub poll: bool,
    pub pause_us: u32,
    /// Round-trip times in microseconds.
    pub round_trip_us: Latency,
    /// Mean time of an iteration: the round trip, the comparison of the reply, the post of its
    /// receive, and pauses.
    pub whole_us: f64,
    pub voluntary_switches: u64,
    pub switches_per_wakeup: f64,
}

pub fn run(args: &PingArgs, as_json: bool) -> Result<()> {
    let target = Target::open(&args.client)?;
    let outcome = measure(&target, args)?;
    if as_json {
        return report::json(&outcome);
    }
    println!(
        "{} round trips of {} bytes from {} to {}, {}; every reply was correct.",
        grouped(outcome.iterations),
        outcome.size,
        outcome.device,
        outcome.server,
        if outcome.poll { "polling" } else { "waiting" },
    );
    println!("{}", latency_table(&[("round trip", &outcome.round_trip_us)]));
    if !outcome.poll {
        println!(
            "context switches per wake-up: {:.2} (1 if the thread has to sleep, else 0)",
            outcome.switches_per_wakeup
        );
    }
    Ok(())
}

/// Measures round trips on an open device.
pub fn measure(target: &Target, args: &PingArgs) -> Result<Outcome> {
    let size = args.size as usize;
    let plan = Plan {
        receives: SLOTS,
        requests: SLOTS,
        memory: (SLOTS as usize + 1) * size,
        one_queue: false,
        poll: args.poll,
        record: false,
        timeout: target.timeout,
    };
    let request = Request {
        mode: Mode::Echo,
        poll: args.poll,
        depth: SLOTS,
        message_size: args.size,
        region_size: 0,
        pause_us: args.pause,
        run: fastrand::u64(..),
        connections: 1,
        messages: 0,
    };
    let (mut side, _) = target.connect(&plan, &request, |side| {
        (0..u64::from(SLOTS)).try_for_each(|slot| receive_into(side, slot, size))
    })?;
    let start = Instant::now();
    let (times, switched) = round_trips(&mut side, args)?;
    let whole = start.elapsed();
    disconnect(&mut side)?;
    Ok(Outcome {
        server: target.address.to_string(),
        device: target.device.clone(),
        iterations: args.iterations,
        size: args.size,
        poll: args.poll,
        pause_us: args.pause,
        round_trip_us: times.latency(),
        whole_us: whole.as_secs_f64() * 1e6 / args.iterations as f64,
        voluntary_switches: switched,
        switches_per_wakeup: switched as f64 / args.iterations as f64,
    })
}

fn round_trips(side: &mut Side, args: &PingArgs) -> Result<(Times, u64)> {
    let size = args.size as usize;
    let outgoing = SLOTS as usize * size;
    side.lmr.buffer().write(outgoing, &pattern::bytes(0, size));
    let mut message = side.lmr.buffer().to_vec(outgoing, size);
    let mut answer = vec![0; size];
    let progress = Progress::new("ping", args.iterations);
    let mut times = Times::new()?;
    let mut pauses = 0;
    let mut used = 0;
    let before = switches::of_this_thread();
    for number in 0..args.iterations {
        pauses += pause(args.pause);
        // The number at the start makes each message differ from the previous one.
        message[..8].copy_from_slice(&number.to_le_bytes());
        side.lmr.buffer().write(outgoing, &message[..8]);
        let start = Instant::now();
        let (flags, _) = side.quietly()?;
        // Post the receive that the last reply has consumed, and send the message.
        let send = [side.lmr.segment(outgoing, size)];
        let receive = [side.lmr.segment(used as usize * size, size)];
        let dtos = [
            Dto::recv(&receive, used, CompletionFlags::default()),
            Dto::send(&send, number, flags),
        ];
        let event = side.submit(&dtos[usize::from(number == 0)..])?;
        times.add(start.elapsed());
        let dto = successful(&event)?;
        side.lmr.buffer().read(dto.cookie as usize * size, &mut answer);
        ensure!(dto.length == size as u64, "received {} of {size} bytes", dto.length);
        ensure!(answer == message, "the reply to message {number} is wrong");
        used = dto.cookie;
        if number % 256 == 255 {
            progress.add(256);
        }
    }
    let switched = switches::of_this_thread().saturating_sub(before);
    Ok((times, switched.saturating_sub(pauses)))
}

fn receive_into(side: &Side, slot: u64, size: usize) -> Result<()> {
    side.receive(side.lmr.segment(slot as usize * size, size), slot)
}

/// Sleeps or spins for a random time of up to `us` microseconds. Returns the number of times it
/// slept.
pub fn pause(us: u32) -> u64 {
    if us == 0 {
        return 0;
    }
    let time = Duration::from_micros(fastrand::u32(..=us).into());
    if fastrand::bool() {
        std::thread::sleep(time);
        return 1;
    }
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    0
}
