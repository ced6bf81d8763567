// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Creates random programs, and changes programs at random.

use crate::abi::{Abi, Field, Layout};
use crate::kinds::{Kind, Resource, SLOTS};
use crate::program::{Fields, Program, Step, Value, Way, FILES, LANES, STEPS, WAYS};
use crate::run::mapped::{WINDOWS, WINDOWS_BYTES};
use crate::run::memory::{AREA, AREA_BYTES};
use crate::text::pointed_at;

/// The random number generator.
pub type Random = fastrand::Rng;

/// Numbers near limits.
const EDGES: &[u64] = &[
    1,
    2,
    3,
    4,
    7,
    8,
    15,
    16,
    32,
    33,
    63,
    64,
    255,
    256,
    257,
    1000,
    4095,
    4096,
    4097,
    16384,
    65535,
    65536,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];
/// Connection qualifiers. Few, so that connects find listeners.
const QUALIFIERS: &[u64] = &[4000, 4001, 4002, 0x1_0000, 0x1234_5678_9abc, 299, 0, u64::MAX];
/// Nanoseconds. Mostly short, since a waiting thread finds no bugs.
const TIMES: &[u64] =
    &[0, 0, 1, 1000, 100_000, 1_000_000, 3_000_000, 10_000_000, i64::MAX as u64, u64::MAX];
/// Ports of addresses.
const PORTS: &[u16] = &[0, 4000, 4001, 4002, 299];

/// Returns a random element.
fn choose<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.usize(..from.len())]
}

fn way(random: &mut Random) -> Way {
    choose(random, &WAYS).0
}

fn one_in(random: &mut Random, n: u32) -> bool {
    random.u32(..n) == 0
}

impl Program {
    /// Makes a random change. `other` is a program to copy from.
    pub fn mutate(&mut self, random: &mut Random, other: Option<&Self>) {
        let steps = self.steps.len();
        match random.u32(..100) {
            _ if steps == 0 => self.insert(random),
            0..=24 => self.insert(random),
            25..=34 => drop(self.steps.remove(random.usize(..steps))),
            35..=42 => self.duplicate(random),
            43..=47 => self.swap(random),
            48..=52 => self.steps[random.usize(..steps)].lane = random.u8(..LANES),
            53..=55 => self.steps[random.usize(..steps)].file = random.u8(..FILES),
            56..=58 => self.steps[random.usize(..steps)].out = random.u8(..SLOTS as u8),
            59..=61 => self.steps[random.usize(..steps)].fail = random.u32(..40),
            62..=63 => self.steps[random.usize(..steps)].way = way(random),
            64..=73 if other.is_some() => self.splice(random, other),
            _ => self.steps[random.usize(..steps)].mutate(random),
        }
        self.steps.truncate(STEPS);
    }

    fn insert(&mut self, random: &mut Random) {
        let at = random.usize(..=self.steps.len());
        // A new step likely belongs to the lane and file of its neighbour.
        let near = self.steps.get(at.saturating_sub(1));
        let (lane, file) = near.map_or((0, 0), |step| (step.lane, step.file));
        let mut step = Step::random(random);
        (step.lane, step.file) = (lane, file);
        self.steps.insert(at, step);
    }

    fn duplicate(&mut self, random: &mut Random) {
        let mut step = self.steps[random.usize(..self.steps.len())].clone();
        if random.bool() {
            step.lane = random.u8(..LANES);
        }
        self.steps.insert(random.usize(..=self.steps.len()), step);
    }

    fn swap(&mut self, random: &mut Random) {
        let (a, b) = (random.usize(..self.steps.len()), random.usize(..self.steps.len()));
        self.steps.swap(a, b);
    }

    /// Inserts a piece of the other program at a random place.
    fn splice(&mut self, random: &mut Random, other: Option<&Self>) {
        let Some(other) = other.filter(|other| !other.steps.is_empty()) else { return };
        let from = random.usize(..other.steps.len());
        let to = random.usize(from..other.steps.len());
        let at = random.usize(..=self.steps.len());
        self.steps.splice(at..at, other.steps[from..=to].iter().cloned());
    }
}

impl Step {
    /// Creates a call with random arguments.
    pub fn random(random: &mut Random) -> Self {
        let call = random.usize(..Abi::get().calls.len());
        let mut step = Self::new(call);
        // It takes as long as a whole program.
        if step.call().name == "REPLUG" && !one_in(random, 8) {
            step = Self::new(random.usize(..call));
        }
        if one_in(random, 4) || step.call().name.starts_with("URING_") {
            step.way = way(random);
        }
        step.out = random.u8(..SLOTS as u8);
        step.fields = some_fields(random, &step.call().layout, 0);
        step
    }

    fn mutate(&mut self, random: &mut Random) {
        let layout = &self.call().layout;
        mutate_fields(random, layout, &mut self.fields, 0);
    }
}

/// Returns random values for most fields with a use, and rarely for others.
fn some_fields(random: &mut Random, layout: &Layout, depth: u32) -> Fields {
    let mut fields = Fields::new();
    for (index, field) in layout.fields.iter().enumerate() {
        let rare = match field.kind {
            Kind::Zero | Kind::Size | Kind::Version => 200,
            Kind::Count(_) | Kind::ElementSize(_) => 30,
            Kind::Slot(_) | Kind::Pointer(_) | Kind::Name | Kind::Address => 1,
            _ => 2,
        };
        if one_in(random, rare) {
            fields.push((index, value(random, field, depth)));
        }
    }
    fields
}

fn mutate_fields(random: &mut Random, layout: &Layout, fields: &mut Fields, depth: u32) {
    if layout.fields.is_empty() {
        return;
    }
    if !fields.is_empty() && one_in(random, 8) {
        fields.remove(random.usize(..fields.len()));
        return;
    }
    let index = random.usize(..layout.fields.len());
    let field = &layout.fields[index];
    let seldom = matches!(field.kind, Kind::Zero | Kind::Size | Kind::Version);
    if seldom && !one_in(random, 10) {
        return;
    }
    match fields.iter_mut().find(|(known, _)| *known == index) {
        Some((_, known)) => mutate_value(random, field, known, depth),
        None => {
            fields.push((index, value(random, field, depth)));
            fields.sort_by_key(|(index, _)| *index);
        }
    }
}

fn mutate_value(random: &mut Random, field: &Field, known: &mut Value, depth: u32) {
    match known {
        Value::Structs(structs) if !one_in(random, 5) => {
            let Some(layout) = pointed_at(field.kind) else { return };
            match random.u32(..6) {
                0 => structs.push(some_fields(random, layout, depth + 1)),
                1 => drop(structs.pop()),
                _ if !structs.is_empty() => {
                    let at = random.usize(..structs.len());
                    mutate_fields(random, layout, &mut structs[at], depth + 1);
                }
                _ => {}
            }
        }
        Value::Number(number) if random.bool() => {
            *number = match random.u32(..4) {
                0 => number.wrapping_add(1),
                1 => number.wrapping_sub(1),
                2 => *number ^ (1 << random.u32(..(8 * field.size.min(8)) as u32)),
                _ => number.wrapping_mul(2),
            };
        }
        _ => *known = value(random, field, depth),
    }
}

fn value(random: &mut Random, field: &Field, depth: u32) -> Value {
    // Sometimes a value of another kind.
    if one_in(random, 40) && !matches!(field.kind, Kind::Address | Kind::Name | Kind::Bytes) {
        return Value::Number(if random.bool() { choose(random, EDGES) } else { random.u64(..) });
    }
    match field.kind {
        Kind::Slot(resource) => slot(random, resource),
        Kind::Pointer(_) => pointer(random, field.kind, depth),
        Kind::Address => Value::Address(
            if one_in(random, 3) { random.u8(..9) } else { 1 },
            choose(random, PORTS),
        ),
        Kind::Name => Value::Text(name(random)),
        Kind::Bytes => Value::Text(bytes(random, field.size)),
        Kind::Cookie => Value::Number(random.u64(..1000)),
        Kind::Flags(mask) => Value::Number(random.u64(..) & random.u64(..) & mask),
        Kind::UpTo(most) => Value::Number(random.u64(..=most)),
        Kind::Time => Value::Number(choose(random, TIMES)),
        Kind::Qualifier => Value::Number(choose(random, QUALIFIERS)),
        Kind::Memory => Value::Number(address(random)),
        Kind::Length => Value::Number(length(random)),
        Kind::Size => Value::Number(random.u64(..400)),
        Kind::Version | Kind::Zero if random.bool() => Value::Number(1),
        Kind::Version | Kind::Zero => Value::Number(choose(random, EDGES)),
        Kind::Count(_) | Kind::ElementSize(_) => Value::Number(random.u64(..70)),
    }
}

/// Mostly a slot of the right resource.
fn slot(random: &mut Random, resource: Resource) -> Value {
    let resource = match random.u32(..40) {
        0 => crate::kinds::RESOURCES[random.usize(..crate::kinds::RESOURCES.len())].0,
        1..=4 if resource == Resource::Local => Resource::Remote,
        _ => resource,
    };
    // The first slots are more likely to be in use.
    let slot = if random.bool() { random.u8(..2) } else { random.u8(..SLOTS as u8) };
    Value::Slot(resource, slot)
}

fn pointer(random: &mut Random, kind: Kind, depth: u32) -> Value {
    if one_in(random, 12) {
        return Value::Number(address(random));
    }
    match pointed_at(kind) {
        // Memory for the kernel to write to.
        Some(_) if kind == Kind::Pointer("kdapl_event") => {
            Value::Structs(vec![Fields::new(); random.usize(..5)])
        }
        Some(layout) => {
            let count = if depth > 1 { 0 } else { random.usize(..4) };
            let each = (0..count).map(|_| some_fields(random, layout, depth + 1));
            Value::Structs(each.collect())
        }
        None => {
            let most = if one_in(random, 4) { 300 } else { 60 };
            Value::Bytes(bytes(random, most))
        }
    }
}

fn bytes(random: &mut Random, most: usize) -> Vec<u8> {
    (0..random.usize(..=most)).map(|_| random.u8(..)).collect()
}

fn name(random: &mut Random) -> Vec<u8> {
    match random.u32(..12) {
        0 => b"fuzz0".to_vec(),
        1 => b"lo".to_vec(),
        2 => vec![b'x'; 64],
        3 => bytes(random, 64),
        4 => b"rxe6".to_vec(),
        _ => b"rxef".to_vec(),
    }
}

fn address(random: &mut Random) -> u64 {
    match random.u32(..12) {
        0 => choose(random, EDGES),
        1 => WINDOWS + 4096 * random.u64(..WINDOWS_BYTES / 4096),
        2 => AREA + AREA_BYTES - random.u64(..5000),
        3 => AREA + random.u64(..AREA_BYTES),
        _ => AREA + 4096 * random.u64(..AREA_BYTES / 4096),
    }
}

fn length(random: &mut Random) -> u64 {
    match random.u32(..6) {
        0 => choose(random, EDGES),
        1 => random.u64(..AREA_BYTES),
        _ => random.u64(..9000),
    }
}
