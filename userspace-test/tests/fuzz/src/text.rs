// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Programs as text, one step a line:
//!
//! ```text
//!   # lane CALL [file=N] [fail=N] [way=WAY] field=value... [-> slot]
//!   0 EVD_CREATE file=1 qlen=8 flags=0x20 -> 2
//!   0 EP_POST handle=ep0 dto.iov=[{address=0x20000000 length=64 context=local0}]
//!   1 EP_CONNECT handle=ep1 remote_address=addr1:0 conn_qual=4000 private_data=&68656c6c6f
//! ```
//! A missing field has its default: 0, or the valid value.

use crate::abi::{Abi, Layout};
use crate::kinds::RESOURCES;
use crate::program::{Fields, Program, Step, Value, Way, FILES, LANES, STEPS, WAYS};
use anyhow::{bail, ensure, Context as _, Result};
use std::fmt::{self, Write as _};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.call();
        write!(f, "{} {}", self.lane, call.name)?;
        if self.file != 0 {
            write!(f, " file={}", self.file)?;
        }
        if self.fail != 0 {
            write!(f, " fail={}", self.fail)?;
        }
        if self.way != Way::Ioctl {
            write!(f, " way={}", way_text(self.way))?;
        }
        if !self.fields.is_empty() {
            write!(f, " {}", fields_text(&call.layout, &self.fields))?;
        }
        match self.out {
            0 => Ok(()),
            out => write!(f, " -> {out}"),
        }
    }
}

fn way_text(way: Way) -> &'static str {
    WAYS.iter().find(|(known, _)| *known == way).map_or("", |(_, name)| name)
}

fn fields_text(layout: &Layout, fields: &Fields) -> String {
    let mut text = String::new();
    for (index, value) in fields {
        let separator = if text.is_empty() { "" } else { " " };
        let field = &layout.fields[*index];
        let value = value_text(field.kind, value);
        let _ = write!(text, "{separator}{}={value}", field.path);
    }
    text
}

fn value_text(kind: crate::kinds::Kind, value: &Value) -> String {
    match value {
        Value::Number(number) if *number < 4096 => number.to_string(),
        Value::Number(number) => format!("{number:#x}"),
        Value::Slot(resource, slot) => {
            let name = RESOURCES.iter().find(|(known, _)| known == resource);
            format!("{}{slot}", name.map_or("", |(_, name)| name))
        }
        Value::Address(which, port) => format!("addr{which}:{port}"),
        Value::Text(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Value::Bytes(bytes) => format!("&{}", hex(bytes)),
        Value::Structs(structs) => {
            let layout = pointed_at(kind);
            let each = structs.iter().map(|fields| match layout {
                Some(layout) => format!("{{{}}}", fields_text(layout, fields)),
                None => "{}".into(),
            });
            format!("[{}]", each.collect::<String>())
        }
    }
}

/// Returns the struct that a pointer points to.
#[must_use]
pub fn pointed_at(kind: crate::kinds::Kind) -> Option<&'static Layout> {
    match kind {
        crate::kinds::Kind::Pointer(name) => Abi::get().element(name),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

impl std::str::FromStr for Program {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut steps = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let step = step(line).with_context(|| format!("line {}: {line}", number + 1))?;
            steps.push(step);
        }
        ensure!(steps.len() <= STEPS, "{} steps are more than {STEPS}", steps.len());
        Ok(Self { steps })
    }
}

fn step(line: &str) -> Result<Step> {
    let mut reader = Reader { rest: line };
    let lane: u8 = reader.word().parse().context("a line begins with the number of its lane")?;
    ensure!(lane < LANES, "there are {LANES} lanes");
    let name = reader.word();
    let call = Abi::get().call(name).with_context(|| format!("there is no call {name}"))?;
    let mut step = Step { lane, ..Step::new(call) };
    loop {
        reader.spaces();
        if reader.rest.is_empty() {
            return Ok(step);
        }
        if reader.eat("->") {
            reader.spaces();
            step.out = reader.word().parse().context("-> needs the number of a slot")?;
            continue;
        }
        if reader.eat("file=") {
            step.file = reader.word().parse()?;
            ensure!(step.file < FILES, "there are {FILES} files");
        } else if reader.eat("fail=") {
            step.fail = reader.word().parse()?;
        } else if reader.eat("way=") {
            let name = reader.word();
            let known = WAYS.iter().find(|(_, known)| *known == name);
            step.way = known.with_context(|| format!("there is no way {name}"))?.0;
        } else {
            let field = reader.field(&step.call().layout)?;
            step.fields.push(field);
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads up to a character that ends a word.
    fn word(&mut self) -> &'a str {
        self.spaces();
        let ends = |c: char| c.is_whitespace() || "=[]{}".contains(c);
        let (word, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn field(&mut self, layout: &Layout) -> Result<(usize, Value)> {
        let path = self.word();
        let index = layout.field(path).with_context(|| format!("there is no field {path}"))?;
        ensure!(self.eat("="), "a field's name is followed by =");
        let value = self.value(layout.fields[index].kind).with_context(|| path.to_string())?;
        Ok((index, value))
    }

    fn value(&mut self, kind: crate::kinds::Kind) -> Result<Value> {
        if self.eat("[") {
            let layout = pointed_at(kind).context("this field points to no structs")?;
            return self.structs(layout);
        }
        if self.eat("\"") {
            return self.quoted();
        }
        let word = self.word();
        if let Some(digits) = word.strip_prefix('&') {
            return Ok(Value::Bytes(unhex(digits)?));
        }
        if let Some((which, port)) = word.strip_prefix("addr").and_then(|w| w.split_once(':')) {
            return Ok(Value::Address(which.parse()?, port.parse()?));
        }
        if word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return slot(word);
        }
        let number = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => word.parse(),
        };
        Ok(Value::Number(number.with_context(|| format!("'{word}' is no value"))?))
    }

    fn structs(&mut self, layout: &Layout) -> Result<Value> {
        let mut structs = Vec::new();
        loop {
            self.spaces();
            if self.eat("]") {
                return Ok(Value::Structs(structs));
            }
            ensure!(self.eat("{"), "a struct begins with {{");
            let mut fields = Fields::new();
            loop {
                self.spaces();
                if self.eat("}") {
                    break;
                }
                fields.push(self.field(layout)?);
            }
            structs.push(fields);
        }
    }

    /// Parses the output of `escape_ascii()`.
    fn quoted(&mut self) -> Result<Value> {
        let mut bytes = Vec::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(Value::Text(bytes));
                }
                '\\' => match characters.next().map(|(_, c)| c) {
                    Some('x') => {
                        let digits: String = characters.by_ref().take(2).map(|(_, c)| c).collect();
                        bytes.extend(unhex(&digits)?);
                    }
                    Some('n') => bytes.push(b'\n'),
                    Some('r') => bytes.push(b'\r'),
                    Some('t') => bytes.push(b'\t'),
                    Some(other) => bytes.push(other as u8),
                    None => break,
                },
                c => bytes.push(c as u8),
            }
        }
        bail!("the closing quote is missing")
    }
}

fn slot(word: &str) -> Result<Value> {
    let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let found = RESOURCES.iter().find(|(_, known)| *known == name);
    let (resource, _) = found.with_context(|| format!("there is no resource {name}"))?;
    Ok(Value::Slot(*resource, word[name.len()..].parse()?))
}

fn unhex(digits: &str) -> Result<Vec<u8>> {
    ensure!(digits.len() % 2 == 0, "bytes have two digits each");
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| Ok(u8::from_str_radix(&digits[at..at + 2], 16)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::Program;

    #[test]
    fn what_is_read_is_written_again() {
        let text = "0 OPEN\n\
            0 IA_OPEN file=2 fail=3 name=\"rxe0\\x00\" -> 1\n\
            1 EP_POST handle=ep0 dto.iov=[{address=0x20000000 length=64 context=local0}{}]\n\
            4 EP_CONNECT remote_address=addr1:70 conn_qual=0xffffffff private_data=&00ff\n\
            4 EVD_WAIT way=command handle=evd1 threshold=1\n";
        assert_eq!(text.parse::<Program>().unwrap().to_string(), text);
    }

    #[test]
    fn every_program_of_the_corpus_is_understood() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            for text in std::fs::read_to_string(&path).unwrap().split("---\n") {
                let program = text.parse::<Program>();
                let steps = program.map(|program| program.steps.len());
                assert!(steps.as_ref().is_ok_and(|steps| *steps > 0), "{path:?}: {steps:?}");
            }
        }
    }

    #[test]
    fn a_random_program_survives_as_text() {
        for seed in 0..2000 {
            let mut random = crate::random::Random::with_seed(seed);
            let mut program = Program::default();
            for _ in 0..20 {
                program.mutate(&mut random, None);
            }
            let text = program.to_string();
            assert_eq!(text.parse::<Program>().expect(&text), program, "{text}");
        }
    }
}
