// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest ping`: the round-trip time of a message. Both sides sleep while they wait.

use crate::cli::PingArgs;
use crate::client::{finish, Target};
use crate::pattern;
use crate::protocol::{Mode, Request};
use crate::side::{successful, Plan, Side, QUIET_SENDS};
use anyhow::{ensure, Result};
use libkdapl::{CompletionFlags, Dto, Event};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, Instant};
use toolkit::histogram::{histogram_table, Bucket};
use toolkit::limit::Limit;
use toolkit::output::say;
use toolkit::plot::{Svg, Texts};
use toolkit::progress::Progress;
use toolkit::report::{grouped, latency_table, Latency, Times};
use toolkit::{output, stop, switches};

/// Number of receives of each side: one for the message in flight, and those of messages whose
/// send completions may not have been taken.
pub const SLOTS: u32 = 2 * QUIET_SENDS;

/// Result of the measurement.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Outcome {
    pub server: String,
    pub device: String,
    /// Number of round trips that were measured.
    pub iterations: u64,
    /// A signal ended the measurement early.
    pub stopped: bool,
    pub size: u32,
    pub poll: bool,
    pub pause_us: u32,
    /// Round-trip times in microseconds.
    pub round_trip_us: Latency,
    /// Histogram of the round-trip times.
    pub histogram: Vec<Bucket>,
    /// Mean time of an iteration: the round trip, the comparison of the reply, the post of its
    /// receive, and pauses.
    pub whole_us: f64,
    pub voluntary_switches: u64,
    pub switches_per_wakeup: f64,
}

pub fn run(args: &PingArgs, as_json: bool) -> Result<()> {
    let target = Target::open(&args.client)?;
    let svg = args.svg.as_deref().map(Svg::create).transpose()?;
    let outcome = measure(&target, args)?;
    show(args, &outcome, as_json)?;
    match svg {
        Some(svg) => plot(svg, &outcome),
        None => Ok(()),
    }
}

fn show(args: &PingArgs, outcome: &Outcome, as_json: bool) -> Result<()> {
    if as_json {
        return output::json(outcome);
    }
    say(format!(
        "{} round trips of {} bytes from {} to {}, {}; every reply was correct.",
        grouped(outcome.iterations),
        outcome.size,
        outcome.device,
        outcome.server,
        if outcome.poll { "polling" } else { "waiting" },
    ))?;
    say(latency_table(&[("round trip", &outcome.round_trip_us)]))?;
    if args.histogram {
        say(histogram_table(&outcome.histogram))?;
    }
    if !outcome.poll {
        say(format!(
            "context switches per wake-up: {:.2} (1 if the thread has to sleep, else 0)",
            outcome.switches_per_wakeup
        ))?;
    }
    Ok(())
}

/// Draws the histogram.
fn plot(svg: Svg, outcome: &Outcome) -> Result<()> {
    let Outcome { device, server, size, .. } = outcome;
    let title = format!("Round trips of {size} bytes from {device} to {server}");
    let texts = Texts {
        title: &title,
        x: "microseconds",
        y: "round trips",
        format_x: |us| format!("{us:.0}"),
    };
    svg.histogram(&texts, &outcome.histogram)
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
    };
    let (side, _) = target.connect(&plan, &request, |side| {
        (0..u64::from(SLOTS)).try_for_each(|slot| receive_into(side, slot, size))
    })?;
    let mut trips = Trips::new(side, args)?;
    let start = Instant::now();
    let outcome = trips.run();
    let whole = start.elapsed();
    finish(&mut trips.side, outcome)?;
    let trips_made = trips.done.max(1) as f64;
    Ok(Outcome {
        server: target.address.to_string(),
        device: target.device.clone(),
        iterations: trips.done,
        stopped: stop::requested(),
        size: args.size,
        poll: args.poll,
        pause_us: args.pause,
        round_trip_us: trips.times.latency(),
        histogram: trips.times.histogram(),
        whole_us: whole.as_secs_f64() * 1e6 / trips_made,
        voluntary_switches: trips.switched,
        switches_per_wakeup: trips.switched as f64 / trips_made,
    })
}

/// Round trips and their measurements.
struct Trips<'a> {
    side: Side,
    args: &'a PingArgs,
    /// The message, and the last reply.
    message: Vec<u8>,
    answer: Vec<u8>,
    /// Receive that the last reply has consumed.
    used: u64,
    done: u64,
    times: Times,
    /// Number of times that the thread slept, except in pauses.
    switched: u64,
}

impl<'a> Trips<'a> {
    fn new(side: Side, args: &'a PingArgs) -> Result<Self> {
        let size = args.size as usize;
        let message = pattern::bytes(0, size);
        side.lmr.buffer().write(SLOTS as usize * size, &message);
        let (answer, times) = (vec![0; size], Times::new()?);
        Ok(Self { side, args, message, answer, used: 0, done: 0, times, switched: 0 })
    }

    fn run(&mut self) -> Result<()> {
        let limit = Limit::new(self.args.iterations, self.args.duration);
        let progress = Progress::new("ping", limit.total());
        let before = switches::of_this_thread();
        let mut pauses = 0;
        let mut outcome = Ok(());
        while outcome.is_ok() && !limit.reached(self.done) {
            pauses += pause(self.args.pause);
            outcome = self.trip();
            if self.done % 256 == 255 {
                progress.add(256);
            }
        }
        let switched = switches::of_this_thread().saturating_sub(before);
        self.switched = switched.saturating_sub(pauses);
        outcome
    }

    fn trip(&mut self) -> Result<()> {
        let number = self.done;
        let outgoing = SLOTS as usize * self.message.len();
        // The number at the start makes each message differ from the previous one.
        self.message[..8].copy_from_slice(&number.to_le_bytes());
        self.side.lmr.buffer().write(outgoing, &self.message[..8]);
        let start = Instant::now();
        let event = self.exchange(outgoing)?;
        let time = start.elapsed();
        self.compare(&event)?;
        self.times.add(time);
        self.done += 1;
        Ok(())
    }

    /// Posts the receive that the last reply has consumed, sends the message, and waits for the
    /// reply.
    fn exchange(&mut self, outgoing: usize) -> Result<Event> {
        let (size, number) = (self.message.len(), self.done);
        let (flags, _) = self.side.quietly()?;
        let send = [self.side.lmr.segment(outgoing, size)];
        let receive = [self.side.lmr.segment(self.used as usize * size, size)];
        let dtos = [
            Dto::recv(&receive, self.used, CompletionFlags::default()),
            Dto::send(&send, number, flags),
        ];
        self.side.submit(&dtos[usize::from(number == 0)..])
    }

    fn compare(&mut self, event: &Event) -> Result<()> {
        let (size, number) = (self.message.len(), self.done);
        let dto = successful(event)?;
        self.side.lmr.buffer().read(dto.cookie as usize * size, &mut self.answer);
        ensure!(dto.length == size as u64, "received {} of {size} bytes", dto.length);
        ensure!(self.answer == self.message, "the reply to message {number} is wrong");
        self.used = dto.cookie;
        Ok(())
    }
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
    let end = Instant::now() + time;
    let left = || end.saturating_duration_since(Instant::now());
    if fastrand::bool() {
        // A stop does not wait for a long pause.
        while !left().is_zero() && !stop::requested() {
            std::thread::sleep(left().min(stop::SLICE));
        }
        return 1;
    }
    while !left().is_zero() && !stop::requested() {
        std::hint::spin_loop();
    }
    0
}
